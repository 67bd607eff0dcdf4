"""Durations: their text form, and the value of arithmetic on them at evaluation."""

from __future__ import annotations

import math
import re

from srearena.cluster.embedded.telemetry.metrics.promql.errors import BadQuery
from srearena.cluster.embedded.telemetry.metrics.promql.nodes import Duration, DurationTerm, Number

MAX_SECONDS = 2**63 / 1e9
"""Go's `time.Duration` counts nanoseconds in 64 bits."""
_FORM = re.compile(r"(?:(\d+)y)?(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?:(\d+)ms)?", re.ASCII)
_UNITS = {"y": 365 * 86_400_000, "w": 7 * 86_400_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}


def duration_ms(text: str) -> int | None:
    """Return a Prometheus duration such as 1h30m in milliseconds; None where it is not valid."""
    found = _FORM.fullmatch(text)
    if text == "0":
        return 0
    if not text or found is None:
        return None
    return sum(int(amount) * unit for amount, unit in zip(found.groups(), _UNITS.values(), strict=True) if amount)


def duration_text(milliseconds: int) -> str:
    """Return the text form of a duration: years, weeks and days only where they are the whole of it."""
    if milliseconds == 0:
        return "0s"
    parts: list[str] = []
    rest = milliseconds
    for unit, size in _UNITS.items():
        if unit in ("y", "w", "d") and (parts or rest % size):
            continue
        amount, rest = divmod(rest, size)
        if amount:
            parts.append(f"{amount}{unit}")
    return "".join(parts)


def resolved(duration: Duration, step: int, span: int, *, negative: bool = False) -> int:
    """Return a duration in milliseconds, given step and range of the query."""
    if isinstance(duration, int):
        return duration
    seconds = _evaluated(duration, step / 1000, span / 1000)
    where = f"{duration.at}:{duration.end}"
    if math.isnan(seconds) or math.isinf(seconds):
        raise BadQuery(f"{where}: duration is NaN or infinite")
    if seconds <= 0 and not negative:
        raise BadQuery(f"{where}: duration must be greater than 0")
    if abs(seconds) > MAX_SECONDS:
        raise BadQuery(f"{where}: duration is out of range")
    return int(seconds * 1000)


def _evaluated(node: Number | DurationTerm, step: float, span: float) -> float:
    if isinstance(node, Number):
        return node.value
    left = 0.0 if node.left is None else _evaluated(node.left, step, span)
    right = 0.0 if node.right is None else _evaluated(node.right, step, span)
    match node.operator:
        case "step":
            return step
        case "range":
            return span
        case "min_of":
            return min(left, right)
        case "max_of":
            return max(left, right)
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "^":
            return _power(left, right)
        case operator:
            if right == 0:
                raise BadQuery(f"{node.at}:{node.end}: {'division' if operator == '/' else 'modulo'} by zero")
            return left / right if operator == "/" else math.fmod(left, right)


def _power(left: float, right: float) -> float:
    try:
        found = left**right
    except (OverflowError, ZeroDivisionError):
        return math.inf
    return found if isinstance(found, float) else math.nan
