"""Static types of CEL, as declarations, schemas and the checker use them.

`dyn` agrees with every type. A `Parameter` stands for any type, the same at all places of one signature.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class Type:
    name: str
    parameters: tuple[Type, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.parameters))})" if self.parameters else self.name


@dataclass(frozen=True, slots=True)
class Parameter(Type):
    """A type that a call determines."""


@dataclass(frozen=True, slots=True)
class ObjectType(Type):
    """A type with fields; they are built when needed, since schemas may refer to themselves."""

    build: Callable[[], Mapping[str, Type]] = field(default=dict, compare=False)

    @property
    def fields(self) -> Mapping[str, Type]:
        return self.build()

    @classmethod
    def of(cls, name: str, fields: Mapping[str, Type]) -> ObjectType:
        return cls(name, (), lambda: fields)


BOOL: Final = Type("bool")
INT: Final = Type("int")
STRING: Final = Type("string")
NULL: Final = Type("null_type")
DYN: Final = Type("dyn")
TIMESTAMP: Final = Type("google.protobuf.Timestamp")
DURATION: Final = Type("google.protobuf.Duration")
ERROR: Final = Type("!error!")
"""Of an expression that was found wrong already: agrees with everything."""
_SHORT: Final = {
    "timestamp": TIMESTAMP,
    "duration": DURATION,
    "null": NULL,
    "ip": Type("net.IP"),
    "cidr": Type("net.CIDR"),
    "url": Type("kubernetes.URL"),
    "quantity": Type("kubernetes.Quantity"),
    "semver": Type("kubernetes.Semver"),
    "format": Type("kubernetes.NamedFormat"),
    "authorizer": Type("kubernetes.authorization.Authorizer"),
    "path_check": Type("kubernetes.authorization.PathCheck"),
    "group_check": Type("kubernetes.authorization.GroupCheck"),
    "resource_check": Type("kubernetes.authorization.ResourceCheck"),
    "decision": Type("kubernetes.authorization.Decision"),
}
"""Types by the names that signatures use."""
_VALUE_TYPES: Final = frozenset({"bool", "int", "uint", "double", "string", "bytes", "list", "map", "type"})
"""Types whose values are never null."""


def list_of(item: Type) -> Type:
    return Type("list", (item,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", (key, value))


def optional_of(value: Type) -> Type:
    return Type("optional_type", (value,))


def assignable(expected: Type, found: Type, bound: dict[str, Type]) -> bool:
    """Whether a value of one type can be where another is expected; parameters become bound."""
    if isinstance(expected, Parameter):
        known = bound.get(expected.name)
        if known is None or known == DYN:
            bound[expected.name] = found if known is None else known
            return True
        if found in (DYN, ERROR):
            return True
        if found == NULL or known == NULL:
            if (known if found == NULL else found).name in _VALUE_TYPES:
                return False
            bound[expected.name] = known if found == NULL else found
            return True
        return assignable(known, found, bound)
    if DYN in (expected, found) or ERROR in (expected, found):
        return True
    if isinstance(found, Parameter):
        return True
    if found == NULL:
        return expected.name not in _VALUE_TYPES
    if expected.name != found.name:
        return False
    if expected.name == "type" or len(expected.parameters) != len(found.parameters):
        return True
    return all(assignable(one, other, bound) for one, other in zip(expected.parameters, found.parameters, strict=True))


def substitute(expected: Type, bound: Mapping[str, Type]) -> Type:
    """A type with its parameters replaced; those that no argument determined are dyn."""
    if isinstance(expected, Parameter):
        return bound.get(expected.name, DYN)
    if not expected.parameters:
        return expected
    return Type(expected.name, tuple(substitute(item, bound) for item in expected.parameters))


@dataclass(frozen=True, slots=True)
class Signature:
    """One overload: `string.startsWith(string) bool`, `size(list(A)) int`."""

    name: str
    target: Type | None
    arguments: tuple[Type, ...]
    result: Type

    @property
    def all_arguments(self) -> tuple[Type, ...]:
        return self.arguments if self.target is None else (self.target, *self.arguments)

    @classmethod
    def of(cls, text: str) -> Signature:
        """Read a signature; a colon is the dot in the name of a function that is no method, as in `optional:of(A)`."""
        first, position = _read(text, 0)
        target: Type | None = None
        if text[position] == ".":
            target = _resolved(first)
            first, position = _read(text, position + 1)
        name, arguments = first
        result, _ = _read(text, position + 1)
        return cls(name.replace(":", "."), target, tuple(map(_resolved, arguments)), _resolved(result))


_Term = tuple[str, list["_Term"]]
_WORD: Final = re.compile(r"[^\s().,]+")


def _read(text: str, position: int) -> tuple[_Term, int]:
    """A word with the terms in the parentheses behind it, and where it ends."""
    word = _WORD.match(text, position)
    assert word is not None, text
    position, inner = word.end(), []
    if text[position : position + 1] == "(":
        position += 1
        while text[position] != ")":
            term, position = _read(text, position)
            inner.append(term)
            position += 2 if text[position] == "," else 0
        position += 1
    return (word[0], inner), position


def _resolved(term: _Term) -> Type:
    word, inner = term
    if len(word) == 1 and word.isupper():
        return Parameter(word)
    return _SHORT.get(word) or Type(word, tuple(map(_resolved, inner)))
