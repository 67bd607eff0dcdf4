"""What JavaScript values are and can do: truth, numbers, operators, and the members of lists, texts and objects."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from srearena.cluster.embedded.programs.datastores.mongodb.values import (
    UNDEFINED,
    Long,
    Moment,
    ObjectId,
    Undefined,
    packed,
    plain,
)

Function = Callable[..., Awaitable[Any]]


class Host:
    """An object of the shell: what its members are, it knows itself."""

    def get(self, name: str) -> Any:
        return UNDEFINED

    async def display(self) -> Any:
        """What the shell prints when an expression comes to this."""
        return self


def truthy(value: Any) -> bool:
    if isinstance(value, list | dict):
        return True
    return bool(value)


def number(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int | float):
        return value
    if isinstance(value, Moment):
        return int(value.seconds * 1000)
    if isinstance(value, Long):
        return value.value
    try:
        text = plain(value).strip()
        return int(text) if text.lstrip("-").isdigit() else float(text or 0)
    except ValueError:
        return float("nan")


def kind_of(value: Any) -> str:
    if isinstance(value, Undefined):
        return "undefined"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "function" if callable(value) else "object"


def combined(word: str, left: Any, right: Any) -> Any:
    if word in ("==", "==="):
        return left == right or (word == "==" and {type(left), type(right)} <= {type(None), Undefined})
    if word in ("!=", "!=="):
        return not combined(word.replace("!", "=", 1), left, right)
    if word == "in":
        return isinstance(right, dict | list) and left in right
    if word == "instanceof":
        return False
    if word == "+" and (isinstance(left, str | dict | list | ObjectId) or isinstance(right, str | dict | list)):
        return plain(left) + plain(right)
    if word in ("<", ">", "<=", ">="):
        a, b = (left, right) if isinstance(left, str) and isinstance(right, str) else (number(left), number(right))
        return {"<": a < b, ">": a > b, "<=": a <= b, ">=": a >= b}[word]
    a, b = number(left), number(right)
    try:
        if word == "/":
            quotient = a / b
            return int(quotient) if quotient.is_integer() else quotient
        result = {"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "%": lambda: a % b}.get(word)
        return a ** min(b, 1000) if result is None else result()
    except (ZeroDivisionError, OverflowError):
        return float("nan") if not a else float("inf")


def member(owner: Any, key: Any) -> Any:
    name = plain(key)
    if isinstance(owner, Host):
        return owner.get(name)
    if isinstance(owner, dict):
        if name in owner:
            return owner[name]
        return {"hasOwnProperty": _async(lambda k: k in owner)}.get(name, UNDEFINED)
    if isinstance(owner, list):
        return _list_member(owner, name)
    if isinstance(owner, str):
        return _text_member(owner, name)
    methods: dict[str, Callable[..., Any]] = {
        "toString": lambda *_: plain(owner),
        "valueOf": lambda: owner,
        "str": lambda: plain(owner),
        "getTime": lambda: number(owner),
        "toISOString": lambda: plain(owner),
        "toNumber": lambda: number(owner),
        "toFixed": lambda digits=0: f"{number(owner):.{digits}f}",
    }
    return _async(methods[name]) if name in methods else UNDEFINED


def _async(function: Callable[..., Any]) -> Function:
    async def call(*arguments: Any) -> Any:
        return function(*arguments)

    return call


def _list_member(owner: list[Any], name: str) -> Any:
    if name == "length":
        return len(owner)
    if name.isdigit():
        return owner[int(name)] if int(name) < len(owner) else UNDEFINED

    async def each(function: Function) -> Any:
        for index, item in enumerate(list(owner)):
            await function(item, index)
        return UNDEFINED

    async def mapped(function: Function) -> Any:
        return [await function(item, index) for index, item in enumerate(list(owner))]

    async def filtered(function: Function) -> Any:
        return [item for item in list(owner) if truthy(await function(item))]

    async def found(function: Function) -> Any:
        return next(iter(await filtered(function)), UNDEFINED)

    async def any_of(function: Function) -> Any:
        return bool(await filtered(function))

    def push(*items: Any) -> int:
        owner.extend(items)
        return len(owner)

    methods: dict[str, Any] = {
        "forEach": each,
        "map": mapped,
        "filter": filtered,
        "find": found,
        "some": any_of,
        "push": _async(push),
        "join": _async(lambda glue=",": glue.join(plain(item) for item in owner)),
        "includes": _async(lambda item: item in owner),
        "indexOf": _async(lambda item: owner.index(item) if item in owner else -1),
        "slice": _async(lambda start=0, end=None: owner[start:end]),
        "concat": _async(lambda other: owner + (other if isinstance(other, list) else [other])),
        "toArray": _async(lambda: owner),
    }
    return methods.get(name, UNDEFINED)


def _text_member(owner: str, name: str) -> Any:
    if name == "length":
        return len(owner)
    if name.isdigit():
        return owner[int(name)] if int(name) < len(owner) else UNDEFINED
    methods: dict[str, Callable[..., Any]] = {
        "toUpperCase": owner.upper,
        "toLowerCase": owner.lower,
        "trim": owner.strip,
        "split": lambda glue: owner.split(glue) if glue else list(owner),
        "startsWith": lambda text: owner.startswith(text),
        "endsWith": lambda text: owner.endswith(text),
        "includes": lambda text: text in owner,
        "indexOf": lambda text: owner.find(text),
        "replace": lambda old, new: owner.replace(old, new, 1) if isinstance(old, str) else owner,
        "substring": lambda start, end=None: owner[start:end],
        "slice": lambda start, end=None: owner[start:end],
        "padStart": lambda width, fill=" ": owner.rjust(width, fill),
        "repeat": lambda count: owner * min(int(count), 1_000_000),
        "toString": lambda: owner,
    }
    return _async(methods[name]) if name in methods else UNDEFINED


def json_text(value: Any, _replacer: Any = None, indent: Any = None) -> str:
    space = indent if isinstance(indent, int | str) and indent else None
    separators = (",", ": ") if space else (",", ":")
    return json.dumps(packed(value), indent=space, separators=separators)
