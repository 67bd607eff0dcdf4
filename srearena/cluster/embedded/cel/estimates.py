"""What an expression may cost at most, before it is evaluated, as cel-go and the API server estimate it.

A server refuses rules by this figure, so it follows theirs (`checker/cost.go` of cel-go 0.26, `library/cost.go` of
Kubernetes 1.34) in its peculiarities too: sizes are looked up by the path from a variable, a path that begins at a
value without one is read from the root, and what is unknown counts as the largest number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from srearena.cluster.embedded.cel.checker import Checker, namespaced
from srearena.cluster.embedded.cel.syntax import Call, Fold, ListOf, Literal, MapOf, Message, Name, Node, Select
from srearena.cluster.embedded.cel.types import ObjectType, Parameter, Type

UNKNOWN_COST: Final = 2**64 - 1
_LIST, _MAP, _MESSAGE = 10, 30, 40
"""The cost of making a value of a kind, beside that of its parts."""
_TRAVERSAL: Final = 0.1
_REGEX: Final = 0.25
_NAME_PATTERN: Final = 128 * _REGEX
"""The factor of a named format's pattern."""
_CHECK: Final = 350_000
"""Of an authorization check: an expression may have two."""
_ADDRESS: Final = 4
"""Comparing two addresses of 16 bytes."""
_ITEMS, _VALUES, _KEYS, _INDICES = "@items", "@values", "@keys", "@indices"


class Size(NamedTuple):
    """Characters, bytes, items or entries."""

    least: int
    most: int

    def joined(self, other: Size) -> Size:
        return Size(min(self.least, other.least), max(self.most, other.most))

    def plus(self, other: Size) -> Size:
        return Size(capped(self.least + other.least), capped(self.most + other.most))

    def times(self, other: Size) -> Size:
        return Size(capped(self.least * other.least), capped(self.most * other.most))

    def cost(self, factor: float) -> int:
        return capped(math.ceil(float(self.most) * factor))


UNKNOWN: Final = Size(0, UNKNOWN_COST)
_ONE: Final = Size(1, 1)
Sizes = Callable[[tuple[str, ...]], Size | None]
"""The size of what a path leads to; the first part is a variable."""


def capped(number: int) -> int:
    return min(number, UNKNOWN_COST)


@dataclass(frozen=True, slots=True)
class _Entry:
    """The sizes of a collection's keys and values."""

    is_list: bool
    key: Size
    value: Size


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known about a part of an expression."""

    type: Type
    cost: int
    size: Size | None = None
    entry: _Entry | None = None
    path: tuple[str, ...] = ()

    @property
    def extent(self) -> Size:
        return self.size if self.size is not None else UNKNOWN


def _both(one: _Entry | None, other: _Entry | None) -> _Entry | None:
    if one is None or other is None:
        return None
    return _Entry(one.is_list, one.key.joined(other.key), one.value.joined(other.value))


class Estimator:
    """Estimates the expressions that a checker has found right."""

    def __init__(self, checker: Checker, sizes: Sizes) -> None:
        self._types = checker.types
        self._sizes = sizes
        self._local: dict[str, _Known] = {}

    def cost(self, node: Node) -> int:
        """The most that the expression costs."""
        return self._known(node).cost

    def _known(self, node: Node) -> _Known:
        match node:
            case Literal():
                return self._settled(_Known(self._types[id(node)], 0, _literal_size(node.value)))
            case Name():
                return self._name(node)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListOf():
                parts = [self._known(item) for item in node.items]
                found = _Known(self._types[id(node)], _sum(parts) + _LIST, Size(len(parts), len(parts)))
                return replace(found, entry=_Entry(True, _ONE, _spread(parts)))
            case MapOf():
                keys = [self._known(key) for key, _, _ in node.entries]
                values = [self._known(value) for _, value, _ in node.entries]
                cost = _sum(keys) + _sum(values) + _MAP
                entry = _Entry(False, _spread(keys), _spread(values))
                return _Known(self._types[id(node)], capped(cost), Size(len(keys), len(keys)), entry)
            case Message():
                return _Known(self._types[id(node)], _sum([self._known(v) for _, v, _ in node.fields]) + _MESSAGE)
            case Fold():
                return self._fold(node)

    def _settled(self, known: _Known, fallback: Size | None = None) -> _Known:
        """With the size that follows from the path or the type, where none was found."""
        size = known.size
        if size is None and known.path:
            size = self._sizes(known.path)
        if size is None and _is_scalar(known.type):
            size = _ONE
        return replace(known, size=size if size is not None else fallback)

    def _name(self, node: Name) -> _Known:
        local = self._local.get(node.name)
        kind = self._types[id(node)]
        if local is None:
            return self._settled(_Known(kind, 1, path=(node.name,)))
        return self._settled(_Known(kind, 1, entry=local.entry, path=local.path), fallback=local.size)

    def _select(self, node: Select) -> _Known:
        operand = self._known(node.operand)
        kind = self._types[id(node)]
        if node.test:
            return self._settled(_Known(kind, operand.cost))
        if node.optional:
            return self._settled(_Known(kind, capped(operand.cost + 1)))
        has_fields = operand.type.name == "map" or isinstance(operand.type, ObjectType | Parameter)
        cost = capped(operand.cost + (1 if has_fields else 0))
        return self._settled(_Known(kind, cost, path=(*operand.path, node.field)))

    # --- calls -----------------------------------------------------------------------------------------------

    def _call(self, node: Call) -> _Known:
        name = namespaced(node)
        target = None if node.target is None or name else self._known(node.target)
        name = name or node.function
        arguments = [self._known(argument) for argument in node.arguments]
        kind = self._types[id(node)]
        before = _sum(arguments) + (target.cost if target is not None else 0)
        if name == "dyn":
            return replace(arguments[0], type=kind, cost=capped(arguments[0].cost + 1), path=())
        if name in ("_&&_", "_||_"):
            return self._settled(_Known(kind, capped(before)))
        if name == "_?_:_":
            return self._settled(_conditional(kind, *arguments))
        if name == "_[_]":
            return self._indexed(kind, before, arguments[0])
        own, size = self._own_cost(name, target, arguments)
        entry = _both(arguments[0].entry, arguments[1].entry) if name == "_+_" and len(arguments) == 2 else None
        return self._settled(_Known(kind, capped(before + own), size, entry))

    def _indexed(self, kind: Type, before: int, operand: _Known) -> _Known:
        part = {"list": _ITEMS, "map": _VALUES}.get(operand.type.name)
        size = operand.entry.value if operand.entry is not None and part else None
        path = (*operand.path, part) if part else ()
        return self._settled(_Known(kind, capped(before + 1), size, path=path))

    def _own_cost(self, name: str, target: _Known | None, arguments: list[_Known]) -> tuple[int, Size | None]:
        """What a call adds to the cost of its parts, and the size of its result."""
        parts = [*([] if target is None else [target]), *arguments]
        if name in _OVER_FIRST and arguments:
            return arguments[0].extent.cost(_OVER_FIRST[name]), None
        if name in _ORDERED and target is not None:
            return self._over_items(target), None
        if name in _SAME_SIZE and parts:
            return parts[0].extent.cost(_TRAVERSAL), parts[0].extent
        special = _SPECIAL.get(name)
        found = special(parts) if special is not None else None
        if found is not None:
            return found
        if name == "join" and target is not None:
            return self._join(target, arguments)
        return 1, None

    def _items_of(self, collection: _Known) -> Size | None:
        """The size of the items of a list; None for what is no list."""
        if not collection.type.parameters:
            return None
        found = self._sizes((*collection.path, _ITEMS)) if collection.path else None
        return found if found is not None else UNKNOWN

    def _over_items(self, target: _Known) -> int:
        """Comparing the items of a list one by one, or going through a text."""
        items = self._items_of(target)
        if items is None:
            return target.extent.cost(_TRAVERSAL)
        each = 1
        if target.type.parameters[0].name in ("string", "bytes"):
            each += items.cost(_TRAVERSAL)
        return capped(target.extent.most * each)

    def _join(self, target: _Known, arguments: list[_Known]) -> tuple[int, Size]:
        count, items = target.extent, self._items_of(target)
        size = count.times(items) if items is not None else Size(0, 0)
        if arguments:
            between = Size(max(count.least - 1, 0), max(count.most - 1, 0))
            size = size.plus(arguments[0].extent.times(between))
        return size.cost(_TRAVERSAL), size

    # --- macros ----------------------------------------------------------------------------------------------

    def _fold(self, node: Fold) -> _Known:
        target = self._known(node.target)
        kind = self._types[id(node)]
        if node.macro in ("optMap", "optFlatMap"):
            return self._optional(node, target, kind)
        outer = self._local
        self._local = {**outer, **self._variables(node, target)}
        parts = [self._known(argument) for argument in node.arguments]
        item = parts[-1]
        if node.macro == "filter":
            local = self._local[node.variables[0]]
            item = self._settled(_Known(kind.parameters[0], 1, path=local.path), fallback=local.size)
        self._local = outer
        return self._settled(_macro(node.macro, target, parts, item, kind))

    def _variables(self, node: Fold, target: _Known) -> dict[str, _Known]:
        entry, is_list = target.entry, target.type.name == "list"
        if entry is not None:
            is_list = entry.is_list
        key = _Known(target.type, 0, entry.key if entry else None, path=(*target.path, _INDICES if is_list else _KEYS))
        value = _Known(
            target.type, 0, entry.value if entry else None, path=(*target.path, _ITEMS if is_list else _VALUES)
        )
        if len(node.variables) == 2:
            return dict(zip(node.variables, (key, value), strict=True))
        return {node.variables[0]: value if is_list else key}

    def _optional(self, node: Fold, target: _Known, kind: Type) -> _Known:
        """`target.hasValue() ? f(cel.bind(variable, target.value(), expression)) : optional.none()`."""
        outer = self._local
        self._local = {**outer, node.variables[0]: _Known(kind, 0)}
        expression = self._known(node.arguments[0])
        self._local = outer
        mapped = 1 if node.macro == "optMap" else 0
        bound = mapped + _LIST + target.cost + 1 + expression.cost
        return self._settled(_Known(kind, capped(target.cost + 1 + max(bound, 1))))


def _literal_size(value: object) -> Size:
    length = len(value) if isinstance(value, str | bytes) else 1
    return Size(length, length)


def _is_scalar(kind: Type) -> bool:
    if kind.name == "optional_type" and kind.parameters:
        return _is_scalar(kind.parameters[0])
    return kind.name in _SCALARS


def _sum(parts: Iterable[_Known]) -> int:
    return capped(sum(part.cost for part in parts))


def _spread(parts: list[_Known]) -> Size:
    """The sizes of the parts of a collection that is written out."""
    if not parts:
        return Size(0, 0)
    return Size(min(part.extent.least for part in parts), max(part.extent.most for part in parts))


def _conditional(kind: Type, condition: _Known, one: _Known, other: _Known) -> _Known:
    cost = capped(condition.cost + max(one.cost, other.cost))
    return _Known(kind, cost, one.extent.joined(other.extent), _both(one.entry, other.entry))


def _macro(macro: str, target: _Known, parts: list[_Known], item: _Known, kind: Type) -> _Known:
    """A loop: its accumulator, a condition and a step for each item, and a result."""
    count, last = target.extent, parts[-1].cost
    if macro in ("all", "exists"):
        # The condition is @not_strictly_false(accumulator), for exists of its negation; the step is a logical operator.
        each = last + (3 if macro == "all" else 4)
        return _Known(kind, capped(target.cost + 1 + count.most * each), _ONE)
    if macro in ("exists_one", "existsOne"):
        # The step adds one where the predicate holds, the result compares with one.
        return _Known(kind, capped(target.cost + 2 + count.most * (last + 2)), _ONE)
    if macro in ("transformMap", "transformMapEntry"):
        each = last + (3 if macro == "transformMap" else 2)
        each = _guarded(parts, each)
        return _Known(kind, capped(target.cost + _MAP + 1 + count.most * each), count)
    # The accumulator is a list, and each step adds a list of one item to it.
    each = last + _LIST + 2 if macro != "filter" else last + _LIST + 3
    each = _guarded(parts, each)
    entry = _Entry(True, _ONE, Size(0, item.extent.most))
    cost = target.cost + _LIST + 1 + count.most * each
    if macro == "sortBy":
        cost += count.times(count).cost(2) + 1 + _LIST
    return _Known(kind, capped(cost), count, entry)


def _guarded(parts: list[_Known], each: int) -> int:
    """A step that is made only where a condition holds."""
    return parts[0].cost + max(each, 1) if len(parts) == 2 else each


# --- functions -----------------------------------------------------------------------------------------------

_Found = tuple[int, Size | None] | None


def _text(part: _Known, kind: str = "string") -> bool:
    """Whether it may be a text: values of unknown type may be anything."""
    return part.type.name in (kind, "dyn") or isinstance(part.type, Parameter)


def _plus(parts: list[_Known]) -> _Found:
    if len(parts) != 2:
        return None
    size = parts[0].extent.plus(parts[1].extent)
    if parts[0].type.name == "list":
        return 1, size
    if all(part.type.name in ("string", "bytes", "dyn") for part in parts):
        return max(size.cost(_TRAVERSAL), 1 if any(part.type.name == "dyn" for part in parts) else 0), size
    return None


def _compared(parts: list[_Known]) -> _Found:
    return Size(0, min(part.extent.most for part in parts)).cost(_TRAVERSAL), None


def _equal(parts: list[_Known]) -> _Found:
    same = parts[0].type == parts[1].type
    if same and parts[0].type.name in _FIXED_EQUALITY:
        return 1, None
    return _compared(parts)


def _ordered(parts: list[_Known]) -> _Found:
    if any(_text(part) or part.type.name == "bytes" for part in parts):
        dynamic = any(part.type.name == "dyn" for part in parts)
        found = _compared(parts)
        return (max(found[0], 1), None) if dynamic and found is not None else found
    return None


def _in(parts: list[_Known]) -> _Found:
    if parts[1].type.name == "map":
        return None
    cost = parts[1].extent.cost(1)
    return (cost if parts[1].type.name == "list" else max(cost, 1)), None


def _matches(parts: list[_Known]) -> _Found:
    text = parts[0].extent.plus(_ONE).cost(_TRAVERSAL)
    return capped(text * parts[1].extent.cost(_REGEX)), None


def _find(parts: list[_Known]) -> _Found:
    found = _matches(parts)
    return None if found is None else (found[0], Size(0, parts[0].extent.most))


def _contains(parts: list[_Known]) -> _Found:
    return capped(parts[0].extent.cost(_TRAVERSAL) * parts[1].extent.cost(_TRAVERSAL)), None


def _replace(parts: list[_Known]) -> _Found:
    text, old, new = (part.extent for part in parts[:3])
    most = text.most
    if old.least == 0:
        # An empty text is found before, between and after all characters.
        most = capped(capped(text.most + 1) * new.most + text.most)
    elif new.most > old.least:
        most = capped(math.ceil(text.most / old.least) * new.most)
    return text.cost(2 * _TRAVERSAL), Size(0, most)


def _split(parts: list[_Known]) -> _Found:
    return parts[0].extent.cost(2 * _TRAVERSAL), Size(0, parts[0].extent.most)


def _contains_address(parts: list[_Known]) -> _Found:
    parsed = parts[1].extent.cost(_TRAVERSAL) if _text(parts[1]) else 0
    return capped(_ADDRESS + parsed), None


def _contains_range(parts: list[_Known]) -> _Found:
    # The mask is compared as well: another 16 bytes, and one.
    parsed = parts[1].extent.cost(_TRAVERSAL) if _text(parts[1]) else 0
    return capped(_ADDRESS + 2 + 1 + parsed), None


def _to_string(parts: list[_Known]) -> _Found:
    if not _text(parts[0], "bytes"):
        return None
    size = parts[0].extent
    return max(size.cost(_TRAVERSAL), 1 if parts[0].type.name == "dyn" else 0), Size(size.least // 4, size.most)


def _to_bytes(parts: list[_Known]) -> _Found:
    if not _text(parts[0]):
        return None
    size = parts[0].extent
    return max(size.cost(_TRAVERSAL), 1 if parts[0].type.name == "dyn" else 0), Size(size.least, capped(size.most * 4))


def _quote(parts: list[_Known]) -> _Found:
    size = parts[0].extent
    return size.cost(_TRAVERSAL), Size(capped(size.least + 2), capped(size.most * 2 + 2))


def _validate(parts: list[_Known]) -> _Found:
    return capped(math.ceil(parts[1].extent.cost(_TRAVERSAL) * _NAME_PATTERN)), None


def _sets(factor: int) -> Callable[[list[_Known]], _Found]:
    return lambda parts: (capped(parts[0].extent.times(parts[1].extent).cost(factor) + 1), None)


def _address(parts: list[_Known]) -> _Found:
    return (1, None) if parts[0].type.name == "net.CIDR" else (parts[0].extent.cost(_TRAVERSAL), None)


_SCALARS: Final = frozenset(("bool", "int", "uint", "double", "google.protobuf.Timestamp", "google.protobuf.Duration"))
_FIXED_EQUALITY: Final = frozenset(
    (
        *("net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.Semver"),
        *(f"kubernetes.authorization.{kind}" for kind in ("Authorizer", "PathCheck", "GroupCheck", "ResourceCheck")),
        "kubernetes.authorization.Decision",
    )
)
_OVER_FIRST: Final[Mapping[str, float]] = {
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _TRAVERSAL),
    **dict.fromkeys(("startsWith", "endsWith"), _TRAVERSAL),
    "ip.isCanonical": 2 * _TRAVERSAL,
}
"""Functions that go through their first argument."""
_ORDERED: Final = frozenset(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"))
_SAME_SIZE: Final = frozenset(("url", "lowerAscii", "upperAscii", "substring", "trim"))
"""Functions whose result is as large as the text that they go through."""
_SPECIAL: Final[Mapping[str, Callable[[list[_Known]], _Found]]] = {
    "_+_": _plus,
    "_==_": _equal,
    "_!=_": _compared,
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _ordered),
    "@in": _in,
    "matches": _matches,
    "contains": _contains,
    "find": _find,
    "findAll": _find,
    "replace": _replace,
    "split": _split,
    "containsIP": _contains_address,
    "containsCIDR": _contains_range,
    "string": _to_string,
    "bytes": _to_bytes,
    "strings.quote": _quote,
    "validate": _validate,
    "ip": _address,
    "format": lambda parts: (parts[0].extent.cost(_TRAVERSAL), None),
    "check": lambda _parts: (_CHECK, None),
    "sets.contains": _sets(1),
    "sets.intersects": _sets(1),
    "sets.equivalent": _sets(2),
}
