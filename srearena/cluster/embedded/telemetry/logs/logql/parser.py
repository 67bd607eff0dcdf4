"""Parser of queries: selectors, ranges, aggregations and arithmetic, with Loki's precedences and error messages."""

from __future__ import annotations

from functools import lru_cache

from srearena.cluster.embedded.telemetry.logs.logql.arithmetic import fold
from srearena.cluster.embedded.telemetry.logs.logql.cursor import Cursor
from srearena.cluster.embedded.telemetry.logs.logql.errors import QueryError, SyntaxProblem
from srearena.cluster.embedded.telemetry.logs.logql.lexer import RANGE_OPERATIONS, VECTOR_OPERATIONS
from srearena.cluster.embedded.telemetry.logs.logql.stage_parser import matcher, stages
from srearena.cluster.embedded.telemetry.logs.logql.syntax import (
    Binary,
    Expression,
    Grouping,
    LabelReplace,
    Literal,
    LogQuery,
    LogRange,
    Matching,
    Metric,
    PipelineStage,
    RangeAggregation,
    Unwrap,
    VectorAggregation,
    VectorOf,
)
from srearena.cluster.embedded.telemetry.metrics.matchers import Matcher
from srearena.regular_expressions import PatternError, pattern

MAX_LENGTH = 131_072
_MAX_DEPTH = 100
_PRECEDENCE = {"or": 1, "and": 2, "unless": 2}
_PRECEDENCE |= dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), 3)
_PRECEDENCE |= {"+": 4, "-": 4, "*": 5, "/": 5, "%": 5, "^": 6}
_SET_OPERATORS = ("or", "and", "unless")
_GROUPED = frozenset(f"{name}_over_time" for name in "avg stddev stdvar quantile max min first last".split())
_UNWRAPPING = _GROUPED | {"sum_over_time", "rate", "rate_counter", "absent_over_time"}
_COUNTING = frozenset(("bytes_over_time", "bytes_rate", "count_over_time", "rate", "absent_over_time"))
_PARAMETRISED = ("topk", "bottomk", "approx_topk")
_TOO_BROAD = (
    "queries require at least one regexp or equality matcher that does not have an empty-compatible value. "
    'For instance, app=~".*" does not meet this requirement, but app=~".+" will'
)


@lru_cache(maxsize=256)
def parse(query: str) -> Expression:
    """Parse a query; SyntaxProblem where it is invalid."""
    if len(query) > MAX_LENGTH:
        raise SyntaxProblem(f"input size too long ({len(query)} > {MAX_LENGTH})")
    parser = _Parser(query)
    found = parser.whole()
    for selector in parser.selectors:
        _check_selector(selector)
    return found


def parse_selector(text: str) -> tuple[Matcher, ...]:
    """The matchers of a bare stream selector, as the series API takes it; it may be empty."""
    found = _Parser(text).whole()
    if not isinstance(found, LogQuery) or found.stages:
        raise QueryError("only label matchers are supported")
    return found.matchers


def _check_selector(matchers: tuple[Matcher, ...]) -> None:
    if not any(not matcher.is_negative and not matcher.holds("") for matcher in matchers):
        raise SyntaxProblem(_TOO_BROAD)


class _Parser:
    def __init__(self, query: str) -> None:
        self.cursor = Cursor(query)
        self.selectors: list[tuple[Matcher, ...]] = []
        self._depth = 0

    def whole(self) -> Expression:
        found = self.expression()
        if self.cursor.kind != "$end":
            raise self.cursor.unexpected()
        return found

    def expression(self, least: int = 0) -> Expression:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise SyntaxProblem("the query is nested too deeply")
        left = self._primary()
        while (rank := _PRECEDENCE.get(self.cursor.kind, 0)) > least:
            operator = self.cursor.next().kind
            returns_bool, matching = self._modifiers()
            right = self.expression(rank - 1 if operator == "^" else rank)
            left = _binary(operator, left, right, matching, returns_bool)
        self._depth -= 1
        return left

    def _modifiers(self) -> tuple[bool, Matching]:
        cursor = self.cursor
        returns_bool = cursor.accept("bool")
        if cursor.kind not in ("on", "ignoring"):
            return returns_bool, Matching()
        on = cursor.next().kind == "on"
        labels = self._names()
        if cursor.kind not in ("group_left", "group_right"):
            return returns_bool, Matching(on, labels)
        many = "left" if cursor.next().kind == "group_left" else "right"
        return returns_bool, Matching(on, labels, many, self._names() if cursor.kind == "(" else ())

    def _names(self) -> tuple[str, ...]:
        self.cursor.expect("(")
        if self.cursor.accept(")"):
            return ()
        if self.cursor.kind != "IDENTIFIER":
            raise self.cursor.unexpected("IDENTIFIER", ")")
        names = [self.cursor.next().text]
        while not self.cursor.accept(")"):
            self.cursor.expect(",", ")")
            names.append(self.cursor.expect("IDENTIFIER").text)
        return tuple(names)

    def _primary(self) -> Expression:
        cursor = self.cursor
        match cursor.kind:
            case "{":
                return self._log_query()
            case "(":
                cursor.next()
                inner = self.expression()
                self._close()
                return inner
            case "NUMBER":
                return Literal(cursor.next().amount)
            case "+" | "-" as sign:
                cursor.next()
                amount = cursor.expect("NUMBER").amount
                return Literal(-amount if sign == "-" else amount)
            case "vector":
                cursor.next()
                cursor.expect("(")
                value = cursor.expect("NUMBER").amount
                cursor.expect(")")
                return VectorOf(value)
            case "label_replace":
                return self._label_replace()
            case kind if kind in RANGE_OPERATIONS:
                return self._range_aggregation()
            case kind if kind in VECTOR_OPERATIONS:
                return self._vector_aggregation()
            case _:
                raise cursor.unexpected()

    def _close(self) -> None:
        if not self.cursor.accept(")"):
            raise self.cursor.unexpected()

    # Logs

    def selector(self) -> tuple[Matcher, ...]:
        cursor = self.cursor
        cursor.expect("{")
        if cursor.accept("}"):
            self.selectors.append(())
            return ()
        if cursor.kind != "IDENTIFIER":
            raise cursor.unexpected("IDENTIFIER", "}")
        found = []
        while True:
            name = cursor.expect("IDENTIFIER").text
            operator = cursor.expect("=", "=~", "!~", "!=").kind
            found.append(matcher(cursor, name, operator, cursor.expect("STRING").text))
            if cursor.accept("}"):
                break
            if cursor.kind != ",":
                raise cursor.unexpected("}", ",")
            cursor.next()
        self.selectors.append(tuple(found))
        return tuple(found)

    def _log_query(self) -> LogQuery:
        matchers = self.selector()
        found, _ = stages(self.cursor, unwraps=False)
        return LogQuery(matchers, found)

    def _log_range(self) -> LogRange:
        matchers, found, unwrap, seconds, offset = self._range_parts()
        if seconds is None:
            raise self.cursor.unexpected()
        return LogRange(LogQuery(matchers, found), seconds, offset, unwrap)

    def _range_parts(
        self,
    ) -> tuple[tuple[Matcher, ...], tuple[PipelineStage, ...], Unwrap | None, float | None, float]:
        cursor = self.cursor
        if cursor.accept("("):
            self._depth += 1
            if self._depth > _MAX_DEPTH:
                raise SyntaxProblem("the query is nested too deeply")
            matchers, found, unwrap, seconds, offset = self._range_parts()
            self._close()
            self._depth -= 1
            if seconds is not None:
                return matchers, found, unwrap, seconds, offset
        else:
            if cursor.kind != "{":
                raise cursor.unexpected()
            matchers = self.selector()
            found, unwrap = stages(cursor)
        if cursor.kind != "RANGE":
            return matchers, found, unwrap, None, 0.0
        seconds = cursor.next().amount
        offset = self._offset()
        if not found and unwrap is None:
            found, unwrap = stages(cursor)
        return matchers, found, unwrap, seconds, offset

    def _offset(self) -> float:
        if not self.cursor.accept("offset"):
            return 0.0
        sign = -1.0 if self.cursor.accept("-") else 1.0
        return sign * self.cursor.expect("DURATION").amount

    # Metrics

    def _range_aggregation(self) -> RangeAggregation:
        cursor = self.cursor
        operation = cursor.next().kind
        cursor.expect("(")
        parameter = None
        if cursor.kind == "NUMBER":
            parameter = cursor.next()
            cursor.expect(",")
        elif cursor.kind not in ("{", "("):
            raise cursor.unexpected("NUMBER", "{", "(")
        inner = self._log_range()
        cursor.expect(")")
        grouping = self._grouping()
        if parameter is not None and operation != "quantile_over_time":
            raise SyntaxProblem(f"parameter {parameter.text} not supported for operation {operation}")
        if parameter is None and operation == "quantile_over_time":
            raise SyntaxProblem(f"parameter required for operation {operation}")
        if grouping is not None and operation not in _GROUPED:
            raise SyntaxProblem(f"grouping not allowed for {operation} aggregation")
        if inner.unwrap is not None and operation not in _UNWRAPPING:
            raise SyntaxProblem(f"invalid aggregation {operation} with unwrap")
        if inner.unwrap is None and operation not in _COUNTING:
            raise SyntaxProblem(f"invalid aggregation {operation} without unwrap")
        return RangeAggregation(operation, inner, parameter.amount if parameter else None, grouping)

    def _grouping(self) -> Grouping | None:
        if self.cursor.kind not in ("by", "without"):
            return None
        without = self.cursor.next().kind == "without"
        return Grouping(without, self._names())

    def _vector_aggregation(self) -> VectorAggregation:
        cursor = self.cursor
        operation = cursor.next().kind
        before = self._grouping()
        cursor.expect("(")
        parameter = None
        if cursor.kind == "NUMBER" and cursor.following == ",":
            parameter = cursor.next().text
            cursor.next()
        inner = self.expression()
        if isinstance(inner, LogQuery):
            raise cursor.unexpected()
        self._close()
        grouping = before if before is not None else self._grouping()
        count = _count(operation, parameter)
        if operation == "approx_topk" and grouping is not None:
            raise SyntaxProblem(f"grouping not allowed for {operation} aggregation")
        if operation in ("sort", "sort_desc") and grouping is not None and grouping.labels:
            raise SyntaxProblem("sort and sort_desc doesn't allow grouping by ")
        return VectorAggregation(operation, inner, count, grouping)

    def _label_replace(self) -> LabelReplace:
        cursor = self.cursor
        cursor.next()
        cursor.expect("(")
        inner = self.expression()
        if isinstance(inner, LogQuery):
            raise cursor.unexpected()
        texts = []
        for _ in range(4):
            cursor.expect(",")
            texts.append(cursor.expect("STRING").text)
        cursor.expect(")")
        target, replacement, source, expression = texts
        try:
            pattern(f"^(?:{expression})$")
        except PatternError as problem:
            raise SyntaxProblem(f"invalid regex in label_replace: {problem}") from problem
        return LabelReplace(inner, target, replacement, source, expression)


def _count(operation: str, parameter: str | None) -> int:
    if operation not in _PARAMETRISED:
        if parameter is not None:
            raise SyntaxProblem(f"unsupported parameter for operation {operation}({parameter},")
        return 0
    if parameter is None:
        raise SyntaxProblem(f"parameter required for operation {operation}")
    if not parameter.isdigit():
        raise SyntaxProblem(f"invalid parameter {operation}({parameter},")
    if int(parameter) <= 0:
        raise SyntaxProblem(f"invalid parameter (must be greater than 0) {operation}({parameter}")
    return int(parameter)


def _binary(operator: str, left: Expression, right: Expression, matching: Matching, returns_bool: bool) -> Metric:
    for side, leg in (("left", left), ("right", right)):
        if isinstance(leg, LogQuery):
            kind = "*syntax.PipelineExpr" if leg.stages else "*syntax.MatchersExpr"
            raise SyntaxProblem(f"unexpected type for {side} leg of binary operation ({operator}): {kind}")
        if isinstance(leg, Literal) and operator in _SET_OPERATORS:
            raise SyntaxProblem(
                f"unexpected literal for {side} leg of logical/set binary operation ({operator}): {leg.value:f}"
            )
    assert not isinstance(left, LogQuery) and not isinstance(right, LogQuery)
    if isinstance(left, Literal) and isinstance(right, Literal):
        return Literal(fold(operator, left.value, right.value))
    return Binary(operator, left, right, matching, returns_bool)
