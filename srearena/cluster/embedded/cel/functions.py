"""The functions of CEL: overloads with their signatures, by name, and the choice between them.

A module of functions decorates each with its signatures; `cel.compiled` imports these modules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from srearena.cluster.embedded.cel.errors import no_such_overload
from srearena.cluster.embedded.cel.types import DYN, Parameter, Signature, Type
from srearena.cluster.embedded.cel.values import type_name

Function = Callable[..., Any]
Cost = Callable[..., int]


@dataclass(frozen=True, slots=True)
class Overload:
    signature: Signature
    function: Function
    cost: Cost | None
    kinds: tuple[str, ...]
    """The names of the types of all arguments, empty where any will do."""


OVERLOADS: Final[dict[tuple[str, bool], list[Overload]]] = {}
"""By name and whether it is a method."""


def overload(*signatures: str, cost: Cost | None = None) -> Callable[[Function], Function]:
    """Register a function under signatures such as `string.startsWith(string) bool`."""

    def register(function: Function) -> Function:
        for text in signatures:
            signature = Signature.of(text)
            kinds = tuple(_kind(argument) for argument in signature.all_arguments)
            found = OVERLOADS.setdefault((signature.name, signature.target is not None), [])
            found.append(Overload(signature, function, cost, kinds))
        return function

    return register


def _kind(argument: Type) -> str:
    return "" if isinstance(argument, Parameter) or argument == DYN else argument.name


def overloads(name: str, *, method: bool) -> Iterable[Overload]:
    return OVERLOADS.get((name, method), ())


def choose(candidates: Iterable[Overload], arguments: tuple[Any, ...]) -> Overload:
    """The overload for these values."""
    kinds = [type_name(argument) for argument in arguments]
    for candidate in candidates:
        if len(candidate.kinds) == len(kinds) and all(
            not expected or expected == kind for expected, kind in zip(candidate.kinds, kinds, strict=True)
        ):
            return candidate
    raise no_such_overload()


def traversal(*values: Any, factor: float = 0.1) -> int:
    """The cost of going through texts and collections once, in cel-go's units."""
    total = 1.0
    for value in values:
        if isinstance(value, str | bytes):
            total += len(value) * factor
        elif isinstance(value, list | dict):
            total += len(value)
    return int(total)
