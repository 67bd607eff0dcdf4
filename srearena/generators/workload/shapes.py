"""The shape of load over time: pure functions from seconds since the start to requests per second.

A rate is never negative and has no randomness; random is only the spacing of requests around the rate.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, Protocol

from srearena.service.errors import ApplicationError


class Shape(Protocol):
    """A rate as a function of time."""

    def __call__(self, seconds: float) -> float:
        """Requests per second at that time after the start."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant rate."""

    rate: float

    def __call__(self, seconds: float) -> float:
        return self.rate


@dataclass(frozen=True, slots=True)
class Ramp:
    """A linear change from one rate to another, then constant."""

    start: float
    end: float
    over: float
    """Duration in seconds."""

    def __call__(self, seconds: float) -> float:
        if seconds >= self.over:
            return self.end
        return self.start + (self.end - self.start) * max(0.0, seconds) / self.over


@dataclass(frozen=True, slots=True)
class Spike:
    """A base rate with a rectangular peak, once or periodically."""

    base: float
    peak: float
    at: float
    lasting: float
    every: float = 0.0
    """The period in seconds; 0 for a single peak."""

    def __call__(self, seconds: float) -> float:
        since = seconds - self.at
        if self.every and since >= 0:
            since %= self.every
        return self.peak if 0 <= since < self.lasting else self.base


@dataclass(frozen=True, slots=True)
class Diurnal:
    """A daily cycle: a sine around the mean."""

    mean: float
    swing: float
    """The amplitude as a share of the mean (0 to 1)."""
    period: float = 86400.0
    peak_at: float = 0.0
    """The time of the first peak in seconds."""

    def __call__(self, seconds: float) -> float:
        turn = 2 * math.pi * (seconds - self.peak_at) / self.period
        return max(0.0, self.mean * (1 + self.swing * math.cos(turn)))


@dataclass(frozen=True, slots=True)
class Replayed:
    """A recorded curve with linear interpolation; constant before the first and after the last point."""

    points: tuple[tuple[float, float], ...]
    """(seconds, rate), ordered by time."""
    repeat: bool = False
    """Start again after the last point."""

    def __call__(self, seconds: float) -> float:
        first, last = self.points[0][0], self.points[-1][0]
        if self.repeat and last > first and seconds > last:
            seconds = first + (seconds - first) % (last - first)
        index = bisect_right(self.points, (seconds, math.inf))
        if index == 0:
            return self.points[0][1]
        if index == len(self.points):
            return self.points[-1][1]
        (t0, r0), (t1, r1) = self.points[index - 1], self.points[index]
        return r0 + (r1 - r0) * (seconds - t0) / (t1 - t0)


SHAPES: dict[str, type[Constant | Ramp | Spike | Diurnal | Replayed]] = {
    "constant": Constant,
    "ramp": Ramp,
    "spike": Spike,
    "diurnal": Diurnal,
    "replayed": Replayed,
}


def parse_shape(value: Any) -> Shape:
    """Parse a number, or a mapping with the `shape`'s name and its settings; ApplicationError where it is neither."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _checked(Constant(float(value)))
    if not isinstance(value, Mapping) or value.get("shape") not in SHAPES:
        raise ApplicationError(
            f"a load is a rate, or a mapping whose shape is one of {', '.join(SHAPES)}: not {value!r}"
        )
    settings = {key: setting for key, setting in value.items() if key != "shape"}
    if "points" in settings:
        settings["points"] = tuple((float(t), float(r)) for t, r in settings["points"])
    kind = SHAPES[value["shape"]]
    try:
        return _checked(kind(**settings))
    except TypeError:
        names = ", ".join(field.name for field in fields(kind))
        raise ApplicationError(f"a load of shape {value['shape']} has the settings {names}: not {settings}") from None


def _checked(shape: Constant | Ramp | Spike | Diurnal | Replayed) -> Shape:
    match shape:
        case Constant(rate) if rate < 0:
            problem = "a rate cannot be negative"
        case Ramp(start, end, over) if start < 0 or end < 0 or over <= 0:
            problem = "a ramp needs rates that are not negative, and a time to take"
        case Spike(base, peak, at, lasting, every) if min(base, peak, at, every) < 0 or lasting <= 0:
            problem = "a spike needs rates and times that are not negative, and a length"
        case Diurnal(mean, swing, period) if mean < 0 or not 0 <= swing <= 1 or period <= 0:
            problem = "a day needs a mean that is not negative, a swing from 0 to 1, and a period"
        case Replayed(points) if not points or any(r < 0 for _, r in points) or not _rising(points):
            problem = "a recording needs points in the order of time, with rates that are not negative"
        case _:
            return shape
    raise ApplicationError(f"{problem}: {shape}")


def _rising(points: tuple[tuple[float, float], ...]) -> bool:
    return all(a[0] < b[0] for a, b in pairwise(points))


def mean_rate(shape: Shape, start: float, end: float, steps: int = 16) -> float:
    """The mean rate over a period, by the midpoint rule."""
    width = (end - start) / steps
    return sum(shape(start + (i + 0.5) * width) for i in range(steps)) / steps


def describe(shape: Shape) -> str:
    """The shape as one line of text: `ramp start=10 end=100 over=60`."""
    name = next(name for name, kind in SHAPES.items() if isinstance(shape, kind))
    if isinstance(shape, Replayed):
        points = ",".join(f"{_number(t)}:{_number(r)}" for t, r in shape.points)
        return f"replayed points={points} repeat={int(shape.repeat)}"
    settings = (f"{field.name}={_number(getattr(shape, field.name))}" for field in fields(SHAPES[name]))
    return f"{name} {' '.join(settings)}"


def _number(value: float) -> str:
    return repr(float(value)).removesuffix(".0")
