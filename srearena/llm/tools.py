"""Convert the episode's actions to tools of a model, and a model's tool calls to actions.

Parameters are parsed from the action's description that every agent gets, so a new action becomes a tool without a
change here. Arguments are only checked to be a JSON object: the episode reports what else is wrong with them.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from typing import Any

from srearena.llm.messages import Tool, ToolCall

_TYPES: dict[str, dict[str, Any]] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "Any": {},
}


class BadArguments(Exception):
    """A call with invalid arguments; the text is sent back to the model."""


def tools_from(actions: Mapping[str, str]) -> tuple[Tool, ...]:
    """The tools for actions by their descriptions: `name(parameters)`, and a text below."""
    return tuple(_tool(name, text) for name, text in actions.items())


def _tool(name: str, description: str) -> Tool:
    signature, _, text = description.partition("\n")
    function = ast.parse(f"def {signature}: ...").body[0]
    assert isinstance(function, ast.FunctionDef)
    parameters = function.args.args
    required = [argument.arg for argument in parameters[: len(parameters) - len(function.args.defaults)]]
    properties = {argument.arg: dict(_TYPES.get(_type(argument), {})) for argument in parameters}
    for argument, value in zip(reversed(parameters), reversed(function.args.defaults), strict=False):
        default = ast.literal_eval(value)
        if default is not None:
            properties[argument.arg]["default"] = default
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return Tool(name, text.strip(), schema)


def _type(argument: ast.arg) -> str:
    annotation = argument.annotation
    if isinstance(annotation, ast.Constant):
        return str(annotation.value)
    return ast.unparse(annotation) if annotation is not None else "Any"


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """A call's arguments; raises `BadArguments` if they are no JSON object."""
    try:
        value = json.loads(call.arguments or "{}")
    except ValueError as problem:
        raise BadArguments(f"the arguments of {call.name} are not JSON: {problem}") from problem
    if not isinstance(value, dict) or not all(key.isidentifier() for key in value):
        raise BadArguments(f"the arguments of {call.name} must be a JSON object of named values")
    return value


def action_of(call: ToolCall) -> str:
    """The call in the syntax of actions, with Python literals as values."""
    arguments = ", ".join(f"{key}={value!r}" for key, value in arguments_of(call).items())
    # Backticks occur in string values only; a fence in one would look like the code block around an action.
    return f"{call.name}({arguments})".replace("`", "\\x60")
