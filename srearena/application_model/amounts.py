"""Numbers as people write them in a model: durations, sizes, and settings that are known only when a program starts."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator

_DURATION = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>us|µs|ms|s|m|h)?")
_SECONDS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, None: 1.0}
_SIZE = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[KMGT]i?B?|B)?")
_BYTES = {"": 1, "B": 1} | {
    f"{letter}{tail}": base**power
    for power, letter in enumerate("KMGT", start=1)
    for tail, base in (("", 1000), ("B", 1000), ("i", 1024), ("iB", 1024))
}
SETTING = re.compile(r"\$\{([A-Za-z0-9_.-]+)\}")
"""A reference to a setting inside a text: `${name}`."""


def seconds(value: Any) -> float:
    """A duration in seconds; ValueError where it is none. Bare numbers are seconds."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    found = _DURATION.fullmatch(str(value).strip())
    if found is None:
        raise ValueError(f"{value!r} is no duration: write 5ms, 1.5s, 2m or a number of seconds")
    return float(found["number"]) * _SECONDS[found["unit"]]


def size(value: Any) -> int:
    """A number of bytes; ValueError where it is none."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return int(value)
    found = _SIZE.fullmatch(str(value).strip())
    if found is None:
        raise ValueError(f"{value!r} is no size: write 64Ki, 1.5Mi, 20M or a number of bytes")
    return int(float(found["number"]) * _BYTES[found["unit"] or ""])


def _open(value: Any) -> Any:
    """Settings are put in later; everything else must be right now."""
    return value if isinstance(value, str) and SETTING.search(value) else None


def _duration_or_setting(value: Any) -> Any:
    return _open(value) or seconds(value)


def _number_or_setting(value: Any) -> Any:
    kept = _open(value)
    if kept is not None:
        return kept
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{value!r} is no number") from None


def _share(value: float) -> float:
    if not 0 <= value <= 1:
        raise ValueError(f"{value:g} is no share: it lies between 0 and 1")
    return value


Seconds = Annotated[float, BeforeValidator(seconds)]
Bytes = Annotated[int, BeforeValidator(size)]
Share = Annotated[float, AfterValidator(_share)]
OpenSeconds = Annotated[float | str, BeforeValidator(_duration_or_setting)]
"""A duration, or `${setting}`."""
OpenNumber = Annotated[float | str, BeforeValidator(_number_or_setting)]
"""A number, or `${setting}`."""
