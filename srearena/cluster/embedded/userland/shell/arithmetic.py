"""Arithmetic of `$(( ))`: 64-bit integers with C's operators, variables, and assignments to them.

A recursive descent over operator precedence; nothing is ever handed to Python for evaluation.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_NUMBERS_AND_NAMES = r"\s*(?:(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9]\d*)|([A-Za-z_][A-Za-z0-9_]*)|"
_TOKEN = re.compile(_NUMBERS_AND_NAMES + r"(<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[-+*/%<>=!~&|^?:()]))")
_EXTENDED_TOKEN = re.compile(
    _NUMBERS_AND_NAMES + r"(<<=|>>=|\*\*|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[-+*/%<>=!~&|^?:(),]))"
)
_PRECEDENCE = {
    "||": 1,
    "&&": 2,
    "|": 3,
    "^": 4,
    "&": 5,
    "==": 6,
    "!=": 6,
    "<": 7,
    ">": 7,
    "<=": 7,
    ">=": 7,
    "<<": 8,
    ">>": 8,
    "+": 9,
    "-": 9,
    "*": 10,
    "/": 10,
    "%": 10,
    "**": 11,
}
_ASSIGNMENTS = frozenset(("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="))
MAX_DEPTH = 40


class ArithmeticFailure(Exception):
    """The expression makes no sense, or divides by zero; the message is dash's."""


class BadNumber(ArithmeticFailure):
    """A variable holds something that is no number."""


def _wrap(value: int) -> int:
    """To a signed 64-bit number, as the machine would."""
    return (value + 2**63) % 2**64 - 2**63


def _quotient(left: int, right: int) -> int:
    if right == 0:
        raise ArithmeticFailure("division by zero")
    magnitude = abs(left) // abs(right)
    return magnitude if (left < 0) == (right < 0) else -magnitude


def _power(left: int, right: int) -> int:
    if right < 0:
        raise ArithmeticFailure("exponent less than 0")
    return _wrap(pow(left, right, 2**64))


_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "&": lambda a, b: a & b,
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "<": lambda a, b: int(a < b),
    ">": lambda a, b: int(a > b),
    "<=": lambda a, b: int(a <= b),
    ">=": lambda a, b: int(a >= b),
    "<<": lambda a, b: _wrap(a << (b & 63)),
    ">>": lambda a, b: a >> (b & 63),
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _quotient,
    "%": lambda a, b: a - b * _quotient(a, b),
    "**": _power,
}


def number(text: str) -> int | None:
    """An integer constant: decimal, 0x or 0 octal."""
    digits = text.strip()
    sign = -1 if digits.startswith("-") else 1
    digits = digits.lstrip("+-")
    try:
        if digits.lower().startswith("0x"):
            return _wrap(sign * int(digits, 16))
        if len(digits) > 1 and digits.startswith("0"):
            return _wrap(sign * int(digits, 8))
        return _wrap(sign * int(digits)) if digits.isdigit() and len(digits) < 40 else None
    except ValueError:
        return None


class _Evaluation:
    def __init__(
        self, text: str, get: Callable[[str], str], put: Callable[[str, str], object], extended: bool, depth: int
    ) -> None:
        self.text = text
        self._get = get
        self._put = put
        self._depth = depth
        self._extended = extended
        self._nesting = 0
        self._skipping = 0
        """Inside the branch of && || ?: that is not taken: nothing is assigned, nothing fails."""
        self._tokens = self._tokenize(text)
        self._index = 0

    def _tokenize(self, text: str) -> list[tuple[str, str]]:
        tokens: list[tuple[str, str]] = []
        position = 0
        while position < len(text.rstrip()):
            match = (_EXTENDED_TOKEN if self._extended else _TOKEN).match(text, position)
            if match is None:
                raise ArithmeticFailure("expecting EOF")
            position = match.end()
            kind = "number" if match.group(1) else "name" if match.group(2) else "operator"
            tokens.append((kind, match.group(match.lastindex or 0)))
        return tokens

    def _peek(self) -> str:
        return self._tokens[self._index][1] if self._index < len(self._tokens) else ""

    def _peek_kind(self) -> str:
        return self._tokens[self._index][0] if self._index < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        self._index += 1
        return token

    def result(self) -> int:
        if not self._tokens:
            return 0
        value = self._comma()
        if self._index < len(self._tokens):
            raise ArithmeticFailure("expecting EOF")
        return value

    def _comma(self) -> int:
        value = self._assignment()
        while self._peek() == ",":
            self._take()
            value = self._assignment()
        return value

    def _assignment(self) -> int:
        self._nesting += 1
        if self._nesting > MAX_DEPTH:
            raise ArithmeticFailure("expression recursion level exceeded")
        try:
            following = self._tokens[self._index + 1][1] if self._index + 1 < len(self._tokens) else ""
            if self._peek_kind() == "name" and following in _ASSIGNMENTS:
                name = self._take()
                operator = self._take()
                value = self._assignment()
                if operator != "=":
                    value = self._apply(operator[:-1], self._variable(name), value)
                return self._store(name, value)
            return self._ternary()
        finally:
            self._nesting -= 1

    def _ternary(self) -> int:
        condition = self._binary(1)
        if self._peek() != "?":
            return condition
        self._take()
        chosen = self._maybe(bool(condition), self._assignment)
        if self._take() != ":":
            raise ArithmeticFailure("expecting ':'")
        other = self._maybe(not condition, self._assignment)
        return chosen if condition else other

    def _maybe(self, evaluated: bool, evaluate: Callable[[], int]) -> int:
        self._skipping += not evaluated
        try:
            return evaluate()
        finally:
            self._skipping -= not evaluated

    def _binary(self, least: int) -> int:
        left = self._unary()
        while True:
            operator = self._peek()
            precedence = _PRECEDENCE.get(operator, 0) if self._peek_kind() == "operator" else 0
            if precedence < least:
                return left
            self._take()
            above = precedence if operator == "**" else precedence + 1
            if operator == "&&":
                right = self._maybe(bool(left), lambda above=above: self._binary(above))  # type: ignore[misc]
                left = int(bool(left) and bool(right))
            elif operator == "||":
                right = self._maybe(not left, lambda above=above: self._binary(above))  # type: ignore[misc]
                left = int(bool(left) or bool(right))
            else:
                left = self._apply(operator, left, self._binary(above))

    def _apply(self, operator: str, left: int, right: int) -> int:
        if self._skipping:
            return 0
        return _wrap(_OPERATIONS[operator](left, right))

    def _unary(self) -> int:
        self._nesting += 1
        if self._nesting > MAX_DEPTH:
            raise ArithmeticFailure("expression recursion level exceeded")
        try:
            operator = self._peek()
            if operator in ("-", "+", "!", "~") and self._peek_kind() == "operator":
                self._take()
                value = self._unary()
                return _wrap({"-": -value, "+": value, "!": int(not value), "~": ~value}[operator])
            if operator in ("++", "--"):
                self._take()
                if self._peek_kind() != "name":
                    raise ArithmeticFailure("expecting primary")
                name = self._take()
                return self._store(name, self._variable(name) + (1 if operator == "++" else -1))
            return self._primary()
        finally:
            self._nesting -= 1

    def _primary(self) -> int:
        kind = self._peek_kind()
        token = self._take()
        if kind == "number":
            value = number(token)
            if value is None:
                raise ArithmeticFailure("expecting EOF")
            return value
        if kind == "name":
            if self._peek() in ("++", "--"):
                step = 1 if self._take() == "++" else -1
                value = self._variable(token)
                self._store(token, value + step)
                return value
            return self._variable(token)
        if token == "(":
            value = self._comma()
            if self._take() != ")":
                raise ArithmeticFailure("expecting ')'")
            return value
        raise ArithmeticFailure("expecting primary")

    def _variable(self, name: str) -> int:
        text = self._get(name).strip()
        if not text:
            return 0
        value = number(text)
        if value is not None:
            return value
        if text.isdigit() or not self._extended:
            raise BadNumber(text)
        if self._depth >= 16:
            raise ArithmeticFailure("expression recursion level exceeded")
        return _Evaluation(text, self._get, self._put, True, self._depth + 1).result()

    def _store(self, name: str, value: int) -> int:
        value = _wrap(value)
        if not self._skipping:
            self._put(name, str(value))
        return value


def evaluate(text: str, get: Callable[[str], str], put: Callable[[str, str], object], *, extended: bool = True) -> int:
    """The value of an expression; `get` and `put` are the shell's variables. `extended` adds ++, --, ** and commas."""
    return _Evaluation(text, get, put, extended, 0).result()
