"""Values of CEL that Python has no type for, and what holds for all values: types, equality and order.

Integers are `int`, doubles `float`, strings `str`, bytes `bytes`, lists `list` and maps `dict`; `bool` is no integer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from srearena.cluster.embedded.cel.errors import EvaluationError, no_such_overload

INT_RANGE: Final = range(-(2**63), 2**63)
UINT_RANGE: Final = range(2**64)


class UInt(int):
    """An unsigned integer."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """A moment, in nanoseconds since 1970."""

    nanoseconds: int


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A span of time, in nanoseconds."""

    nanoseconds: int


@dataclass(frozen=True, slots=True)
class Optional:
    """A value that may be absent: `optional.of(x)`, `optional.none()`."""

    present: bool = False
    value: Any = None


@dataclass(frozen=True, slots=True)
class TypeValue:
    """What `type(x)` gives."""

    name: str


class SetList(list[Any]):
    """A list of the list type `set`: equal in any order, and `+` is the union."""


class KeyedList(list[Any]):
    """A list of the list type `map`: equal in any order of its items, and `+` merges items with the same keys."""

    keys: tuple[str, ...] = ()

    def key(self, item: Any) -> tuple[Any, ...]:
        return tuple(item.get(name) for name in self.keys)


_NAMES: Final[dict[type, str]] = {
    bool: "bool",
    int: "int",
    UInt: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    SetList: "list",
    KeyedList: "list",
    dict: "map",
    type(None): "null_type",
    Timestamp: "google.protobuf.Timestamp",
    Duration: "google.protobuf.Duration",
    Optional: "optional_type",
    TypeValue: "type",
}


def register_type(kind: type, name: str) -> None:
    """Make a class a type of CEL; its values are compared by `==`."""
    _NAMES[kind] = name


def type_name(value: Any) -> str:
    """The name of a value's type, without parameters."""
    return _NAMES.get(type(value), "dyn")


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def equal(left: Any, right: Any) -> bool:
    """Equality: numbers of different types by value, otherwise values of different types differ."""
    if is_number(left) and is_number(right):
        return bool(left == right)
    if isinstance(left, list) and isinstance(right, list):
        return _equal_lists(left, right)
    if isinstance(left, dict) and isinstance(right, dict):
        return len(left) == len(right) and all(key in right and equal(left[key], right[key]) for key in left)
    return type(left) is type(right) and bool(left == right)


def _equal_lists(left: list[Any], right: list[Any]) -> bool:
    if len(left) != len(right):
        return False
    if isinstance(left, SetList):
        return all(contains(right, item) for item in left) and all(contains(left, item) for item in right)
    if isinstance(left, KeyedList):
        found = {left.key(item): item for item in right}
        return all(left.key(item) in found and equal(item, found[left.key(item)]) for item in left)
    return all(map(equal, left, right))


def contains(items: list[Any], value: Any) -> bool:
    return any(equal(item, value) for item in items)


def compare(left: Any, right: Any) -> int:
    """-1, 0 or 1, for values of a type that has an order."""
    if not (is_number(left) and is_number(right)) and type(left) is not type(right):
        raise no_such_overload()
    if not isinstance(left, bool | int | float | str | bytes | Timestamp | Duration):
        raise no_such_overload()
    if isinstance(left, str):
        left, right = left.encode(errors="replace"), right.encode(errors="replace")
    return int(left > right) - int(left < right)


def checked_int(number: int) -> int:
    if number not in INT_RANGE:
        raise EvaluationError("integer overflow")
    return number


def checked_uint(number: int) -> UInt:
    if number not in UINT_RANGE:
        raise EvaluationError("unsigned integer overflow")
    return UInt(number)
