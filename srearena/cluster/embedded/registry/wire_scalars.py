"""Scalars that Go decodes with code of their own: times, quantities, base64. What they become, and what they say.

Each function takes a decoded JSON value and returns it as the server would write it back; it raises ValueError in
the words of Go's own parsers.
"""

from __future__ import annotations

import base64
import binascii
import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Final

from srearena.cluster.embedded import quantity
from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.registry.json_values import kind_of

_SECONDS: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_RFC3339: Final = "2006-01-02T15:04:05Z07:00"
_RFC3339_MICRO: Final = "2006-01-02T15:04:05.000000Z07:00"
_ZONE: Final = ("Z07:00", re.compile(r"Z|[+-]\d\d:\d\d", re.ASCII))
_FRACTION: Final = re.compile(r"[.,](\d+)", re.ASCII)
# The parts of a time in order: how Go names each in its layout, what it accepts there, and within which limits.
_PARTS: Final = tuple(
    (name, re.compile(pattern, re.ASCII), limits)
    for name, pattern, limits in (
        ("2006", r"\d{4}", None),
        ("-", "-", None),
        ("01", r"\d\d", (1, 12, "month")),
        ("-", "-", None),
        ("02", r"\d\d", None),
        ("T", "T", None),
        ("15", r"\d\d?", (0, 23, "hour")),
        (":", ":", None),
        ("04", r"\d\d", (0, 59, "minute")),
        (":", ":", None),
        ("05", r"\d\d", (0, 59, "second")),
    )
)
_BASE64: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


class WrongKind(ValueError):
    """A JSON value of a kind that the type cannot be read from."""

    def __init__(self, found: str, go_type: str) -> None:
        super().__init__(f"json: cannot unmarshal {found} into Go value of type {go_type}")
        self.found = found
        self.go_type = go_type


def time_text(value: Any) -> str:
    """A time to the second, in UTC."""
    if isinstance(value, str) and _SECONDS.fullmatch(value) and _fits(value):
        return value
    # Not strftime, which does not pad the year.
    return f"{_parsed(_text(value), _RFC3339, micro=False).isoformat()[:19]}Z"


def micro_time_text(value: Any) -> str:
    """A time to the microsecond, in UTC."""
    return f"{_parsed(_text(value), _RFC3339_MICRO, micro=True).isoformat(timespec='microseconds')[:26]}Z"


def quantity_text(value: Any) -> str:
    """A quantity in its canonical form."""
    if isinstance(value, bool):
        raise quantity.QuantityError(quantity.FORMAT_WRONG)
    return quantity.canonical(value.strip() if isinstance(value, str) else value)


def int_or_string(value: Any) -> int | str:
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and -(2**31) <= value < 2**31:
        return value
    what = f"number {value!r}" if isinstance(value, int | float) and not isinstance(value, bool) else kind_of(value)
    raise WrongKind(what, "int32")


def base64_text(value: str) -> str:
    """Base64 as it comes out of decoding and encoding again."""
    data = value.encode(errors="replace")
    clean = data.translate(None, b"\r\n")
    try:
        if len(clean) % 4 == 0 and not clean.endswith(b"==="):
            return base64.b64encode(base64.b64decode(clean, validate=True)).decode()
    except binascii.Error:
        pass
    raise ValueError(f"illegal base64 data at input byte {_corrupt_byte(data)}")


def _corrupt_byte(data: bytes) -> int:
    """Where Go's decoder finds the first thing wrong, line breaks counted."""
    letters = [(index, char) for index, char in enumerate(data) if char not in b"\r\n"]
    for count, (index, char) in enumerate(letters):
        if char in _BASE64:
            continue
        if char != ord("=") or count % 4 < 2:
            return index
        padding = letters[count + 1 :]
        if count % 4 == 2:
            if not padding:
                return len(data)
            if padding[0][1] != ord("="):
                return padding[0][0] - 1
            padding = padding[1:]
        return padding[0][0] if padding else len(data)
    return len(data) - len(letters) % 4


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise WrongKind(kind_of(value), "string")
    return value


def _fits(text: str) -> bool:
    return (
        "01" <= text[5:7] <= "12"
        and "01" <= text[8:10] <= "28"
        and text[11:13] <= "23"
        and text[14:16] <= "59"
        and text[17:19] <= "59"
        and text[:4] != "0000"
    )


def _parsed(text: str, layout: str, *, micro: bool) -> datetime:
    prefix = f"parsing time {quoted(text)}"
    found: list[str] = []
    rest = text
    for name, pattern, limits in _PARTS:
        match = pattern.match(rest)
        if match is None:
            raise ValueError(f"{prefix} as {quoted(layout)}: cannot parse {quoted(rest)} as {quoted(name)}")
        if limits and not limits[0] <= int(match.group()) <= limits[1]:
            raise ValueError(f"{prefix}: {limits[2]} out of range")
        found.append(match.group())
        rest = rest[match.end() :]
    fraction = _FRACTION.match(rest)
    digits = fraction.group(1) if fraction else ""
    if micro and len(digits) != 6:
        raise ValueError(f"{prefix} as {quoted(layout)}: cannot parse {quoted(rest)} as {quoted('.000000')}")
    rest = rest[fraction.end() :] if fraction else rest
    zone = _ZONE[1].match(rest)
    if zone is None:
        raise ValueError(f"{prefix} as {quoted(layout)}: cannot parse {quoted(rest)} as {quoted(_ZONE[0])}")
    if rest[zone.end() :]:
        raise ValueError(f"{prefix}: extra text: {quoted(rest[zone.end() :])}")
    year, month, day, hour, minute, second = (int(found[index]) for index in (0, 2, 4, 6, 8, 10))
    offset = zone.group()
    shift = timedelta()
    if offset != "Z":
        shift = timedelta(hours=int(offset[1:3]), minutes=int(offset[4:6])) * (-1 if offset[0] == "-" else 1)
    try:
        moment = datetime(
            year, month, day, hour, minute, second, int(digits[:6].ljust(6, "0")), timezone(shift) if shift else UTC
        )
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(f"{prefix}: day out of range") from None
