"""Parser of the arithmetic expressions of `eval` in metric_analysis.

    statement  = [name "="] sum
    sum        = product {("+" | "-") product}
    product    = power {("*" | "/" | "%") power}
    power      = unary ["**" power]
    unary      = ["-" | "+"] atom
    atom       = number | name | function "(" sum {"," sum} ")" | "(" sum ")"

Names are metrics with `:`, `-`, `.`, `/` and spaces turned into `_`. The grammar has no attributes, indexes,
strings or other calls, and bounds depth and size, so evaluating an expression is safe. A division by zero or a number
that is too large has no value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sre_tools.errors import ToolError

_TOKEN = re.compile(r"\s*(?:(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)|([A-Za-z_][A-Za-z0-9_]*)|(\*\*|[-+*/%(),=]))")
_MAX_TEXT, _MAX_DEPTH, _MAX_POWER = 2000, 40, 100.0

Values = Mapping[str, float]
_Node = Callable[[Values], float]
_FUNCTIONS: dict[str, tuple[int, int, Callable[..., float]]] = {
    "abs": (1, 1, abs),
    "min": (1, 8, min),
    "max": (1, 8, max),
    "sqrt": (1, 1, math.sqrt),
    "log": (1, 1, math.log),
    "round": (1, 1, lambda value: float(round(value))),
}


def metric_identifier(name: str) -> str:
    return re.sub(r"_+", "_", re.sub(r"[:\-./\s]", "_", name))


def _power(base: float, exponent: float) -> float:
    if abs(exponent) > _MAX_POWER:
        raise OverflowError
    result = base**exponent
    if isinstance(result, complex):
        raise ValueError
    return float(result)


_OPERATORS: dict[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "%": math.fmod,
    "**": _power,
}


@dataclass(frozen=True, slots=True)
class Expression:
    name: str
    metrics: frozenset[str]
    _root: _Node

    def value(self, values: Values) -> float | None:
        """The result, or `None` if there is none (division by zero, missing metric)."""
        try:
            result = self._root(values)
        except (ArithmeticError, ValueError, KeyError):
            return None
        return result if math.isfinite(result) else None


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, int]] = []
        position = 0
        while position < len(text.rstrip()):
            match = _TOKEN.match(text, position)
            if match is None:
                raise self._error(position)
            self.tokens.append((match[0].strip(), position))
            position = match.end()
        self.at = 0
        self.depth = 0
        self.metrics: set[str] = set()

    def _error(self, position: int) -> ToolError:
        return ToolError(
            f"eval: cannot read {self.text[position : position + 20]!r}; allowed are metric names, numbers, "
            f"+ - * / % ** ( ) and {', '.join(_FUNCTIONS)}, as in `pct = 100 * used / quota`"
        )

    def peek(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def take(self, *expected: str) -> str:
        token = self.peek()
        if token not in expected:
            raise self._error(self.tokens[self.at][1] if self.at < len(self.tokens) else len(self.text))
        self.at += 1
        return token

    def statement(self) -> Expression:
        name = "result"
        if len(self.tokens) > 1 and self.tokens[1][0] == "=":
            name = self.tokens[0][0]
            if not name.isidentifier():
                raise self._error(0)
            self.at = 2
        root = self.sum()
        if self.at < len(self.tokens):
            raise self._error(self.tokens[self.at][1])
        return Expression(name, frozenset(self.metrics), root)

    def _chain(self, operand: Callable[[], _Node], *operators: str) -> _Node:
        node = operand()
        while self.peek() in operators:
            node = _binary(_OPERATORS[self.take(*operators)], node, operand())
        return node

    def sum(self) -> _Node:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise ToolError("eval: the expression is nested too deeply")
        node = self._chain(self.product, "+", "-")
        self.depth -= 1
        return node

    def product(self) -> _Node:
        return self._chain(self.power, "*", "/", "%")

    def power(self) -> _Node:
        base = self.unary()
        if self.peek() != "**":
            return base
        self.take("**")
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise ToolError("eval: the expression is nested too deeply")
        exponent = self.power()
        self.depth -= 1
        return _binary(_power, base, exponent)

    def unary(self) -> _Node:
        sign = 1.0
        while self.peek() in ("-", "+"):
            sign = -sign if self.take("-", "+") == "-" else sign
        atom = self.atom()
        return atom if sign > 0 else lambda values: -atom(values)

    def atom(self) -> _Node:
        token = self.peek()
        if token == "(":
            self.take("(")
            node = self.sum()
            self.take(")")
            return node
        if token[:1].isdigit() or token[:1] == ".":
            self.at += 1
            number = float(token)
            return lambda values: number
        if not token.isidentifier():
            raise self._error(self.tokens[self.at][1] if self.at < len(self.tokens) else len(self.text))
        self.at += 1
        if self.peek() == "(":
            return self._call(token)
        self.metrics.add(token)
        return lambda values: values[token]

    def _call(self, name: str) -> _Node:
        if name not in _FUNCTIONS:
            raise ToolError(f"eval: there is no function {name}; there are {', '.join(_FUNCTIONS)}")
        least, most, function = _FUNCTIONS[name]
        self.take("(")
        arguments = [self.sum()]
        while self.peek() == ",":
            self.take(",")
            arguments.append(self.sum())
        self.take(")")
        if not least <= len(arguments) <= most:
            raise ToolError(f"eval: {name} takes {least} to {most} arguments, not {len(arguments)}")
        if len(arguments) == 1 and most > 1:
            return arguments[0]
        return lambda values: float(function(*(argument(values) for argument in arguments)))


def _binary(operator: Callable[[float, float], float], left: _Node, right: _Node) -> _Node:
    return lambda values: operator(left(values), right(values))


def parse_expression(text: str) -> Expression:
    if not text.strip() or len(text) > _MAX_TEXT:
        raise ToolError(f"eval: give an expression of at most {_MAX_TEXT} characters")
    return _Parser(text).statement()
