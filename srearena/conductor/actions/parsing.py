"""Parses an agent's text into one call. Nothing is evaluated: arguments are literals or refused.

An action is text with one call in a fenced block:

    ```
    get_logs("some-namespace", "some-service")
    ```

A block with a plain kubectl command line means that command. The error message for a wrong action says how to write a
correct one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from srearena.conductor.errors import BadAction

LONGEST_ACTION = 262_144
_FENCE = re.compile(r"```[ \t]*(?P<language>[A-Za-z]*)[ \t]*\n?(?P<body>.*?)```", re.DOTALL)
_EXAMPLE = 'put one call in a fenced block, for example:\n```\nkubectl("get pods --all-namespaces")\n```'
_DEEPEST = 60
"""Levels of nesting; far beyond any real argument, and far below the interpreter's recursion limit."""


@dataclass(frozen=True, slots=True)
class Call:
    """An action by name, with its arguments."""

    name: str
    arguments: tuple[Any, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        parts = [repr(value) for value in self.arguments] + [f"{key}={value!r}" for key, value in self.options.items()]
        return f"{self.name}({', '.join(parts)})"


def parse(text: str, names: Sequence[str]) -> Call:
    """Parse the one call in an action; BadAction with the reason for any other text."""
    if not isinstance(text, str):
        raise BadAction(f"an action is a text: {_EXAMPLE}")
    if len(text) > LONGEST_ACTION:
        raise BadAction(f"an action has at most {LONGEST_ACTION} characters, this one has {len(text)}")
    body = _body(text)
    if re.match(r"kubectl\s+[-a-z]", body):
        return Call("exec_shell", (body,))
    call = _call(body)
    if call.name not in names:
        near = get_close_matches(call.name, names, n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise BadAction(f"there is no action {call.name!r}{hint}: choose from {', '.join(names)}")
    return call


def _body(text: str) -> str:
    blocks = [match["body"].strip() for match in _FENCE.finditer(text)]
    blocks = [block for block in blocks if block]
    if len(blocks) > 1:
        raise BadAction(f"one action at a time, but there are {len(blocks)} fenced blocks: {_EXAMPLE}")
    if blocks:
        return blocks[0]
    bare = text.strip().strip("`").strip()
    if re.match(r"[A-Za-z_]\w*\s*\(|kubectl\s", bare):
        return bare
    raise BadAction(f"there is no action in this text: {_EXAMPLE}")


def _call(body: str) -> Call:
    try:
        tree = ast.parse(body, mode="exec")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as problem:
        line = getattr(problem, "lineno", None)
        where = f" (line {line})" if line else ""
        raise BadAction(f"this is not a call that can be parsed{where}: {_EXAMPLE}") from problem
    if len(tree.body) != 1:
        raise BadAction(f"one action at a time, but there are {len(tree.body)}: {_EXAMPLE}")
    statement = tree.body[0]
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        raise BadAction(f"an action is a call: {_EXAMPLE}")
    call = statement.value
    if not isinstance(call.func, ast.Name):
        raise BadAction("an action is called by its plain name, without dots")
    arguments = tuple(_literal(node) for node in call.args)
    options: dict[str, Any] = {}
    for keyword in call.keywords:
        if keyword.arg is None:
            raise BadAction("arguments are written out; ** is not supported")
        options[keyword.arg] = _literal(keyword.value)
    return Call(call.func.id, arguments, options)


def _literal(node: ast.expr) -> Any:
    if _depth(node) > _DEEPEST:
        raise BadAction(f"arguments are nested at most {_DEEPEST} deep")
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, MemoryError, RecursionError) as problem:
        raise BadAction(
            "arguments are plain values: texts in quotes, numbers, True, False, None, lists and dictionaries of them"
        ) from problem


def _depth(node: ast.AST) -> int:
    deepest, level = 0, [node]
    while level and deepest <= _DEEPEST:
        deepest += 1
        level = [child for parent in level for child in ast.iter_child_nodes(parent)]
    return deepest
