"""Messages and positions of parse errors, in the real server's words.

`promql-parser` rarely reports the position of an error, and words messages differently. People and agents fix queries
by the message, so a query that it rejects is parsed once more here, to find the first error of syntax, then of types
(`typing_rules`). A query in which none is found keeps the parser's own message.
"""

from __future__ import annotations

import re

from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.telemetry.metrics.matchers import PatternError, anchored
from srearena.cluster.embedded.telemetry.metrics.promql.tokens import PREPROCESSORS, ParseProblem, Token, tokens
from srearena.cluster.embedded.telemetry.metrics.promql.typing_rules import SIGNATURES, Piece, check

__all__ = ["find_parse_error"]

_PRECEDENCE = {
    "or": 1,
    **dict.fromkeys(("and", "unless"), 2),
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), 3),
    **dict.fromkeys(("+", "-"), 4),
    **dict.fromkeys(("*", "/", "%", "atan2"), 5),
    "^": 6,
}
_UNARY = 5
_MODIFIED = "must be preceded by an instant vector selector or range vector selector or a subquery"


def find_parse_error(query: str) -> str | None:
    """Return `line:column: parse error: message`, or None where no error is found."""
    try:
        reader = _Reader(query)
        if reader.token.kind == "end":
            return "1:1: parse error: no expression found in input"
        piece = reader.expression(0)
        reader.expect("end", "", "")
        check(piece)
    except ParseProblem as found:
        line = query.count("\n", 0, found.at) + 1
        column = found.at - (query.rfind("\n", 0, found.at) + 1) + 1
        return f"{line}:{column}: parse error: {found}"
    except RecursionError:
        pass  # too deeply nested
    return None


class _Reader:
    """A recursive descent parser with one token of lookahead."""

    def __init__(self, query: str) -> None:
        self._tokens = tokens(query)
        self._context = [""]
        self.token: Token = next(self._tokens)

    def take(self) -> Token:
        token = self.token
        if token.kind != "end":
            self.token = next(self._tokens)
        return token

    def unexpected(self, context: str | None = None, expected: str = "") -> ParseProblem:
        place = self._context[-1] if context is None else context
        message = f"unexpected {self.token.description}" + (f" in {place}" if place else "")
        return ParseProblem(self.token.at, message + (f", expected {expected}" if expected else ""))

    def expect(self, kind: str, context: str | None = None, expected: str = "") -> Token:
        if self.token.kind != kind:
            raise self.unexpected(context, expected)
        return self.take()

    # Operators

    def expression(self, least: int) -> Piece:
        left = self._operand()
        while self.token.kind == "operator" and (strength := _PRECEDENCE.get(self.token.text.lower(), 0)) > least:
            operator = self.take()
            piece = Piece("operation", left.at, name=operator.text.lower(), operator_at=operator.at)
            self._matching(piece)
            # A power binds to the right, everything else to the left.
            right = self.expression(strength - 1 if operator.text == "^" else strength)
            piece.children = [left, right]
            left = piece
        return left

    def _matching(self, piece: Piece) -> None:
        if self._keyword("bool"):
            piece.return_bool = True
        piece.on = self.token.text.lower() == "on"
        if self._keyword("on", "ignoring"):
            piece.matching_labels = self._labels()
            if self._keyword("group_left", "group_right"):
                piece.grouping = True
                if self.token.kind == "(":
                    piece.included_labels = self._labels()

    def _keyword(self, *words: str) -> bool:
        if self.token.kind == "keyword" and self.token.text.lower() in words:
            self.take()
            return True
        return False

    def _labels(self) -> tuple[str, ...]:
        self.expect("(", "grouping opts", '"("')
        names: list[str] = []
        while self.token.kind != ")":
            word = self.token
            if word.kind not in ("identifier", "keyword", "aggregator", "operator") or not word.text[0].isalpha() | (
                word.text[0] == "_"
            ):
                raise self.unexpected("grouping opts", "label")
            names.append(self.take().text)
            if self.token.kind not in (",", ")"):
                raise self.unexpected("grouping opts", '"," or ")"')
            if self.token.kind == ",":
                self.take()
        self.take()
        return tuple(names)

    # Operands and what follows them

    def _operand(self) -> Piece:
        if self.token.kind == "operator" and self.token.text in "+-":
            at = self.take().at
            return Piece("negation", at, [self.expression(_UNARY)])
        piece = self._primary()
        while True:
            if self.token.kind == "[":
                piece = self._bracketed(piece)
            elif self.token.kind == "keyword" and self.token.text.lower() == "offset":
                piece = self._offset(piece)
            elif self.token.kind == "operator" and self.token.text == "@":
                piece = self._at(piece)
            else:
                return piece

    def _primary(self) -> Piece:
        token = self.token
        match token.kind:
            case "number" | "string":
                self.take()
                return Piece(token.kind, token.at)
            case "(":
                self.take()
                inner = self.expression(0)
                self.expect(")")
                return Piece("paren", token.at, [inner])
            case "{":
                return self._selector(token.at, "")
            case "aggregator":
                return self._aggregation()
            case "identifier":
                self.take()
                if self.token.kind == "(":
                    return self._call(token)
                return self._selector(token.at, token.text)
            case _:
                raise self.unexpected()

    def _call(self, name: Token) -> Piece:
        arguments = self._arguments()
        if name.text not in SIGNATURES:
            raise ParseProblem(name.at, f"unknown function with name {quoted(name.text)}")
        return Piece("call", name.at, arguments, name.text)

    def _arguments(self) -> list[Piece]:
        self.expect("(")
        found: list[Piece] = []
        while self.token.kind != ")":
            found.append(self.expression(0))
            if self.token.kind not in (",", ")"):
                raise self.unexpected()
            if self.token.kind == ",":
                comma = self.take()
                if self.token.kind == ")":
                    raise ParseProblem(comma.at, "trailing commas not allowed in function call args")
        self.take()
        return found

    def _aggregation(self) -> Piece:
        operator = self.take()
        self._context.append("aggregation")
        before = self._keyword("by", "without")
        if before:
            self._labels()
        arguments = self._arguments()
        self._context.pop()
        if not before and self._keyword("by", "without"):
            self._labels()
        name = operator.text.lower()
        expected = 2 if name in ("topk", "bottomk", "quantile", "count_values", "limitk", "limit_ratio") else 1
        if not arguments:
            raise ParseProblem(operator.at, "no arguments for aggregate expression provided")
        if len(arguments) != expected:
            wrong = "wrong number of arguments for aggregate expression provided"
            raise ParseProblem(operator.at, f"{wrong}, expected {expected}, got {len(arguments)}")
        return Piece("aggregation", operator.at, arguments, name)

    def _selector(self, at: int, metric: str) -> Piece:
        piece = Piece("selector", at, metric=metric)
        if self.token.kind != "{":
            return piece
        self.take()
        while self.token.kind != "}":
            label = self.expect("identifier", "label matching", 'identifier or "}"')
            operator = self.expect("match", "label matching", "label matching operator")
            value = self.expect("string", "label matching", "string")
            text = value.text[1:-1].replace("\\\\", "\\")
            if "~" in operator.text:
                _check_pattern(label.at, text)
            piece.matchers.append((label.text, operator.text, text))
            if self.token.kind not in (",", "}"):
                raise self.unexpected("label matching", '"," or "}"')
            if self.token.kind == ",":
                self.take()
        self.take()
        return piece

    def _bracketed(self, piece: Piece) -> Piece:
        bracket = self.take()
        self._duration("subquery selector")
        if self.token.kind not in (":", "]"):
            raise self.unexpected("subquery or range", '":" or "]"')
        if self.take().kind == ":":
            if self.token.kind == "duration":
                self._duration("subquery selector")
            self.expect("]", "subquery selector", '"]"')
            return Piece("subquery", piece.at, [piece])
        if piece.kind != "selector":
            raise ParseProblem(bracket.at, "ranges only allowed for vector selectors")
        for modifier in ("offset", "@"):
            if modifier in piece.modified:
                raise ParseProblem(bracket.at, f"no {modifier} modifiers allowed before range")
        return Piece("range", piece.at, [piece])

    def _duration(self, context: str) -> None:
        duration = self.expect("duration", context, "duration")
        if not re.search(r"[1-9]", duration.text):
            raise ParseProblem(duration.at, "duration must be greater than 0")

    def _offset(self, piece: Piece) -> Piece:
        self.take()
        if self.token.kind == "operator" and self.token.text in "+-":
            self.take()
        self.expect("duration", "offset", "duration")
        return self._modified(piece, "offset", f"offset modifier {_MODIFIED}", "offset may not be set multiple times")

    def _at(self, piece: Piece) -> Piece:
        self.take()
        if self.token.kind == "identifier" and self.token.text in PREPROCESSORS:
            self.take()
            self.expect("(", "@", "timestamp")
            self.expect(")", "@", "timestamp")
        else:
            if self.token.kind == "operator" and self.token.text in "+-":
                self.take()
            self.expect("number", "@", "timestamp")
        return self._modified(piece, "@", f"@ modifier {_MODIFIED}", "@ <timestamp> may not be set multiple times")

    def _modified(self, piece: Piece, modifier: str, misplaced: str, repeated: str) -> Piece:
        if piece.kind not in ("selector", "range", "subquery"):
            raise ParseProblem(piece.at, misplaced)
        if modifier in piece.modified:
            raise ParseProblem(piece.at, repeated)
        piece.modified |= {modifier}
        return piece


def _check_pattern(at: int, text: str) -> None:
    try:
        anchored(text)
    except PatternError:
        try:
            anchored(f"^(?:{text})$")
        except PatternError as error:
            raise ParseProblem(at, str(error)) from None
