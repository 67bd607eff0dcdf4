"""Signals over time, on one grid of instants: requests, errors, latency of services and of calls; CPU and memory.

A key names what a series is about: `(namespace, service)`, `(namespace, service, operation)` of calls that a service
sends, or `(namespace, pod)`. Deviation compares the present with the baseline, which is what was measured first: it
stays the same while the incident goes on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median

Key = tuple[str, ...]
STEP = 15
"""Seconds between two points: the interval at which the metrics are scraped."""
_MOST_POINTS = 960
"""Four hours; older points are forgotten."""
_BASELINE_SHARE = 3
"""The baseline is the first third of what was measured first: an incident may have begun in the rest."""
_RISING_POINTS = 4
_FEWEST = 8
_RECENT_POINTS = 4
_WORSE, _MUCH_WORSE = 1, 2


@dataclass(slots=True)
class Reading:
    """A value now, what it was in the baseline, and how far it deviates: 0, 1 or 2."""

    now: float | None
    usual: float | None
    level: int = 0


class Signals:
    """Series by measure and key. Points are appended in the order of time."""

    def __init__(self, present: int = 1, least_rate: float = 0.05, healthy_until: float | None = None) -> None:
        """The present is the mean of the latest `present` points: more than one where points are of few samples.

        Rates that are usually below `least_rate` do not deviate. The baseline ends at `healthy_until`, if known.
        """
        self.least_rate = least_rate
        self._healthy_until = healthy_until
        self._present = present
        self.times: list[int] = []
        self._series: dict[tuple[str, Key], list[float | None]] = {}
        self._baseline: dict[tuple[str, Key], list[float]] | None = None
        self.baseline_span: tuple[int, int] | None = None

    def extend(self, times: range, values: Mapping[tuple[str, Key], Mapping[int, float]]) -> None:
        """Append points at these times, which are later than all before."""
        self.times += times
        for name, points in values.items():
            series = self._series.setdefault(name, [])
            series += [None] * (len(self.times) - len(times) - len(series))
            series += [points.get(time) for time in times]
        for series in self._series.values():
            series += [None] * (len(self.times) - len(series))
        surplus = len(self.times) - _MOST_POINTS
        if surplus > 0:
            del self.times[:surplus]
            for series in self._series.values():
                del series[:surplus]
        if self._baseline is None and len(self.times) >= _FEWEST:
            self._set_baseline()

    @property
    def begin(self) -> int:
        """The index of the first point at which requests were served."""
        served = [series for (measure, _), series in self._series.items() if measure == "requests"]
        return next((index for index in range(len(self.times)) if any(series[index] for series in served)), 0)

    def _set_baseline(self) -> None:
        begin = self.begin
        after = begin + max(1, (len(self.times) - begin) // _BASELINE_SHARE)
        if self._healthy_until is not None:
            after = max(begin + 1, sum(time <= self._healthy_until for time in self.times))
        # The first rates are of an interval in which the load began.
        begin += min(_RISING_POINTS, (after - begin) // 2) if begin else 0
        self.baseline_span = (self.times[begin], self.times[max(begin, after - 1)])
        self._baseline = {
            name: [value for value in series[begin:after] if value is not None] for name, series in self._series.items()
        }

    def keys(self, measure: str) -> Iterator[Key]:
        return (key for name, key in self._series if name == measure)

    def series(self, measure: str, key: Key) -> list[float | None]:
        return self._series.get((measure, key), [None] * len(self.times))

    def now(self, measure: str, key: Key) -> float | None:
        """The latest value, of the last minute."""
        recent = [value for value in self.series(measure, key)[-_RECENT_POINTS:] if value is not None]
        latest = recent[-self._present :]
        return sum(latest) / len(latest) if latest else None

    def usual(self, measure: str, key: Key) -> list[float]:
        return sorted((self._baseline or {}).get((measure, key), ()))


def add_series(keys: Iterable[list[float | None]], length: int) -> list[float | None]:
    """The sum of several series; None where none has a value."""
    total: list[float | None] = [None] * length
    for series in keys:
        for index, value in enumerate(series):
            if value is not None:
                total[index] = value + (total[index] or 0.0)
    return total


def rate_reading(now: float | None, usual: list[float], least: float = 0.05) -> Reading:
    """Requests per second: fewer or more than usual; strongly only where they have all but stopped.

    A failure changes the requests of every service, so errors and latency tell more.
    """
    before = median(usual) if usual else None
    if before is None or before < least:
        return Reading(now, before)
    present = now or 0.0
    if _inside(present, usual):
        return Reading(now, before)
    ratio = present / before
    level = _MUCH_WORSE if ratio < 0.1 else _WORSE if ratio < 0.65 or ratio > 1.6 else 0
    return Reading(now, before, level)


def error_reading(now: float | None, usual: list[float]) -> Reading:
    """The share of failed requests: above one in a hundred, and above what was usual."""
    before = median(usual) if usual else 0.0
    if now is None:
        return Reading(now, before)
    above = now - (usual[len(usual) * 9 // 10] if usual else 0.0)
    level = _MUCH_WORSE if above > 0.05 else _WORSE if above > 0.01 else 0
    return Reading(now, before, level)


def latency_reading(now: float | None, usual: list[float]) -> Reading:
    """Milliseconds: well above all that was usual."""
    before = median(usual) if usual else None
    if now is None or before is None or _inside(now, usual) or now - before < 3.0:
        return Reading(now, before)
    ratio = now / max(before, 0.1)
    return Reading(now, before, _MUCH_WORSE if ratio > 4 else _WORSE if ratio > 1.6 else 0)


def _inside(value: float, usual: list[float]) -> bool:
    """Whether the value lies in the middle nine tenths of what was usual."""
    cut = len(usual) // 20
    return usual[cut] <= value <= usual[len(usual) - 1 - cut]


def share(part: float | None, whole: float | None) -> float | None:
    if whole is None or whole <= 0:
        return None
    return min(1.0, (part or 0.0) / whole)


def finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
