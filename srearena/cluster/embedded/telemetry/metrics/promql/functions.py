"""Elementwise functions of an instant vector: mathematics and calendars."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from srearena.cluster.embedded.telemetry.metrics.blocks import Floats, Integers

Elementwise = Callable[[Floats, Sequence[Floats]], Floats]
"""Values (series by steps) and scalar arguments (one per step) in, values out."""


def _plain(function: Callable[[Floats], Floats]) -> Elementwise:
    return lambda values, _: function(values)


def _sign(values: Floats) -> Floats:
    return np.where(np.isnan(values), values, np.sign(values))


def _rounded(values: Floats, scalars: Sequence[Floats]) -> Floats:
    """Round to the nearest multiple, halves upwards; through the inverse, to have the real server's rounding errors."""
    inverse = 1.0 / (scalars[0] if scalars else np.array(1.0))
    return np.asarray(np.floor(values * inverse + 0.5) / inverse)


def _clamped(values: Floats, scalars: Sequence[Floats]) -> Floats:
    return np.maximum(scalars[0], np.minimum(scalars[1], values))


def _days(values: Floats) -> Integers:
    return np.floor_divide(_seconds(values), 86400)


def _seconds(values: Floats) -> Integers:
    return np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0).astype(np.int64)


def _months(values: Floats) -> tuple[Integers, Integers]:
    """Months since 1970, and the day each begins with."""
    months = _days(values).astype("datetime64[D]").astype("datetime64[M]")
    return months.astype(np.int64), months.astype("datetime64[D]").astype(np.int64)


def _day_of_month(values: Floats) -> Integers:
    return _days(values) - _months(values)[1] + 1


def _days_in_month(values: Floats) -> Integers:
    months, begin = _months(values)
    following = (months + 1).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    return np.asarray(following - begin)


def _year(values: Floats) -> Integers:
    return np.floor_divide(_months(values)[0], 12) + 1970


def _day_of_year(values: Floats) -> Integers:
    years = (_year(values) - 1970).astype("datetime64[Y]").astype("datetime64[D]").astype(np.int64)
    return np.asarray(_days(values) - years + 1)


def _calendar(part: Callable[[Floats], Integers]) -> Elementwise:
    return lambda values, _: np.where(np.isfinite(values), part(values), np.nan)


CALENDAR: dict[str, Elementwise] = {
    "minute": _calendar(lambda values: np.floor_divide(_seconds(values), 60) % 60),
    "hour": _calendar(lambda values: np.floor_divide(_seconds(values), 3600) % 24),
    "day_of_week": _calendar(lambda values: (_days(values) + 4) % 7),
    "day_of_month": _calendar(_day_of_month),
    "day_of_year": _calendar(_day_of_year),
    "days_in_month": _calendar(_days_in_month),
    "month": _calendar(lambda values: _months(values)[0] % 12 + 1),
    "year": _calendar(_year),
}
"""Without an argument these take the time of the step."""

ELEMENTWISE: dict[str, Elementwise] = {
    "abs": _plain(np.abs),
    "ceil": _plain(np.ceil),
    "floor": _plain(np.floor),
    "exp": _plain(np.exp),
    "ln": _plain(np.log),
    "log2": _plain(np.log2),
    "log10": _plain(np.log10),
    "sqrt": _plain(np.sqrt),
    "sgn": _plain(_sign),
    "deg": _plain(lambda values: values * 180 / np.pi),
    "rad": _plain(lambda values: values * np.pi / 180),
    "sin": _plain(np.sin),
    "cos": _plain(np.cos),
    "tan": _plain(np.tan),
    "asin": _plain(np.arcsin),
    "acos": _plain(np.arccos),
    "atan": _plain(np.arctan),
    "sinh": _plain(np.sinh),
    "cosh": _plain(np.cosh),
    "tanh": _plain(np.tanh),
    "asinh": _plain(np.arcsinh),
    "acosh": _plain(np.arccosh),
    "atanh": _plain(np.arctanh),
    "round": _rounded,
    "clamp": _clamped,
    "clamp_min": lambda values, scalars: np.maximum(scalars[0], values),
    "clamp_max": lambda values, scalars: np.minimum(scalars[0], values),
    **CALENDAR,
}
