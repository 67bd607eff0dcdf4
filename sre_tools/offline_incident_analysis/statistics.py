"""Numbers that resist outliers: rates of counters, robust spread, change points, seasons.

Every series is judged by itself, and many of one length at once: there are thousands. Nothing here knows where a
series comes from.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

_COUNTER_SUFFIXES = ("_total", "_count", "_sum", "_bucket")
_TO_SIGMA = 1.4826  # of a normal distribution, per median absolute deviation
OUTLIER = 3.5
_MIN_POINTS = 6
_EDGE = 2  # points that each side of a step has at least
_POINTS_AT_ONCE = 16_000  # of many series; what is larger leaves the processor's cache, and takes memory

Floats = np.ndarray[Any, np.dtype[np.float64]]
Integers = np.ndarray[Any, np.dtype[np.int64]]


def is_counter(metric: str) -> bool:
    return metric.endswith(_COUNTER_SUFFIXES)


def rates(times: Sequence[float] | Floats, values: Sequence[float] | Floats) -> tuple[Floats, Floats]:
    """Increase per second between neighbours; a counter that falls was reset and counts from zero."""
    moments, counted = np.asarray(times, dtype=float), np.asarray(values, dtype=float)
    elapsed = np.diff(moments)
    real = elapsed > 0
    return moments[1:][real], increases(counted)[real] / elapsed[real]


def increases(counted: Floats) -> Floats:
    """How much a counter grew from point to point; of many counters, each in a row, at once."""
    grown = np.diff(counted)
    return np.where(grown >= 0, grown, counted[..., 1:])


@dataclass(frozen=True, slots=True)
class ChangePoint:
    index: int
    before: float
    after: float
    strength: float  # share of the variance that one step explains, 0 to 1


def _steps(matrix: Floats) -> tuple[Any, Any]:
    """For each row: where the one split that explains most of its variance is (0 for none), and how much it does."""
    rows, count = matrix.shape
    if count < max(_MIN_POINTS, 2 * _EDGE):
        return np.zeros(rows, dtype=int), np.zeros(rows)
    points = matrix - matrix.mean(axis=1, keepdims=True)  # large levels would drown small steps in rounding
    variance = np.square(points).sum(axis=1)
    varies = variance > 1e-12 * np.maximum(1.0, np.square(matrix).sum(axis=1))
    left = np.cumsum(points, axis=1)[:, _EDGE - 1 : count - _EDGE]
    size = np.arange(_EDGE, count - _EDGE + 1)
    gains = left * left * (1 / size + 1 / (count - size))  # left of the split sums to minus what is right of it
    best = np.argmax(gains, axis=1)
    strength = gains[np.arange(rows), best] / np.where(varies, variance, 1.0)
    # Noise alone lets the best split explain about 2·ln(n)/n of the variance; ask for far more.
    return np.where(varies & (strength >= 0.5), best + _EDGE, 0), strength


def _change(values: Floats, index: int, strength: float) -> ChangePoint:
    return ChangePoint(index, float(values[:index].mean()), float(values[index:].mean()), strength)


def change_point(values: Sequence[float]) -> ChangePoint | None:
    """The one split that explains most of the variance, if it explains enough of it."""
    points = np.asarray(values, dtype=float)
    index, strength = _steps(points[None, :])
    return _change(points, int(index[0]), float(strength[0])) if index[0] else None


def _seasons(matrix: Floats) -> Any:
    """For each row the period of a series that repeats at least three times; 0 where there is none."""
    steps = np.diff(matrix, axis=1)
    rows, count = steps.shape
    if count < 12:
        return np.zeros(rows, dtype=int)
    power = np.square(steps).sum(axis=1)
    lags = np.arange(3, count // 3 + 1)
    size = 1 << (2 * count - 1).bit_length()
    spectrum = np.fft.rfft(steps / np.sqrt(np.where(power > 0, power, 1.0))[:, None], size, axis=1)
    alike = np.fft.irfft(spectrum * spectrum.conj(), size, axis=1)[:, lags] * (count / (count - lags))
    best = np.argmax(alike, axis=1)
    clear = (power > 0) & np.isfinite(power) & (alike[np.arange(rows), best] > 0.7)
    return np.where(clear, lags[best], 0)


def _without_season(values: Floats, period: int) -> Floats:
    usual = np.array([np.median(values[phase::period]) for phase in range(period)])
    level: Floats = values - usual[np.arange(len(values)) % period] + float(np.median(values))
    return level


@dataclass(frozen=True, slots=True)
class Anomalies:
    points: int
    baseline: float
    spread: float
    outliers: Integers  # their places
    distances: Floats  # of each outlier, how many spreads it is away
    shift: ChangePoint | None
    period: int | None

    @property
    def score(self) -> float:
        """How far the series left its usual: in spreads, or in the size of its step relative to what it was."""
        furthest = float(np.abs(self.distances).max(initial=0.0))
        if self.shift is None:
            return min(furthest, 100.0)
        size = abs(self.shift.after - self.shift.before) / max(abs(self.shift.before), self.spread, 1e-9)
        return min(max(furthest, 10 * min(size, 10.0) * self.shift.strength), 100.0)


def judged(many: Sequence[Floats]) -> list[Anomalies]:
    """What is out of the ordinary in each of many series."""
    found: dict[int, Anomalies] = {}
    for chunk in alike([len(values) for values in many]):
        if len(many[chunk[0]]) == 0:
            results = [Anomalies(0, 0.0, 1e-9, np.zeros(0, dtype=int), np.zeros(0), None, None)] * len(chunk)
        else:
            results = _judge(np.stack([many[index] for index in chunk]))
        found.update(zip(chunk, results, strict=True))
    return [found[index] for index in range(len(many))]


def alike(lengths: Sequence[int]) -> Iterator[list[int]]:
    """The places of equal lengths, as many at once as fit well in memory."""
    by_length: dict[int, list[int]] = defaultdict(list)
    for index, length in enumerate(lengths):
        by_length[length].append(index)
    for length, members in by_length.items():
        size = max(1, _POINTS_AT_ONCE // max(1, length))
        for begin in range(0, len(members), size):
            yield members[begin : begin + size]


@np.errstate(over="ignore", invalid="ignore")
def _judge(matrix: Floats) -> list[Anomalies]:
    rows, count = matrix.shape
    periods = _seasons(matrix)
    plain = matrix
    if periods.any():
        plain = matrix.copy()
        for row in np.flatnonzero(periods):
            plain[row] = _without_season(matrix[row], int(periods[row]))
    steps, strength = _steps(plain)
    centre, width = _usual(plain)
    for row in np.flatnonzero(steps):  # the usual is what was before the step
        before = plain[row : row + 1, : steps[row]]
        centre[row], width[row] = (part[0] for part in _usual(before))
    # A flat series has no spread of its own: a hundredth of its level stands in, so that a jump is finite.
    width = np.maximum(np.maximum(width, np.abs(centre) * 0.01), 1e-9)
    away = (plain - centre[:, None]) / width[:, None]
    far: Any = np.abs(away) > OUTLIER
    far &= count >= 4
    places, distances = np.nonzero(far)[1], away[far]
    ends = np.cumsum(np.count_nonzero(far, axis=1))
    own = [slice(begin, end) for begin, end in pairwise([0, *ends.tolist()])]
    return [
        Anomalies(
            count,
            float(centre[row]),
            float(width[row]),
            places[own[row]],
            distances[own[row]],
            _change(plain[row], int(steps[row]), float(strength[row])) if steps[row] else None,
            int(periods[row]) or None,
        )
        for row in range(rows)
    ]


def _medians(matrix: Floats) -> Floats:
    """Of each row; NumPy's own takes six times as long, since its partition is slower than its sort."""
    ordered, count = np.sort(matrix, axis=1), matrix.shape[1]
    medians: Floats = (ordered[:, (count - 1) // 2] + ordered[:, count // 2]) / 2
    return medians


def _usual(matrix: Floats) -> tuple[Floats, Floats]:
    """Level and spread of each row as outliers would not have it; no spread is zero where a series varies at all."""
    centre = _medians(matrix)
    distances = np.abs(matrix - centre[:, None])
    deviation = _medians(distances) * _TO_SIGMA
    return centre, np.where(deviation > 0, deviation, distances.mean(axis=1) * 1.2533)
