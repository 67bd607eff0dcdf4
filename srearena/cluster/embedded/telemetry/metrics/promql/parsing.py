"""Parse queries with `promql-parser`.

Rejected queries get the error messages of the real server: see `parse_errors`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import promql_parser

from srearena.cluster.embedded.telemetry.metrics.labels import NAME
from srearena.cluster.embedded.telemetry.metrics.matchers import Matcher, PatternError
from srearena.cluster.embedded.telemetry.metrics.promql.errors import BadQuery
from srearena.cluster.embedded.telemetry.metrics.promql.nodes import (
    Aggregation,
    Call,
    Matching,
    Moment,
    Negation,
    Node,
    Number,
    Operation,
    RangeSelector,
    Selector,
    Subquery,
    Text,
    children,
)
from srearena.cluster.embedded.telemetry.metrics.promql.parse_errors import find_parse_error

__all__ = ["parse", "parse_selector"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_QUERY = 20_000
_MAX_DEPTH, _MAX_HEIGHT, _MAX_OPERATORS = 200, 100, 500
_TOO_DEEP = "1:1: parse error: the query is too long or too deeply nested"
_OPERATORS = {"Equal": "=", "NotEqual": "!=", "Re": "=~", "NotRe": "!~"}
_HOLT_WINTERS = promql_parser.Function(
    "holt_winters",
    [promql_parser.ValueType.Matrix, promql_parser.ValueType.Scalar, promql_parser.ValueType.Scalar],
    promql_parser.ValueType.Vector,
)
promql_parser.clear_extra_functions()
promql_parser.register_extra_functions([_HOLT_WINTERS])


@lru_cache(maxsize=1024)
def parse(query: str) -> Node:
    """Parse a query; BadQuery where it is invalid."""
    if _is_monstrous(query):
        raise BadQuery(_TOO_DEEP)
    if re.search(r"@\s*-", query):
        raise BadQuery("1:1: parse error: times before 1970 are not supported in the @ modifier")
    try:
        parsed = promql_parser.parse(query)
    except ValueError as error:
        raise BadQuery(find_parse_error(query) or f"1:1: parse error: {error}") from None
    try:
        node = _converted(parsed)
        if _height(node) <= _MAX_HEIGHT:
            return node
    except PatternError as error:
        raise BadQuery(f"1:1: parse error: {error}") from None
    except RecursionError:
        pass
    raise BadQuery(_TOO_DEEP)


def parse_selector(text: str) -> Selector:
    """Parse a series selector, as in `match[]`."""
    node = parse(text)
    if not isinstance(node, Selector) or node.moment != Moment():
        raise BadQuery(f"1:1: parse error: {text!r} is not a series selector")
    return node


_STRINGS = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|`[^`]*`", re.DOTALL)
_OPERATORS_IN_TEXT = re.compile(r"[-+*/%^]|[=!<>]=?|\b(?:and|or|unless|atan2|offset)\b")


def _is_monstrous(query: str) -> bool:
    """Return whether parsing would take too long: the parser copies nested parts once per level."""
    if len(query) > _MAX_QUERY:
        return True
    bare = _STRINGS.sub('""', query)
    if len(_OPERATORS_IN_TEXT.findall(bare)) > _MAX_OPERATORS:
        return True
    depth = deepest = 0
    for char in bare:
        if char == "(":
            depth += 1
            deepest = max(deepest, depth)
        elif char == ")":
            depth -= 1
    return deepest > _MAX_DEPTH


def _height(node: Node) -> int:
    return 1 + max((_height(child) for child in children(node)), default=0)


# Conversion


def _converted(expr: Any) -> Node:
    match expr:
        case promql_parser.NumberLiteral():
            return Number(expr.val)
        case promql_parser.StringLiteral():
            return Text(expr.val)
        case promql_parser.ParenExpr():
            return _converted(expr.expr)
        case promql_parser.UnaryExpr():
            return Negation(_converted(expr.expr))
        case promql_parser.VectorSelector():
            return _selector(expr)
        case promql_parser.MatrixSelector():
            return RangeSelector(_selector(expr.vector_selector), _duration(expr.range))
        case promql_parser.SubqueryExpr():
            step = None if expr.step is None else _duration(expr.step)
            return Subquery(_converted(expr.expr), _duration(expr.range or timedelta()), step or None, _moment(expr))
        case promql_parser.Call():
            return Call(expr.func.name, tuple(_converted(argument) for argument in expr.args))
        case promql_parser.AggregateExpr():
            return _aggregation(expr)
        case promql_parser.BinaryExpr():
            return _operation(expr)
        case _:
            raise BadQuery(f"1:1: parse error: {type(expr).__name__} is not supported")


def _duration(delta: timedelta) -> int:
    return round(delta.total_seconds() * 1000)


def _moment(expr: Any) -> Moment:
    offset = 0 if expr.offset is None else _duration(expr.offset)
    if expr.at is None:
        return Moment(offset)
    match expr.at.type:
        case promql_parser.AtModifierType.Start:
            return Moment(offset, "start")
        case promql_parser.AtModifierType.End:
            return Moment(offset, "end")
        case _:
            return Moment(offset, _duration(expr.at.at - _EPOCH))


def _selector(expr: Any) -> Selector:
    named = [] if expr.name is None else [Matcher(NAME, "=", expr.name)]
    groups = expr.matchers.or_matchers or [expr.matchers.matchers]
    alternatives = tuple(
        (*named, *(Matcher(matcher.name, _OPERATORS[_name(matcher.op)], matcher.value) for matcher in group))
        for group in groups
    )
    return Selector(alternatives, _moment(expr))


def _aggregation(expr: Any) -> Aggregation:
    labels = () if expr.modifier is None else tuple(expr.modifier.labels)
    without = expr.modifier is not None and expr.modifier.type == promql_parser.AggModifierType.Without
    parameter = None if expr.param is None else _converted(expr.param)
    return Aggregation(str(expr.op), _converted(expr.expr), parameter, labels, without)


_MANY = {"ManyToOne": "left", "OneToMany": "right"}


def _name(member: Any) -> str:
    """The name of a member of the parser's enumerations, which cannot be hashed."""
    return str(member).rpartition(".")[2]


def _operation(expr: Any) -> Operation:
    left, right = _converted(expr.lhs), _converted(expr.rhs)
    modifier = expr.modifier
    if modifier is None:
        return Operation(str(expr.op), left, right, Matching())
    matching = Matching(
        labels=() if modifier.matching is None else tuple(modifier.matching.labels),
        on=modifier.matching is not None and modifier.matching.type == promql_parser.LabelModifierType.Include,
        many=_MANY.get(_name(modifier.card), ""),
        include=tuple(modifier.group_labels or ()),
        fill_left=modifier.fill_values.lhs,
        fill_right=modifier.fill_values.rhs,
    )
    return Operation(str(expr.op), left, right, matching, modifier.return_bool)
