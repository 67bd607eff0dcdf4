"""Durations and sizes in queries and in log lines."""

from __future__ import annotations

import re

from srearena.cluster.embedded.durations import DurationError, parse_duration

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0, "y": 31536000.0}
_DURATION = re.compile(r"(?:(\d+)y)?(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?:(\d+)ms)?", re.ASCII)
_ORDER = ("y", "w", "d", "h", "m", "s", "ms")
_SIZE = re.compile(r"([\d.,]+)\s*([a-z]*)", re.ASCII | re.IGNORECASE)
_FACTORS = {"": 1, "b": 1}
for _power, _letter in enumerate("kmgtpe", 1):
    _FACTORS |= {_letter: 1000**_power, f"{_letter}b": 1000**_power}
    _FACTORS |= {f"{_letter}i": 1024**_power, f"{_letter}ib": 1024**_power}
_FLOAT = re.compile(
    r"[+-]?(?:\d[\d_]*\.?\d*(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?|inf|infinity|nan)", re.ASCII | re.IGNORECASE
)


def prometheus_duration(text: str) -> float | None:
    """Seconds of `1h30m`, with days, weeks and years; units from large to small, each at most once."""
    if text == "0":
        return 0.0
    found = _DURATION.fullmatch(text)
    if found is None or not text:
        return None
    return sum(int(amount) * _UNITS[unit] for amount, unit in zip(found.groups(), _ORDER, strict=True) if amount)


def go_duration(text: str) -> float | None:
    """Seconds of what Go's time.ParseDuration takes."""
    try:
        return parse_duration(text)
    except DurationError:
        return None


def duration(text: str) -> float | None:
    """Seconds of a duration in a query."""
    seconds = prometheus_duration(text)
    return go_duration(text) if seconds is None else seconds


def size(text: str) -> float | None:
    """Bytes of `1.5MiB`, `20 kB`, `300`."""
    found = _SIZE.fullmatch(text.strip())
    if found is None or found[2].lower() not in _FACTORS:
        return None
    try:
        return float(int(float(found[1].replace(",", "")) * _FACTORS[found[2].lower()]))
    except ValueError:
        return None


def number(text: str) -> float | None:
    """Parse a number like Go's strconv.ParseFloat."""
    return float(text) if _FLOAT.fullmatch(text) and "_" not in text else None
