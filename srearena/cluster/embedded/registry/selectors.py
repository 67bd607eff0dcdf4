"""Label selectors, from their query-string form or from a LabelSelector object, compiled into matchers.

A selector is a conjunction of requirements, kept sorted by key as the real parser keeps them, so that printing
and parsing are inverse. Parsing is cached: the same few selectors come with every request and every resync.
Whatever cannot be parsed raises `SelectorError`, a 400 in the words of k8s.io/apimachinery/pkg/labels.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.registry.errors import BadRequest, FieldError, aggregate
from srearena.cluster.embedded.registry.label_syntax import label_value_errors, qualified_name_errors


class SelectorError(BadRequest):
    """A selector that cannot be understood."""


class Operator(StrEnum):
    IN = "in"
    NOT_IN = "notin"
    EQUALS = "="
    DOUBLE_EQUALS = "=="
    NOT_EQUALS = "!="
    GREATER = "gt"
    LESS = "lt"
    EXISTS = "exists"
    ABSENT = "!"


_POSITIVE: Final = frozenset({Operator.IN, Operator.EQUALS, Operator.DOUBLE_EQUALS})
_NEGATIVE: Final = frozenset({Operator.NOT_IN, Operator.NOT_EQUALS})
_UNARY: Final = frozenset({Operator.EXISTS, Operator.ABSENT})
_ORDERED: Final = frozenset({Operator.GREATER, Operator.LESS})
# How an operator is written between key and value, where that differs from its name.
_SPELLING: Final = {
    Operator.IN: " in ",
    Operator.NOT_IN: " notin ",
    Operator.GREATER: ">",
    Operator.LESS: "<",
}
# The binary operators by their token in a selector string.
_TOKENS: Final = {
    "in": Operator.IN,
    "notin": Operator.NOT_IN,
    "=": Operator.EQUALS,
    "==": Operator.DOUBLE_EQUALS,
    "!=": Operator.NOT_EQUALS,
    ">": Operator.GREATER,
    "<": Operator.LESS,
}
_BINARY_NAMES: Final = "in, notin, =, ==, !=, gt, lt"
_EXPRESSION_OPERATORS: Final = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.ABSENT,
}
_NODE_OPERATORS: Final = {**_EXPRESSION_OPERATORS, "Gt": Operator.GREATER, "Lt": Operator.LESS}
_SET_RULE: Final = "for 'in', 'notin' operators, values set can't be empty"
_EXACT_RULE: Final = "exact-match compatibility requires one single value"
_UNARY_RULE: Final = "values set must be empty for exists and does not exist"
_ORDER_RULE: Final = "for 'Gt', 'Lt' operators, exactly one value is required"
# The fewest and most values an operator takes, and what is said when it gets another number of them.
_ARITY: Final[Mapping[Operator, tuple[int, float, str]]] = {
    Operator.IN: (1, math.inf, _SET_RULE),
    Operator.NOT_IN: (1, math.inf, _SET_RULE),
    Operator.EQUALS: (1, 1, _EXACT_RULE),
    Operator.DOUBLE_EQUALS: (1, 1, _EXACT_RULE),
    Operator.NOT_EQUALS: (1, 1, _EXACT_RULE),
    Operator.EXISTS: (0, 0, _UNARY_RULE),
    Operator.ABSENT: (0, 0, _UNARY_RULE),
    Operator.GREATER: (1, 1, _ORDER_RULE),
    Operator.LESS: (1, 1, _ORDER_RULE),
}
_INTEGER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)


def _int64(text: str) -> int | None:
    # Nineteen digits hold every int64; a longer run is either padded with zeros or out of range.
    if not _INTEGER.fullmatch(text):
        return None
    digits = text.lstrip("+-").lstrip("0") or "0"
    if len(digits) > 19:
        return None
    number = -int(digits) if text.startswith("-") else int(digits)
    return number if -(2**63) <= number < 2**63 else None


class Requirement:
    """One term: a key, an operator and its values. Immutable; valid by construction."""

    __slots__ = ("_bound", "_values", "key", "operator", "values")

    def __init__(self, key: str, operator: Operator, values: tuple[str, ...] = ()) -> None:
        errors: list[FieldError] = []
        if wrong := qualified_name_errors(key):
            errors.append(FieldError.invalid("key", key, "; ".join(wrong)))
        fewest, most, rule = _ARITY[operator]
        if not fewest <= len(values) <= most:
            errors.append(FieldError.invalid("values", list(values), rule))
        for index, value in enumerate(values):
            if operator in _ORDERED and _int64(value) is None:
                what = "for 'Gt', 'Lt' operators, the value must be an integer"
                errors.append(FieldError.invalid(f"values[{index}]", value, what))
        for index, value in enumerate(values):
            if wrong := label_value_errors(value):
                errors.append(FieldError.invalid(f"values[{index}][{key}]", value, "; ".join(wrong)))
        if errors:
            raise SelectorError(aggregate(map(str, errors)))
        self.key = key
        self.operator = operator
        self.values = values
        self._values = frozenset(values)
        self._bound = (_int64(values[0]) or 0) if operator in _ORDERED else 0

    def matches(self, labels: Mapping[str, str]) -> bool:
        operator = self.operator
        value = labels.get(self.key)
        if operator in _POSITIVE:
            return value in self._values
        if operator in _NEGATIVE:
            return value not in self._values
        if operator is Operator.EXISTS:
            return value is not None
        if operator is Operator.ABSENT:
            return value is None
        number = None if value is None else _int64(value)
        if number is None:
            return False
        return number > self._bound if operator is Operator.GREATER else number < self._bound

    def __str__(self) -> str:
        if self.operator in _UNARY:
            return f"!{self.key}" if self.operator is Operator.ABSENT else self.key
        values = ",".join(sorted(self.values))
        if self.operator in (Operator.IN, Operator.NOT_IN):
            values = f"({values})"
        return f"{self.key}{_SPELLING.get(self.operator, str(self.operator))}{values}"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Requirement):
            return NotImplemented
        return (self.key, self.operator, self.values) == (other.key, other.operator, other.values)

    def __hash__(self) -> int:
        return hash((self.key, self.operator, self.values))

    def __repr__(self) -> str:
        return f"Requirement({str(self)!r})"


class LabelSelector:
    """A conjunction of requirements; without any it matches everything."""

    __slots__ = ("_equal", "_others", "_selectable", "requirements")

    def __init__(self, requirements: tuple[Requirement, ...] = (), *, selectable: bool = True) -> None:
        self.requirements = tuple(sorted(requirements, key=lambda requirement: requirement.key))
        self._selectable = selectable
        exact = [r for r in self.requirements if r.operator in _POSITIVE and len(r.values) == 1]
        self._equal = tuple((r.key, r.values[0]) for r in exact)
        self._others = tuple(r for r in self.requirements if r not in exact)

    @property
    def empty(self) -> bool:
        """Whether everything matches."""
        return self._selectable and not self.requirements

    def matches(self, labels: Mapping[str, str]) -> bool:
        for key, value in self._equal:
            if labels.get(key) != value:
                return False
        for requirement in self._others:
            if not requirement.matches(labels):
                return False
        return self._selectable

    def exact(self, key: str) -> str | None:
        """The one value that label must have, where the selector demands one."""
        return next((value for name, value in self._equal if name == key), None)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LabelSelector):
            return NotImplemented
        return (self.requirements, self._selectable) == (other.requirements, other._selectable)

    def __hash__(self) -> int:
        return hash((self.requirements, self._selectable))

    def __repr__(self) -> str:
        return f"LabelSelector({str(self)!r})" if self._selectable else "LabelSelector.NOTHING"


EVERYTHING: Final = LabelSelector()
NOTHING: Final = LabelSelector(selectable=False)


@lru_cache(maxsize=4096)
def parse_label_selector(text: str) -> LabelSelector:
    """The selector of a `labelSelector` parameter."""
    return LabelSelector(_Parser(text).parse()) if text else EVERYTHING


def label_selector_of(selector: Mapping[str, Any] | None) -> LabelSelector:
    """The matcher of a LabelSelector object: null selects nothing, an empty one everything."""
    if selector is None:
        return NOTHING
    match_labels = selector.get("matchLabels") or {}
    expressions = selector.get("matchExpressions") or ()
    return _compiled(
        tuple(match_labels.items()),
        tuple((e.get("key", ""), e.get("operator", ""), tuple(e.get("values") or ())) for e in expressions),
    )


def node_selector_of(expressions: Iterable[Mapping[str, Any]]) -> LabelSelector:
    """The matcher of the expressions of a node selector term, which can compare numbers, too."""
    rows = tuple((e.get("key", ""), e.get("operator", ""), tuple(e.get("values") or ())) for e in expressions)
    return _compiled((), rows, for_nodes=True)


def label_set_selector(labels: Mapping[str, str] | None) -> LabelSelector:
    """The matcher of a plain map, as Services and ReplicationControllers carry it."""
    return _compiled(tuple((labels or {}).items()), ())


@lru_cache(maxsize=4096)
def _compiled(
    labels: tuple[tuple[str, str], ...],
    expressions: tuple[tuple[str, str, tuple[str, ...]], ...],
    *,
    for_nodes: bool = False,
) -> LabelSelector:
    requirements = [Requirement(key, Operator.EQUALS, (value,)) for key, value in labels]
    operators = _NODE_OPERATORS if for_nodes else _EXPRESSION_OPERATORS
    for key, name, values in expressions:
        operator = operators.get(name)
        if operator is None:
            raise SelectorError(f"{quoted(name or '')} is not a valid label selector operator")
        requirements.append(Requirement(key, operator, values))
    return LabelSelector(tuple(requirements))


# A NUL ends a token in the real scanner and is swallowed with it; at the start of a token it ends the text.
_TOKEN: Final = re.compile(r"[ \t\r\n]*(?:(==|!=|[=!(),<>])\0?|([^=!(),<>\0 \t\r\n]+)\0?)")
_END: Final = ("end", "")


class _Parser:
    """Recursive descent over the tokens: (kind, literal), where words other than symbols are `word`.

    `in` and `notin` are operators only where an operator is expected, and plain words everywhere else.
    """

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        position = 0
        while found := _TOKEN.match(text, position):
            symbol, word = found.groups()
            self._tokens.append((symbol, symbol) if symbol else ("word", word))
            position = found.end()
        self._tokens.append(_END)
        self._position = 0

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._position]

    def _next(self) -> tuple[str, str]:
        token = self._tokens[self._position]
        self._position += 1
        return token

    def parse(self) -> tuple[Requirement, ...]:
        requirements: list[Requirement] = []
        while True:
            kind, literal = self._peek()
            if kind == "end":
                return tuple(requirements)
            if kind not in ("word", "!"):
                raise SelectorError(f"found '{literal}', expected: !, identifier, or 'end of string'")
            try:
                requirements.append(self._requirement())
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error.message}") from None
            kind, literal = self._next()
            if kind == "end":
                return tuple(requirements)
            if kind != ",":
                raise SelectorError(f"found '{literal}', expected: ',' or 'end of string'")
            kind, literal = self._peek()
            if kind not in ("word", "!"):
                raise SelectorError(f"found '{literal}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        kind, literal = self._next()
        negated = kind == "!"
        if negated:
            kind, literal = self._next()
        if kind != "word":
            raise SelectorError(f"found '{literal}', expected: identifier")
        key = literal
        if wrong := qualified_name_errors(key):
            raise SelectorError(str(FieldError.invalid("<nil>", key, "; ".join(wrong))))
        if negated:
            return Requirement(key, Operator.ABSENT)
        if self._peek()[0] in ("end", ","):
            return Requirement(key, Operator.EXISTS)
        _, literal = self._next()
        operator = _TOKENS.get(literal)
        if operator is None:
            raise SelectorError(f"found '{literal}', expected: {_BINARY_NAMES}")
        values = self._set() if operator in (Operator.IN, Operator.NOT_IN) else self._exact()
        return Requirement(key, operator, tuple(sorted(values)))

    def _exact(self) -> set[str]:
        if self._peek()[0] in ("end", ","):
            return {""}
        kind, literal = self._next()
        if kind != "word":
            raise SelectorError(f"found '{literal}', expected: identifier")
        return {literal}

    def _set(self) -> set[str]:
        kind, literal = self._next()
        if kind != "(":
            raise SelectorError(f"found '{literal}' expected: '('")
        kind, literal = self._peek()
        if kind == ")":
            self._next()
            return {""}
        if kind not in ("word", ","):
            raise SelectorError(f"found '{literal}', expected: ',', ')' or identifier")
        values = self._list()
        self._next()  # the list ends only before a closing parenthesis
        return values

    def _list(self) -> set[str]:
        values: set[str] = set()
        while True:
            kind, literal = self._next()
            if kind == "word":
                values.add(literal)
                kind, literal = self._peek()
                if kind == ")":
                    return values
                if kind != ",":
                    raise SelectorError(f"found '{literal}', expected: ',' or ')'")
            elif kind == ",":
                if not values:
                    values.add("")
                kind = self._peek()[0]
                if kind == ")":
                    values.add("")
                    return values
                if kind == ",":
                    self._next()
                    values.add("")
            else:
                raise SelectorError(f"found '{literal}', expected: ',', or identifier")
