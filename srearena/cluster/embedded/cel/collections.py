"""Functions on lists and sets: Kubernetes' list library and cel-go's list (version 3) and set extensions."""

from __future__ import annotations

from functools import cmp_to_key
from itertools import pairwise
from typing import Any

from srearena.cluster.embedded.cel.errors import EvaluationError
from srearena.cluster.embedded.cel.functions import overload, traversal
from srearena.cluster.embedded.cel.values import Duration, UInt, checked_int, checked_uint, compare, contains, equal

_SUMMED = ("int", "uint", "double", "duration")
_ORDERED = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_MOST_NUMBERS = 1_000_000
"""Items of lists.range: more would exceed the cost of any expression."""


@overload(*(f"list({kind}).isSorted() bool" for kind in _ORDERED), cost=traversal)
def _is_sorted(items: list[Any]) -> bool:
    return all(compare(one, other) <= 0 for one, other in pairwise(items))


@overload(*(f"list({kind}).sum() {kind}" for kind in _SUMMED), cost=traversal)
def _sum(items: list[Any]) -> Any:
    if not items:
        return 0
    first = items[0]
    if isinstance(first, Duration):
        return Duration(checked_int(sum(item.nanoseconds for item in items)))
    if isinstance(first, float):
        return sum(items)
    total = sum(int(item) for item in items)
    return checked_uint(total) if isinstance(first, UInt) else checked_int(total)


@overload(*(f"list({kind}).min() {kind}" for kind in _ORDERED), cost=traversal)
def _min(items: list[Any]) -> Any:
    if not items:
        raise EvaluationError("min called on empty list")
    return min(items, key=cmp_to_key(compare))


@overload(*(f"list({kind}).max() {kind}" for kind in _ORDERED), cost=traversal)
def _max(items: list[Any]) -> Any:
    if not items:
        raise EvaluationError("max called on empty list")
    return max(items, key=cmp_to_key(compare))


@overload("list(A).indexOf(A) int", cost=traversal)
def _index_of(items: list[Any], value: Any) -> int:
    return next((index for index, item in enumerate(items) if equal(item, value)), -1)


@overload("list(A).lastIndexOf(A) int", cost=traversal)
def _last_index_of(items: list[Any], value: Any) -> int:
    return next((index for index in reversed(range(len(items))) if equal(items[index], value)), -1)


@overload("list(A).slice(int, int) list(A)", cost=traversal)
def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvaluationError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if end > len(items):
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


@overload("list(list(A)).flatten() list(A)", "list(dyn).flatten(int) list(dyn)", cost=traversal)
def _flatten(items: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    found: list[Any] = []
    for item in items:
        found.extend(_flatten(item, depth - 1) if depth and isinstance(item, list) else [item])
    return found


@overload("list(A).sort() list(A)", cost=traversal)
def _sort(items: list[Any]) -> list[Any]:
    return sorted(items, key=cmp_to_key(compare))


def sorted_by(items: list[Any], keys: list[Any]) -> list[Any]:
    """The items of `sortBy`, in the order of their keys."""
    pairs: list[tuple[Any, Any]] = list(zip(keys, items, strict=True))

    def order(one: tuple[Any, Any], other: tuple[Any, Any]) -> int:
        return compare(one[0], other[0])

    return [item for _, item in sorted(pairs, key=cmp_to_key(order))]


@overload("list(A).distinct() list(A)", cost=traversal)
def _distinct(items: list[Any]) -> list[Any]:
    found: list[Any] = []
    for item in items:
        if not contains(found, item):
            found.append(item)
    return found


@overload("list(A).reverse() list(A)", cost=traversal)
def _reverse(items: list[Any]) -> list[Any]:
    return items[::-1]


@overload("lists:range(int) list(int)", cost=lambda count: 1 + max(count, 0))
def _range(count: int) -> list[int]:
    if count > _MOST_NUMBERS:
        raise EvaluationError(f"lists.range({count}) is too long")
    return list(range(count))


@overload("sets:contains(list(A), list(A)) bool", cost=lambda one, other: 1 + len(one) * len(other))
def _set_contains(items: list[Any], others: list[Any]) -> bool:
    return all(contains(items, item) for item in others)


@overload("sets:equivalent(list(A), list(A)) bool", cost=lambda one, other: 1 + len(one) * len(other))
def _set_equivalent(items: list[Any], others: list[Any]) -> bool:
    return bool(_set_contains(items, others) and _set_contains(others, items))


@overload("sets:intersects(list(A), list(A)) bool", cost=lambda one, other: 1 + len(one) * len(other))
def _set_intersects(items: list[Any], others: list[Any]) -> bool:
    return any(contains(others, item) for item in items)
