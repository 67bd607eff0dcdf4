"""The humanize functions of Prometheus' templates."""

from __future__ import annotations

import math

from srearena.cluster.embedded.durations import format_time
from srearena.cluster.embedded.go_text import float_text

_LARGE = ("k", "M", "G", "T", "P", "E", "Z", "Y")
_SMALL = ("m", "u", "n", "p", "f", "a", "z", "y")
_BINARY = ("ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi")


def _four_digits(value: float) -> str:
    """Go's %.4g."""
    text = f"{value:.4g}"
    return text if "n" not in text else float_text(value)


def humanize(value: float) -> str:
    if value == 0 or not math.isfinite(value):
        return _four_digits(value)
    prefix = ""
    if abs(value) >= 1:
        for letter in _LARGE:
            if abs(value) < 1000:
                break
            prefix, value = letter, value / 1000
    else:
        for letter in _SMALL:
            if abs(value) >= 1:
                break
            prefix, value = letter, value * 1000
    return f"{_four_digits(value)}{prefix}"


def humanize_1024(value: float) -> str:
    if abs(value) <= 1 or not math.isfinite(value):
        return _four_digits(value)
    prefix = ""
    for letters in _BINARY:
        if abs(value) < 1024:
            break
        prefix, value = letters, value / 1024
    return f"{_four_digits(value)}{prefix}"


def humanize_percentage(value: float) -> str:
    return f"{_four_digits(value * 100)}%"


def humanize_duration(value: float) -> str:
    if not math.isfinite(value):
        return _four_digits(value)
    if value == 0:
        return "0s"
    if abs(value) < 1:
        return f"{humanize(value)}s"
    sign, whole = ("-" if value < 0 else ""), int(abs(value))
    days, hours, minutes, seconds = whole // 86400, whole // 3600 % 24, whole // 60 % 60, whole % 60
    if days:
        return f"{sign}{days}d {hours}h {minutes}m {seconds}s"
    if hours:
        return f"{sign}{hours}h {minutes}m {seconds}s"
    if minutes:
        return f"{sign}{minutes}m {seconds}s"
    return f"{sign}{_four_digits(abs(value))}s"


def humanize_timestamp(value: float) -> str:
    if not math.isfinite(value):
        return _four_digits(value)
    return format_time(value).replace("T", " ").replace("Z", " +0000 UTC")
