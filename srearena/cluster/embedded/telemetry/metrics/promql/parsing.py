"""The parser of queries: a recursive descent parser with the real server's grammar, limits of its own, and the real
server's messages for the first mistake: of syntax here, then of types (`typing_rules`).
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.telemetry.metrics.labels import NAME
from srearena.cluster.embedded.telemetry.metrics.matchers import Matcher, PatternError
from srearena.cluster.embedded.telemetry.metrics.promql.annotations import position
from srearena.cluster.embedded.telemetry.metrics.promql.durations import MAX_SECONDS, duration_ms
from srearena.cluster.embedded.telemetry.metrics.promql.errors import BadQuery
from srearena.cluster.embedded.telemetry.metrics.promql.nodes import (
    Aggregation,
    Call,
    Duration,
    DurationTerm,
    Matching,
    Moment,
    Node,
    Number,
    Operation,
    Parenthesis,
    RangeSelector,
    Selector,
    Sign,
    Subquery,
    Text,
    children,
)
from srearena.cluster.embedded.telemetry.metrics.promql.tokens import ParseProblem, Token, tokens, unquoted
from srearena.cluster.embedded.telemetry.metrics.promql.typing_rules import PARAMETERS, SIGNATURES, check

__all__ = ["parse", "parse_selector"]

_MAX_QUERY = 20_000
_MAX_HEIGHT, _MAX_OPERATORS = 100, 500
_TOO_DEEP = "1:1: parse error: the query is too long or too deeply nested"
_PRECEDENCE = {
    "or": 1,
    **dict.fromkeys(("and", "unless"), 2),
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">=", "</", ">/"), 3),
    **dict.fromkeys(("+", "-"), 4),
    **dict.fromkeys(("*", "/", "%", "atan2"), 5),
    "^": 6,
}
_UNARY = 5
_MODIFIED = "must be preceded by an instant vector selector or range vector selector or a subquery"
_METRIC_KEYWORDS = frozenset(("by", "offset", "without", "anchored", "smoothed"))
"""Keywords that are metric names where an expression begins."""
_METRIC_OPERATORS = frozenset(("and", "or", "unless"))
_A_DURATION = "number, duration, step(), or range()"
_INT64 = float(2**63)

DurationNode = Number | DurationTerm


@lru_cache(maxsize=1024)
def parse(query: str, version: int = 3) -> Node:
    """Parse a query as that major version of Prometheus; BadQuery where it is invalid."""
    if len(query) > _MAX_QUERY:
        raise BadQuery(_TOO_DEEP)
    try:
        reader = _Reader(query, version)
        if reader.token.kind == "end":
            where = "1:1" if query else "unknown position"
            raise BadQuery(f"{where}: parse error: no expression found in input")
        node = reader.expression(0)
        reader.expect("end", "", "")
        if _height(node) > _MAX_HEIGHT:
            raise BadQuery(_TOO_DEEP)
        check(node)
    except ParseProblem as found:
        raise BadQuery(f"{position(query, found.at)}: parse error: {found}") from None
    except RecursionError:
        raise BadQuery(_TOO_DEEP) from None
    return node


def parse_selector(text: str) -> Selector:
    """Parse a series selector, as in `match[]`."""
    node = parse(text)
    if not isinstance(node, Selector) or node.moment != Moment():
        raise BadQuery(f"1:1: parse error: {text!r} is not a series selector")
    return node


def _height(node: Node) -> int:
    return 1 + max((_height(child) for child in children(node)), default=0)


class _Reader:
    """A recursive descent parser with one token of lookahead."""

    def __init__(self, query: str, version: int) -> None:
        self._version = version
        self._tokens = tokens(query)
        self._context = [("", "")]
        self._operators = 0
        self.token: Token = next(self._tokens)
        self.closed = 0
        """Where the last token that can end an expression ended."""

    def take(self) -> Token:
        token = self.token
        if token.kind != "end":
            self.closed = token.end
            self.token = next(self._tokens)
        return token

    def unexpected(self, context: str | None = None, expected: str = "") -> ParseProblem:
        if context is None:
            context, expected = self._context[-1]
        message = f"unexpected {self.token.description}" + (f" in {context}" if context else "")
        return ParseProblem(self.token.at, message + (f", expected {expected}" if expected else ""))

    def expect(self, kind: str, context: str | None = None, expected: str = "") -> Token:
        if self.token.kind != kind:
            raise self.unexpected(context, expected)
        return self.take()

    def _is_operator(self, *texts: str) -> bool:
        return self.token.kind == "operator" and self.token.text.lower() in texts

    def _is_keyword(self, *words: str) -> bool:
        return self.token.kind == "keyword" and self.token.text.lower() in words

    def _keyword(self, *words: str) -> str:
        """Take one of some keywords; empty where the next token is none of them."""
        return self.take().text.lower() if self._is_keyword(*words) else ""

    # Operators

    def expression(self, least: int) -> Node:
        left = self._operand()
        while self.token.kind == "operator" and (strength := _PRECEDENCE.get(self.token.text.lower(), 0)) > least:
            self._operators += 1
            if self._operators > _MAX_OPERATORS:
                raise BadQuery(_TOO_DEEP)
            operator = self.take()
            return_bool = bool(self._keyword("bool"))
            matching = self._matching()
            # A power binds to the right, everything else to the left.
            right = self.expression(strength - 1 if operator.text == "^" else strength)
            left = Operation(operator.text.lower(), left, right, matching, return_bool, operator.at)
        return left

    def _matching(self) -> Matching:
        labels: tuple[str, ...] = ()
        many = ""
        include: tuple[str, ...] = ()
        kind = self._keyword("on", "ignoring")
        if kind:
            labels = self._labels()
            if group := self._keyword("group_left", "group_right"):
                many = group.removeprefix("group_")
                if self.token.kind == "(":
                    include = self._labels()
        fills: dict[str, float] = {}
        while fill := self._keyword("fill", "fill_left", "fill_right"):
            value = self._fill_value()
            for side in ("left", "right") if fill == "fill" else (fill.removeprefix("fill_"),):
                if side in fills:
                    raise self.unexpected()
                fills[side] = value
            if fill == "fill":
                break
        return Matching(labels, kind == "on", many, include, fills.get("left"), fills.get("right"))

    def _fill_value(self) -> float:
        self.expect("(")
        sign = self.take().text if self._is_operator("+", "-") else "+"
        if self.token.kind not in ("number", "duration"):
            raise self.unexpected()
        value = _literal(self.take()).value
        self.expect(")")
        return -value if sign == "-" else value

    def _labels(self) -> tuple[str, ...]:
        self.expect("(", "grouping opts", '"("')
        names: list[str] = []
        while self.token.kind != ")":
            word = self.token
            if word.kind == "string":
                names.append(unquoted(word))
            elif word.kind in ("identifier", "keyword", "aggregator", "operator", "word") and _is_label(word.text):
                names.append(word.text)
            else:
                raise self.unexpected("grouping opts", "label")
            if not names[-1]:
                raise ParseProblem(word.at, 'invalid label name for grouping: ""')
            self.take()
            if self.token.kind not in (",", ")"):
                raise self.unexpected("grouping opts", '"," or ")"')
            if self.token.kind == ",":
                self.take()
        self.take()
        return tuple(names)

    # Operands and what follows them

    def _operand(self) -> Node:
        if self._is_operator("+", "-"):
            sign = self.take()
            inner = self.expression(_UNARY)
            if isinstance(inner, Number):
                value = -inner.value if sign.text == "-" else inner.value
                return replace(inner, value=value, at=sign.at)
            return Sign(sign.text, inner, sign.at, inner.end)
        node = self._primary()
        while True:
            if self.token.kind == "[":
                node = self._bracketed(node)
            elif self._is_keyword("offset"):
                node = self._offset(node)
            elif self._is_operator("@"):
                node = self._at(node)
            elif self._is_keyword("anchored", "smoothed"):
                raise ParseProblem(node.at, f"{self.token.text.lower()} modifier is experimental and not enabled")
            else:
                return node

    def _primary(self) -> Node:
        token = self.token
        match token.kind:
            case "number" | "duration":
                return _literal(self.take())
            case "string":
                self.take()
                return Text(unquoted(token), token.at, token.end)
            case "(":
                self.take()
                inner = self.expression(0)
                return Parenthesis(inner, token.at, self.expect(")").end)
            case "{":
                return self._selector(token, "")
            case "aggregator":
                self.take()
                if self.token.kind == "(" or self._is_keyword("by", "without"):
                    return self._aggregation(token)
                if self.token.kind in ("{", "[", "operator", "end", ")", ",") or self._is_keyword("offset"):
                    return self._selector(token, token.text)
                raise self.unexpected("aggregation")
            case "identifier" | "word":
                self.take()
                if self.token.kind == "(":
                    return self._call(token)
                return self._selector(token, token.text)
            case "keyword" if token.text.lower() in _METRIC_KEYWORDS:
                self.take()
                return self._selector(token, token.text)
            case "operator" if token.text.lower() in _METRIC_OPERATORS:
                self.take()
                return self._selector(token, token.text)
            case _:
                raise self.unexpected()

    def _call(self, name: Token) -> Call:
        arguments = self._arguments()
        function = name.text if name.kind == "identifier" else name.text.lower()
        if function not in SIGNATURES or (function == "holt_winters" and self._version > 2):
            raise ParseProblem(name.at, f"unknown function with name {quoted(name.text)}")
        return Call(function, tuple(arguments), name.at, self.closed)

    def _arguments(self) -> list[Node]:
        self.expect("(")
        found: list[Node] = []
        while self.token.kind != ")":
            found.append(self.expression(0))
            if self.token.kind not in (",", ")"):
                raise self.unexpected()
            if self.token.kind == ",":
                comma = self.take()
                if self.token.kind == ")":
                    raise ParseProblem(comma.at, "trailing commas not allowed in function call args")
        self.closed = self.token.end
        self.take()
        return found

    def _aggregation(self, operator: Token) -> Aggregation:
        self._context.append(("aggregation", ""))
        modifier = self._keyword("by", "without")
        labels: tuple[str, ...] = ()
        if modifier:
            labels = self._labels()
        arguments = self._arguments()
        end = self.closed
        self._context.pop()
        if not modifier and (modifier := self._keyword("by", "without")):
            labels = self._labels()
            end = self.closed
        name = operator.text.lower()
        expected = 2 if name in PARAMETERS else 1
        if not arguments:
            raise ParseProblem(operator.at, "no arguments for aggregate expression provided")
        if len(arguments) != expected:
            wrong = "wrong number of arguments for aggregate expression provided"
            raise ParseProblem(operator.at, f"{wrong}, expected {expected}, got {len(arguments)}")
        parameter = arguments[0] if expected == 2 else None
        return Aggregation(name, arguments[-1], parameter, labels, modifier == "without", operator.at, end)

    # Selectors

    def _selector(self, first: Token, name: str) -> Selector:
        matchers: list[Matcher] = []
        end = first.end
        if self.token.kind == "{":
            self.take()
            while self.token.kind != "}":
                matchers.append(self._matcher())
                if self.token.kind not in (",", "}"):
                    raise self.unexpected("label matching", '"," or "}"')
                if self.token.kind == ",":
                    self.take()
            end = self.token.end
            self.take()
        if name:
            matchers.append(Matcher(NAME, "=", name))
        return Selector(tuple(matchers), Moment(), name, first.at, end)

    def _matcher(self) -> Matcher:
        label = self.token
        if label.kind not in ("identifier", "string"):
            raise self.unexpected("label matching", 'identifier or "}"')
        self.take()
        name = label.text if label.kind == "identifier" else unquoted(label)
        if self.token.kind != "match":
            if label.kind == "string":
                return Matcher(NAME, "=", name)
            raise self.unexpected("label matching", "label matching operator")
        operator = self.take().text
        value = self.expect("string", "label matching", "string")
        try:
            return Matcher(name, operator, unquoted(value))
        except PatternError as error:
            raise ParseProblem(label.at, str(error)) from None

    def _bracketed(self, node: Node) -> RangeSelector | Subquery:
        bracket = self.take()
        span = self._duration("subquery or range selector", _A_DURATION)
        if self.token.kind not in (":", "]"):
            raise self.unexpected("subquery or range", '":" or "]"')
        if self.token.kind == ":":
            self.take()
            step = None
            if self.token.kind != "]":
                step = self._duration("subquery selector", 'number, duration, step(), range(), or "]"')
            end = self.expect("]", "subquery selector", '"]"').end
            return Subquery(node, span, step, Moment(), node.at, end)
        end = self.take().end
        if not isinstance(node, Selector):
            raise ParseProblem(bracket.at, "ranges only allowed for vector selectors")
        if node.moment.offset != 0:
            raise ParseProblem(bracket.at, "no offset modifiers allowed before range")
        if node.moment.at is not None:
            raise ParseProblem(bracket.at, "no @ modifiers allowed before range")
        return RangeSelector(node, span, node.at, end)

    # Modifiers

    def _offset(self, node: Node) -> Node:
        self.take()
        self._context.append(("offset", _A_DURATION))
        offset = _milliseconds(self._offset_duration())
        self._context.pop()
        moment = self._moment(node, f"offset modifier {_MODIFIED}")
        if moment.offset != 0:
            raise ParseProblem(node.at, "offset may not be set multiple times")
        return self._with_moment(node, replace(moment, offset=offset))

    def _at(self, node: Node) -> Node:
        self.take()
        at: int | str
        if self.token.kind == "word" and self.token.text.lower() in ("start", "end"):
            at = self.take().text.lower()
            self.expect("(", "@", "timestamp")
            self.expect(")", "@", "timestamp")
        else:
            sign = self.take().text if self._is_operator("+", "-") else "+"
            if self.token.kind not in ("number", "duration"):
                raise self.unexpected("@", "timestamp")
            seconds = _literal(self.take()).value * (-1 if sign == "-" else 1)
            if not -_INT64 < seconds < _INT64:
                shown = "NaN" if math.isnan(seconds) else f"{seconds:+f}".replace("inf", "Inf")
                shown = shown if math.isinf(seconds) else shown.removeprefix("+")
                raise ParseProblem(node.at, f"timestamp out of bounds for @ modifier: {shown}")
            at = round(seconds * 1000)
        moment = self._moment(node, f"@ modifier {_MODIFIED}")
        if moment.at is not None:
            raise ParseProblem(node.at, "@ <timestamp> may not be set multiple times")
        return self._with_moment(node, replace(moment, at=at))

    def _moment(self, node: Node, misplaced: str) -> Moment:
        match node:
            case Selector() | Subquery():
                return node.moment
            case RangeSelector():
                return node.selector.moment
            case _:
                raise ParseProblem(node.at, misplaced)

    def _with_moment(self, node: Node, moment: Moment) -> Node:
        if isinstance(node, RangeSelector):
            return replace(node, selector=replace(node.selector, moment=moment), end=self.closed)
        assert isinstance(node, Selector | Subquery)
        return replace(node, moment=moment, end=self.closed)

    # Durations

    def _duration(self, context: str, expected: str) -> Duration:
        """A positive duration in brackets."""
        self._context.append((context, expected))
        node = self._duration_expression(0)
        self._context.pop()
        if isinstance(node, Number) and node.value <= 0:
            raise ParseProblem(node.at, "duration must be greater than 0")
        return _milliseconds(node)

    def _offset_duration(self) -> DurationNode:
        """The operand of `offset`: an operator after it belongs to the query, unless it follows parentheses."""
        if self.token.kind == "(":
            return self._duration_expression(0)
        sign = self.take() if self._is_operator("+", "-") else None
        node = self._duration_operand()
        if sign is not None:
            node = _signed(sign, node)
        return node

    def _duration_expression(self, least: int) -> DurationNode:
        if self._is_operator("+", "-"):
            sign = self.take()
            left = _signed(sign, self._duration_expression(_UNARY))
        else:
            left = self._duration_operand()
        while self._is_operator("+", "-", "*", "/", "%", "^") and _PRECEDENCE[self.token.text] > least:
            operator = self.take()
            strength = _PRECEDENCE[operator.text]
            right = self._duration_expression(strength - 1 if operator.text == "^" else strength)
            if operator.text in "/%" and isinstance(right, Number) and right.value == 0:
                raise ParseProblem(operator.at, f"{'division' if operator.text == '/' else 'modulo'} by zero")
            left = DurationTerm(operator.text, left, right, at=left.at, end=right.end)
        return left

    def _duration_operand(self) -> DurationNode:
        token = self.token
        if token.kind in ("number", "duration"):
            literal = _literal(self.take())
            return _in_range(literal, literal.at)
        if token.kind == "(":
            self.take()
            inner = self._duration_expression(0)
            end = self.expect(")").end
            if isinstance(inner, DurationTerm):
                return replace(inner, in_parentheses=True)
            return DurationTerm("+", None, inner, in_parentheses=True, at=token.at, end=end)
        word = token.text.lower()
        if token.kind != "word" or word not in ("step", "range", "min_of", "max_of"):
            raise self.unexpected()
        self.take()
        self.expect("(")
        left = right = None
        if word in ("min_of", "max_of"):
            left = self._duration_expression(0)
            self.expect(",")
            right = self._duration_expression(0)
        return DurationTerm(word, left, right, at=token.at, end=self.expect(")").end)


def _is_label(text: str) -> bool:
    return text[0].isalpha() or text[0] == "_"


def _in_range(number: Number, at: int) -> Number:
    if abs(number.value) > MAX_SECONDS:
        raise ParseProblem(at, "duration out of range")
    return number


def _signed(sign: Token, node: DurationNode) -> DurationNode:
    if isinstance(node, Number):
        value = -node.value if sign.text == "-" else node.value
        return _in_range(replace(node, value=value, at=sign.at), sign.at)
    return DurationTerm("-", None, node, at=sign.at, end=node.end) if sign.text == "-" else node


def _milliseconds(node: DurationNode) -> Duration:
    return node if isinstance(node, DurationTerm) else int(round(node.value * 1e9) / 1e6)


def _literal(token: Token) -> Number:
    if token.kind == "duration":
        milliseconds = duration_ms(token.text)
        if milliseconds is None:
            raise ParseProblem(token.at, f"not a valid duration string: {quoted(token.text)}")
        if milliseconds / 1000 > MAX_SECONDS:
            raise ParseProblem(token.at, "duration out of range")
        return Number(milliseconds / 1000, token.at, token.end, is_duration=True)
    return Number(_number(token), token.at, token.end)


def _number(token: Token) -> float:
    text = token.text.lower()
    if text in ("inf", "nan"):
        return float(text)
    if text.startswith("0x"):
        return float(int(text.replace("_", ""), 16))
    digits = text.replace("_", "")
    if digits.isdigit() and len(digits) > 1 and digits[0] == "0" and not digits.strip("01234567"):
        return float(int(digits, 8))  # Go reads integers with a leading zero as octal
    return float(digits)
