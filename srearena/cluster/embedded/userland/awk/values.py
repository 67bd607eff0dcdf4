"""awk's values: numbers, text, and text from outside that may be either."""

from __future__ import annotations

import math
import re

from srearena.cluster.embedded.userland.awk.lexer import AwkError
from srearena.cluster.embedded.userland.tools.printing import format_text

_NUMBER = re.compile(r"\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\s*\Z")
_PREFIX = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)")


class Input(str):
    """Text that came from outside: it compares as a number where it looks like one."""

    __slots__ = ()


Value = float | str


def number_of(value: Value) -> float:
    if isinstance(value, float):
        return value
    found = _PREFIX.match(value)
    try:
        return float(found.group(1)) if found else 0.0
    except OverflowError:
        return 0.0


def whole(value: Value) -> int:
    number = number_of(value)
    return int(number) if math.isfinite(number) else -1


def number_text(value: float, shape: str = "%.6g") -> str:
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if value == int(value) and abs(value) < 1e16:
        return str(int(value))
    return format_text([shape, repr(value)])[0].decode()


def truth(value: Value) -> bool:
    if isinstance(value, float):
        return value != 0
    if isinstance(value, Input) and _NUMBER.match(value):
        return number_of(value) != 0
    return value != ""


def is_numeric(value: Value) -> bool:
    if isinstance(value, float):
        return True
    return isinstance(value, Input) and (value == "" or _NUMBER.match(value) is not None)


def arithmetic(operator: str, left: float, right: float) -> float:
    try:
        match operator:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case "/":
                if right == 0:
                    raise AwkError("division by zero")
                return left / right
            case "%":
                if right == 0:
                    raise AwkError("division by zero in %")
                return math.fmod(left, right)
            case _:
                return float(left**right)
    except (OverflowError, ValueError):
        return math.inf
