"""Timestamps and durations as Kubernetes formats them: RFC 3339, human-readable ages, Go duration strings.

A moment is a float of seconds since the epoch, a span a float of seconds. Nothing here reads a clock:
`now` is always a parameter.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from srearena.cluster.embedded.go_text import quoted

UNKNOWN: Final = "<unknown>"
INVALID: Final = "<invalid>"

_LAYOUT: Final = "2006-01-02T15:04:05Z07:00"
_MICRO_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)
_RFC3339: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(?:(Z)|([+-])(\d\d):(\d\d))", re.ASCII
)
_PIECES: Final = (
    ("2006", re.compile(r"\d{4}", re.ASCII)),
    ("-", re.compile("-")),
    ("01", re.compile(r"\d\d", re.ASCII)),
    ("-", re.compile("-")),
    ("02", re.compile(r"\d\d", re.ASCII)),
    ("T", re.compile("T")),
    ("15", re.compile(r"\d\d", re.ASCII)),
    (":", re.compile(":")),
    ("04", re.compile(r"\d\d", re.ASCII)),
    (":", re.compile(":")),
    ("05", re.compile(r"\d\d(?:[.,]\d+)?", re.ASCII)),
    ("Z07:00", re.compile(r"Z|[+-]\d\d:\d\d", re.ASCII)),
)
_RANGES: Final = (
    ("month", 2, 1, 12),
    ("day", 3, 1, 31),
    ("hour", 4, 0, 23),
    ("minute", 5, 0, 59),
    ("second", 6, 0, 59),
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LOCAL_EPOCH: Final = _EPOCH.replace(tzinfo=None)

_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_PART: Final = re.compile(r"(\d*)(?:\.(\d*))?([^\d.]*)", re.ASCII)
_MAX_NANOS: Final = 2**63 - 1
_MAX_DURATION_TEXT: Final = 256

MINUTE: Final = 60
HOUR: Final = 3600
DAY: Final = 86400
YEAR: Final = 365 * DAY


class TimeError(ValueError):
    """The text is no RFC 3339 timestamp; worded as Go's time package words it."""


class DurationError(ValueError):
    """The text is no Go duration; worded as Go's time package words it."""


def format_time(moment: float) -> str:
    """A metav1.Time: whole seconds, UTC."""
    return _format_seconds(int(moment // 1))


def format_micro_time(moment: float) -> str:
    """A metav1.MicroTime: six decimals, UTC."""
    seconds, micros = divmod(round(moment * 10**6), 10**6)
    return f"{_format_seconds(seconds)[:-1]}.{micros:06}Z"


@lru_cache(maxsize=4096)
def _format_seconds(seconds: int) -> str:
    return f"{(_EPOCH + timedelta(seconds=seconds)).isoformat()[:19]}Z"


@lru_cache(maxsize=16384)
def parse_time(text: str) -> float:
    """The moment an RFC 3339 text (of either precision, in any zone) names."""
    if _MICRO_TIME.fullmatch(text) is not None:
        # Leases are renewed with such a text every few seconds.
        try:
            return (datetime.fromisoformat(text[:19]) - _LOCAL_EPOCH).total_seconds() + float(f"0.{text[20:26]}")
        except ValueError:
            pass
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise TimeError(_complaint(text))
    for name, group, low, high in _RANGES:
        if not low <= int(match[group]) <= high:
            raise TimeError(f"parsing time {quoted(text)}: {name} out of range")
    year, month, day, hour, minute, second = (int(match[group]) for group in range(1, 7))
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        raise TimeError(f"parsing time {quoted(text)}: day out of range") from None
    seconds = float((moment - _EPOCH) // timedelta(seconds=1))
    if match[9]:
        offset = int(match[10]) * HOUR + int(match[11]) * MINUTE
        seconds += offset if match[9] == "-" else -offset
    if match[7]:
        seconds += float(f"0.{match[7][:9]}")
    return seconds


def _complaint(text: str) -> str:
    rest = text
    for layout, piece in _PIECES:
        match = piece.match(rest)
        if match is None:
            return f"parsing time {quoted(text)} as {quoted(_LAYOUT)}: cannot parse {quoted(rest)} as {quoted(layout)}"
        rest = rest[match.end() :]
    return f"parsing time {quoted(text)}: extra text: {quoted(rest)}"


def moment_of(value: Any) -> float | None:
    """The moment a timestamp field holds, None where it is missing, empty or no timestamp."""
    if not value or not isinstance(value, str):
        return None
    try:
        return parse_time(value)
    except TimeError:
        return None


def human_duration(seconds: float) -> str:
    """A span in the two or three figures an age column shows: `119s`, `2m3s`, `4h5m`, `3d4h`, `2y10d`.

    A span of up to two seconds into the future counts as now: clocks differ.
    """
    whole = int(seconds)
    if whole < 2 * MINUTE:
        return INVALID if whole < -1 else f"{max(whole, 0)}s"
    return _human(whole)


@lru_cache(maxsize=4096)
def _human(whole: int) -> str:
    if whole < 10 * MINUTE:
        return _two(whole // MINUTE, "m", whole % MINUTE, "s")
    if whole < 3 * HOUR:
        return f"{whole // MINUTE}m"
    if whole < 8 * HOUR:
        return _two(whole // HOUR, "h", whole % HOUR // MINUTE, "m")
    if whole < 2 * DAY:
        return f"{whole // HOUR}h"
    if whole < 8 * DAY:
        return _two(whole // DAY, "d", whole % DAY // HOUR, "h")
    if whole < 2 * YEAR:
        return f"{whole // DAY}d"
    if whole < 8 * YEAR:
        return _two(whole // YEAR, "y", whole % YEAR // DAY, "d")
    return f"{whole // YEAR}y"


def age(timestamp: Any, now: float) -> str:
    """How long ago a timestamp field was, as an age column shows it."""
    moment = moment_of(timestamp)
    return UNKNOWN if moment is None else human_duration(now - moment)


def _two(major: int, major_unit: str, minor: int, minor_unit: str) -> str:
    return f"{major}{major_unit}{minor}{minor_unit}" if minor else f"{major}{major_unit}"


def format_duration(seconds: float) -> str:
    """A span as Go prints a time.Duration: `1h0m0s`, `1m30s`, `1.5s`, `500ms`, `0s`."""
    nanos = round(seconds * 10**9)
    if nanos == 0:
        return "0s"
    sign = "-" if nanos < 0 else ""
    nanos = abs(nanos)
    if nanos < 10**9:
        unit, size = next(pair for pair in (("ms", 10**6), ("µs", 10**3), ("ns", 1)) if nanos >= pair[1])
        return f"{sign}{_decimal(nanos, size)}{unit}"
    minutes, rest = divmod(nanos, 60 * 10**9)
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(rest, 10**9)}s"
    if hours:
        text = f"{hours}h{minutes}m{text}"
    elif minutes:
        text = f"{minutes}m{text}"
    return sign + text


def _decimal(amount: int, size: int) -> str:
    whole, rest = divmod(amount, size)
    if not rest:
        return str(whole)
    places = len(str(size)) - 1
    return f"{whole}.{rest:0{places}}".rstrip("0")


@lru_cache(maxsize=1024)
def parse_duration(text: str) -> float:
    """The span a Go duration string means: `1m30s` is 90.0."""
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return 0.0
    if not rest or len(rest) > _MAX_DURATION_TEXT:
        raise DurationError(f"time: invalid duration {quoted(text)}")
    nanos = 0
    while rest:
        match = _PART.match(rest)
        if match is None or not (match[1] or match[2]):
            raise DurationError(f"time: invalid duration {quoted(text)}")
        whole, fraction, unit = match.groups(default="")
        if not unit:
            raise DurationError(f"time: missing unit in duration {quoted(text)}")
        if unit not in _UNITS:
            raise DurationError(f"time: unknown unit {quoted(unit)} in duration {quoted(text)}")
        nanos += int(whole or "0") * _UNITS[unit]
        if fraction:
            nanos += int(fraction) * _UNITS[unit] // 10 ** len(fraction)
        if nanos > _MAX_NANOS:
            raise DurationError(f"time: invalid duration {quoted(text)}")
        rest = rest[match.end() :]
    return -nanos / 10**9 if text[0] == "-" else nanos / 10**9
