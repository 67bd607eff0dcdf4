"""Numbers that resist outliers: rates of counters, robust spread, change points, seasons.

Everything works on one series at a time; nothing here knows where a series comes from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

import numpy as np

_COUNTER_SUFFIXES = ("_total", "_count", "_sum", "_bucket")
_TO_SIGMA = 1.4826  # of a normal distribution, per median absolute deviation
OUTLIER = 3.5
_MIN_POINTS = 6


def is_counter(metric: str) -> bool:
    return metric.endswith(_COUNTER_SUFFIXES)


def rates(times: Sequence[float], values: Sequence[float]) -> tuple[list[float], list[float]]:
    """Increase per second between neighbours; a counter that falls was reset and counts from zero."""
    at, found = [], []
    for before, after in zip(range(len(times)), range(1, len(times)), strict=False):
        elapsed = times[after] - times[before]
        if elapsed > 0:
            grown = values[after] - values[before]
            at.append(times[after])
            found.append((grown if grown >= 0 else values[after]) / elapsed)
    return at, found


def spread(values: Sequence[float], centre: float) -> float:
    """Standard deviation as outliers would not have it; never zero for a series that varies at all."""
    distances = np.abs(np.asarray(values, dtype=float) - centre)
    deviation = float(np.median(distances)) * _TO_SIGMA
    return deviation or float(distances.mean()) * 1.2533


@dataclass(frozen=True, slots=True)
class ChangePoint:
    index: int
    before: float
    after: float
    strength: float  # share of the variance that one step explains, 0 to 1


def change_point(values: Sequence[float], edge: int = 2) -> ChangePoint | None:
    """The one split that explains most of the variance, if it explains enough of it."""
    count = len(values)
    if count < max(_MIN_POINTS, 2 * edge):
        return None
    points = np.asarray(values, dtype=float)
    points = points - points.mean()  # large levels would drown small steps in rounding
    squares = float(np.square(values).sum())
    variance = float(np.square(points).sum())
    if variance <= 1e-12 * max(1.0, squares):
        return None
    left = np.cumsum(points)[edge - 1 : count - edge]
    size = np.arange(edge, count - edge + 1)
    gains = left * left / size + left * left / (count - size)  # what is left of the split sums to minus what is right
    best = int(np.argmax(gains))
    strength = float(gains[best]) / variance
    best = best + edge if gains[best] > 0 else 0
    # Noise alone lets the best split explain about 2·ln(n)/n of the variance; ask for far more.
    if best == 0 or strength < 0.5:
        return None
    return ChangePoint(best, fmean(values[:best]), fmean(values[best:]), strength)


def season(values: Sequence[float]) -> int | None:
    """The period of a series that repeats at least three times, if there is one."""
    steps = np.diff(np.asarray(values, dtype=float))
    count = len(steps)
    power = float(steps @ steps)
    if count < 12 or power == 0:
        return None
    lags = np.arange(3, count // 3 + 1)
    likeness = np.correlate(steps, steps, "full")[count - 1 + lags] / power * count / (count - lags)
    best = int(np.argmax(likeness))
    return int(lags[best]) if likeness[best] > 0.7 else None


def without_season(values: Sequence[float], period: int) -> list[float]:
    overall = median(values)
    usual = [median(values[phase::period]) for phase in range(period)]
    return [value - usual[index % period] + overall for index, value in enumerate(values)]


@dataclass(frozen=True, slots=True)
class Anomalies:
    points: int
    baseline: float
    spread: float
    outliers: list[tuple[int, float]]  # index and how many spreads away
    shift: ChangePoint | None
    period: int | None

    @property
    def score(self) -> float:
        """How far the series left its usual: in spreads, or in the size of its step relative to what it was."""
        furthest = max((abs(z) for _, z in self.outliers), default=0.0)
        if self.shift is None:
            return min(furthest, 100.0)
        size = abs(self.shift.after - self.shift.before) / max(abs(self.shift.before), self.spread, 1e-9)
        return min(max(furthest, 10 * min(size, 10.0) * self.shift.strength), 100.0)


@np.errstate(over="ignore", invalid="ignore")
def anomalies(values: Sequence[float]) -> Anomalies:
    period = season(values)
    plain = without_season(values, period) if period else list(values)
    shift = change_point(plain)
    usual = plain[: shift.index] if shift else plain
    centre = median(usual) if usual else 0.0
    width = spread(usual, centre) if usual else 0.0
    # A flat series has no spread of its own: a hundredth of its level stands in, so that a jump is finite.
    width = max(width, abs(centre) * 0.01, 1e-9)
    away = (np.asarray(plain, dtype=float) - centre) / width
    far = np.flatnonzero(np.abs(away) > OUTLIER) if len(plain) >= 4 else ()
    return Anomalies(len(plain), centre, width, [(int(i), float(away[i])) for i in far], shift, period)
