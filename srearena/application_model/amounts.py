"""Durations, sizes and numbers of a model, and references to settings, which are resolved when a program starts."""

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
    """Parse a duration to seconds; ValueError where it is none. Bare numbers are seconds."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    match = _DURATION.fullmatch(str(value).strip())
    if match is None:
        raise ValueError(f"{value!r} is not a duration: write 5ms, 1.5s, 2m or a number of seconds")
    return float(match["number"]) * _SECONDS[match["unit"]]


def size(value: Any) -> int:
    """Parse a size to bytes; ValueError where it is none."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return int(value)
    match = _SIZE.fullmatch(str(value).strip())
    if match is None:
        raise ValueError(f"{value!r} is not a size: write 64Ki, 1.5Mi, 20M or a number of bytes")
    return int(float(match["number"]) * _BYTES[match["unit"] or ""])


def _setting_reference(value: Any) -> Any:
    """The value where it refers to a setting, which is resolved later; None otherwise."""
    return value if isinstance(value, str) and SETTING.search(value) else None


def _duration_or_setting(value: Any) -> Any:
    return _setting_reference(value) or seconds(value)


def _number_or_setting(value: Any) -> Any:
    reference = _setting_reference(value)
    if reference is not None:
        return reference
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{value!r} is not a number") from None


def _share(value: float) -> float:
    if not 0 <= value <= 1:
        raise ValueError(f"{value:g} is not a share: it must be between 0 and 1")
    return value


Seconds = Annotated[float, BeforeValidator(seconds)]
Bytes = Annotated[int, BeforeValidator(size)]
Share = Annotated[float, AfterValidator(_share)]
OpenSeconds = Annotated[float | str, BeforeValidator(_duration_or_setting)]
"""A duration, or `${setting}`."""
OpenNumber = Annotated[float | str, BeforeValidator(_number_or_setting)]
"""A number, or `${setting}`."""
