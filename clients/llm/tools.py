"""The episode's actions as tools of a model, and a model's calls as actions.

What an action takes is read from the description that every agent gets, so an action that is added there is a tool here
at once. Arguments are checked for being a JSON object, no more: the episode says what else is wrong with them.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from typing import Any

from clients.llm.messages import Tool, ToolCall

_TYPES: dict[str, dict[str, Any]] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "Any": {},
}


class BadArguments(Exception):
    """A call whose arguments cannot be used; the text goes back to the model."""


def tools_from(actions: Mapping[str, str], names: Sequence[str] | None = None) -> tuple[Tool, ...]:
    """The tools for the actions described (`name(arguments)` and a text below); only those named, if some are."""
    return tuple(_tool(name, text) for name, text in actions.items() if names is None or name in names)


def _tool(name: str, described: str) -> Tool:
    signature, _, text = described.partition("\n")
    function = ast.parse(f"def {signature}: ...").body[0]
    assert isinstance(function, ast.FunctionDef)
    taken = function.args.args
    required = [argument.arg for argument in taken[: len(taken) - len(function.args.defaults)]]
    properties = {argument.arg: dict(_TYPES.get(_type(argument), {})) for argument in taken}
    for argument, value in zip(reversed(taken), reversed(function.args.defaults), strict=False):
        default = ast.literal_eval(value)
        if default is not None:
            properties[argument.arg]["default"] = default
    parameters = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return Tool(name, text.strip(), parameters)


def _type(argument: ast.arg) -> str:
    note = argument.annotation
    if isinstance(note, ast.Constant):
        return str(note.value)
    return ast.unparse(note) if note is not None else "Any"


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """A call's arguments; BadArguments where they are no JSON object."""
    try:
        value = json.loads(call.arguments or "{}")
    except ValueError as problem:
        raise BadArguments(f"the arguments of {call.name} are not JSON: {problem}") from problem
    if not isinstance(value, dict) or not all(key.isidentifier() for key in value):
        raise BadArguments(f"the arguments of {call.name} must be a JSON object of named values")
    return value


def action_of(call: ToolCall) -> str:
    """The call as an agent writes it; values as the literals that the episode reads."""
    written = ", ".join(f"{key}={value!r}" for key, value in arguments_of(call).items())
    # Backticks are in texts only, and a fence within one would look like the block that an action stands in.
    return f"{call.name}({written})".replace("`", "\\x60")
