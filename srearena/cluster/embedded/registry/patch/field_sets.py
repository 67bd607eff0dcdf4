"""Sets of fields, kept in the very form in which managedFields carries them: `{"f:spec": {"f:replicas": {}}}`.

A set is a dict from path elements to what lies below them. A path element is `f:<field or map key>`,
`k:<keys of a list item as JSON>`, `v:<list item as JSON>` or `i:<index>`. An element belongs to the set where
what is below it is empty, or holds a `.`; otherwise only something below it does. So reading a set from an
object and writing it back cost nothing. Sets are never changed once built: every operation returns a new one,
sharing what stayed the same. No set holds a node that is neither a member nor above one.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import orjson

from srearena.cluster.embedded.go_text import json_text, value_text

FieldSet = dict[str, Any]
LEAF: Final[FieldSet] = {}
SELF: Final = "."


def is_member(node: FieldSet) -> bool:
    return not node or SELF in node


def union(one: FieldSet, other: FieldSet) -> FieldSet:
    """What is in either."""
    if not one or one is other:
        return other
    if not other:
        return one
    result = dict(one)
    for key, theirs in other.items():
        mine = result.get(key)
        if mine is None:
            result[key] = theirs
        elif mine is not theirs and mine != theirs:
            merged = union(mine, theirs)
            if SELF not in merged and (is_member(mine) or is_member(theirs)):
                merged = {SELF: LEAF, **merged}
            result[key] = merged
    return result


def difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """What is in `one` and not in `other`. What lies below a member of `other` stays."""
    return _without(one, other, recursive=False)


def recursive_difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """What is in `one` and neither in `other` nor below a member of it."""
    return _without(one, other, recursive=True)


def _without(one: FieldSet, other: FieldSet, recursive: bool) -> FieldSet:
    result: FieldSet | None = None
    for key, theirs in other.items():
        if key == SELF:
            continue
        mine = one.get(key)
        if mine is None:
            continue
        removed = is_member(theirs)
        if recursive and removed:
            kept: FieldSet | None = None
        else:
            kept = _remaining(mine, theirs, removed, recursive)
            if kept is mine:
                continue
        if result is None:
            result = dict(one)
        if kept is None:
            del result[key]
        else:
            result[key] = kept
    return one if result is None else result


def _remaining(mine: FieldSet, theirs: FieldSet, removed: bool, recursive: bool) -> FieldSet | None:
    """What is left of one node; None where nothing is."""
    member = is_member(mine) and not removed
    below = _without(mine, theirs, recursive)
    if SELF in below and not member:
        below = {key: value for key, value in below.items() if key != SELF}
    if not below or (len(below) == 1 and SELF in below):
        return (mine if not mine else LEAF) if member else None
    if member and SELF not in below:
        return {SELF: LEAF, **below}
    return below


def intersection(one: FieldSet, other: FieldSet) -> FieldSet:
    """What is in both."""
    result: FieldSet = {}
    smaller, larger = (one, other) if len(one) <= len(other) else (other, one)
    for key, mine in smaller.items():
        theirs = larger.get(key)
        if theirs is None or key == SELF:
            continue
        below = intersection(mine, theirs) if mine and theirs else LEAF
        if is_member(mine) and is_member(theirs):
            result[key] = {SELF: LEAF, **below} if below else LEAF
        elif below:
            result[key] = below
    return result


def insert(target: FieldSet, path: tuple[str, ...], node: FieldSet = LEAF) -> None:
    """Put `node` at `path` into a set that is still being built; the only thing here that changes a set."""
    for element in path[:-1]:
        below = target.get(element)
        if below is None:
            below = target[element] = {}
        elif not below:
            below = target[element] = {SELF: LEAF}
        target = below
    here = target.get(path[-1])
    target[path[-1]] = node if here is None else _joined(here, node)


def _joined(one: FieldSet, other: FieldSet) -> FieldSet:
    merged = union(one, other)
    return {SELF: LEAF, **merged} if merged and SELF not in merged and (is_member(one) or is_member(other)) else merged


def paths(fields: FieldSet, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every member, members of a level before what is below them, in order."""
    ranked = sorted((key for key in fields if key != SELF), key=_rank)
    for key in ranked:
        if is_member(fields[key]):
            yield (*prefix, key)
    for key in ranked:
        if fields[key]:
            yield from paths(fields[key], (*prefix, key))


_shared: dict[bytes, FieldSet] = {}
"""Ordered sets by their JSON text, whatever the order of the elements in it."""
_MOST_SHARED: Final = 20_000


def ordered(fields: FieldSet) -> FieldSet:
    """Return the same set with its elements in the order in which the real server writes them.

    Equal sets are returned as one object, as far as memory allows: a thousand replicas have a thousand equal sets.
    """
    text = orjson.dumps(fields)
    found = _shared.get(text)
    if found is None:
        result = {key: ordered(fields[key]) if fields[key] else LEAF for key in sorted(fields, key=_rank)}
        if len(_shared) >= _MOST_SHARED:
            _shared.clear()
        found = _shared[text] = _shared.setdefault(orjson.dumps(result), result)
    return found


@lru_cache(maxsize=16384)
def _rank(element: str) -> tuple[Any, ...]:
    kind, text = element[:2], element[2:]
    if kind == "f:":
        return (1, text)
    if kind == "k:":
        return (2, *((name, *_value_rank(value)) for name, value in orjson.loads(text).items()))
    if kind == "v:":
        return (3, *_value_rank(orjson.loads(text)))
    return (0,) if element == SELF else (4, int(text))


def _value_rank(value: Any) -> tuple[int, Any]:
    if isinstance(value, bool):
        return (2, value)
    if isinstance(value, int | float):
        return (0, value)
    if isinstance(value, str):
        return (1, value)
    return (3, orjson.dumps(value))


@lru_cache(maxsize=16384, typed=True)
def key_element(names: tuple[str, ...], *values: Any) -> str:
    """The element of a list item that is identified by these keys, which come sorted."""
    return "k:{" + ",".join(f'"{n}":{json_text(v)}' for n, v in zip(names, values, strict=True) if v is not None) + "}"


@lru_cache(maxsize=4096, typed=True)
def value_element(value: Any) -> str:
    """The element of an item in a list that is a set."""
    return f"v:{json_text(value)}"


def path_text(path: tuple[str, ...]) -> str:
    """A path as conflicts print it: `.spec.containers[name="app"].image`."""
    return "".join(map(_element_text, path))


def _element_text(element: str) -> str:
    kind, text = element[:2], element[2:]
    if kind == "f:":
        return f".{text}"
    if kind == "k:":
        return "[" + ",".join(f"{name}={value_text(value)}" for name, value in orjson.loads(text).items()) + "]"
    if kind == "v:":
        return f"[={value_text(orjson.loads(text))}]"
    return f"[{text}]"


def parse(raw: Any, depth: int = 0) -> FieldSet:
    """A set as some client wrote it, in the form everything here relies on. Raises ValueError for what is none."""
    if not isinstance(raw, dict) or depth > 100:
        raise ValueError("not a set of fields")
    result: FieldSet = {}
    for key, below in raw.items():
        if key == SELF:
            result[SELF] = LEAF
            continue
        element = _normal(key)
        if element:
            node = parse(below, depth + 1) if below else LEAF
            result[element] = LEAF if node == {SELF: LEAF} else node
    return result


def _normal(element: str) -> str:
    """The element as this module writes it; empty for kinds of elements that are skipped."""
    if len(element) < 2 or element[1] != ":":
        raise ValueError(f"missing colon: {element}")
    kind, text = element[0], element[2:]
    if kind == "f":
        return element
    if kind == "i":
        return f"i:{int(text)}"
    if kind == "v":
        return value_element(_scalar(orjson.loads(text)))
    if kind == "k":
        keys = orjson.loads(text)
        if not isinstance(keys, dict):
            raise ValueError(f"not the keys of a list item: {element}")
        names = tuple(sorted(keys))
        return key_element(names, *(_scalar(keys[name]) for name in names))
    return ""


def _scalar(value: Any) -> Any:
    if isinstance(value, dict | list):
        raise ValueError("list items are identified by scalars")
    return value
