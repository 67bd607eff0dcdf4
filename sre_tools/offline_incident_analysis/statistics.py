"""Robust statistics of series: counter increases, spread, change points, seasons, anomalies.

Each series is analysed independently; series of equal length are processed together as a matrix.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

_COUNTER_SUFFIXES = ("_total", "_count", "_sum", "_bucket")
_TO_SIGMA = 1.4826  # standard deviation of a normal distribution per median absolute deviation
_MEAN_TO_SIGMA = 1.2533  # the same per mean absolute deviation
OUTLIER = 3.5  # spreads; the threshold of Iglewicz and Hoaglin for modified z-scores
_MIN_POINTS = 6  # chosen: fewer points show no step
_MIN_BASELINE = 4  # points before a pivot; chosen
_GUARD = 60.0  # seconds before a pivot that may be affected already; chosen
_EDGE = 2  # minimum number of points on each side of a step
_BATCH_POINTS = 16_000  # chosen: a batch of series fits in the processor's cache

Floats = np.ndarray[Any, np.dtype[np.float64]]
Integers = np.ndarray[Any, np.dtype[np.int64]]


def is_counter(metric: str) -> bool:
    return metric.endswith(_COUNTER_SUFFIXES)


@np.errstate(over="ignore", invalid="ignore")
def increases(counted: Floats) -> Floats:
    """Increase of a counter from point to point; for a matrix, of the counter in each row. A decrease is a reset."""
    grown = np.diff(counted)
    return np.where(grown >= 0, grown, counted[..., 1:])


@dataclass(frozen=True, slots=True)
class ChangePoint:
    index: int
    before: float
    after: float
    strength: float  # 0 to 1: share of the variance that it explains, or of the later points that are outliers


def _steps(matrix: Floats) -> tuple[Any, Any]:
    """For each row: the index of the split that explains most of its variance (0 for none), and the share explained.

    What a straight line explains better is a trend (a counter without the name of one), not a step.
    """
    rows, count = matrix.shape
    if count < max(_MIN_POINTS, 2 * _EDGE):
        return np.zeros(rows, dtype=int), np.zeros(rows)
    points = matrix - matrix.mean(
        axis=1, keepdims=True
    )  # centred: large levels would hide small steps in rounding errors
    variance = np.square(points).sum(axis=1)
    varies = variance > 1e-12 * np.maximum(1.0, np.square(matrix).sum(axis=1))
    left = np.cumsum(points, axis=1)[:, _EDGE - 1 : count - _EDGE]
    size = np.arange(_EDGE, count - _EDGE + 1)
    gains = left * left * (1 / size + 1 / (count - size))  # centred: the right side sums to minus the left side
    best = np.argmax(gains, axis=1)
    strength = gains[np.arange(rows), best] / np.where(varies, variance, 1.0)
    place = np.arange(count) - (count - 1) / 2
    line = np.square(points @ place) / np.square(place).sum() / np.where(varies, variance, 1.0)
    # In pure noise the best split explains about 2·ln(n)/n of the variance; require much more.
    return np.where(varies & (strength >= np.maximum(0.5, line)), best + _EDGE, 0), strength


def _change(values: Floats, index: int, strength: float) -> ChangePoint:
    return ChangePoint(index, float(values[:index].mean()), float(values[index:].mean()), strength)


def _seasons(matrix: Floats) -> Any:
    """For each row the period of a pattern that repeats at least three times; 0 if there is none."""
    steps = np.diff(matrix, axis=1)
    rows, count = steps.shape
    if count < 12:
        return np.zeros(rows, dtype=int)
    power = np.square(steps).sum(axis=1)
    lags = np.arange(3, count // 3 + 1)
    size = 1 << (2 * count - 1).bit_length()
    spectrum = np.fft.rfft(steps / np.sqrt(np.where(power > 0, power, 1.0))[:, None], size, axis=1)
    correlation = np.fft.irfft(spectrum * spectrum.conj(), size, axis=1)[:, lags] * (count / (count - lags))
    best = np.argmax(correlation, axis=1)
    clear = (power > 0) & np.isfinite(power) & (correlation[np.arange(rows), best] > 0.7)
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
    outliers: Integers  # indexes
    distances: Floats  # of each outlier from the baseline, in spreads
    shift: ChangePoint | None
    period: int | None

    @property
    def score(self) -> float:
        """Size of the anomaly, 0 to 100: largest distance in spreads, or size of the step relative to the level."""
        furthest = float(np.abs(self.distances).max(initial=0.0))
        if self.shift is None:
            return min(furthest, 100.0)
        size = abs(self.shift.after - self.shift.before) / max(abs(self.shift.before), self.spread, 1e-9)
        return min(max(furthest, 10 * min(size, 10.0) * self.shift.strength), 100.0)


def detect_anomalies(many: Sequence[Floats]) -> list[Anomalies]:
    """The anomalies of each of many series."""
    by_index: dict[int, Anomalies] = {}
    for chunk in equal_length_batches([len(values) for values in many]):
        if len(many[chunk[0]]) == 0:
            results = [Anomalies(0, 0.0, 1e-9, np.zeros(0, dtype=int), np.zeros(0), None, None)] * len(chunk)
        else:
            results = _detect(np.stack([many[index] for index in chunk]))
        by_index.update(zip(chunk, results, strict=True))
    return [by_index[index] for index in range(len(many))]


def anomalies_since(times: Floats, values: Floats, pivot: float) -> Anomalies | None:
    """The anomalies after a time, compared with the points before it; None if those are too few.

    A point is an outlier if it is further from the level before the pivot than every point before it, too. The last
    minute before the pivot is not part of the baseline: causes come before the symptoms that a pivot is found by.
    """
    before = times < pivot - _GUARD
    if before.sum() < _MIN_BASELINE:
        return None
    period = int(_seasons(values[None, :])[0])
    plain = _without_season(values, period) if period else values
    (centre,), (deviation,) = _level_and_spread(plain[None, before])
    width = max(float(deviation), abs(float(centre)) * 0.01, 1e-9)
    offset = (plain - centre) / width
    far = ~before & (np.abs(offset) > max(OUTLIER, float(np.abs(offset[before]).max())))
    outliers = np.flatnonzero(far)
    shift = None
    if len(outliers) >= _EDGE:
        # From the first outlier on most points are outliers: a lasting step.
        lasting = float(far[outliers[0] :].mean())
        if lasting > 0.5:
            index = int(outliers[0])
            shift = ChangePoint(index, float(plain[before].mean()), float(plain[index:].mean()), lasting)
    return Anomalies(len(values), float(centre), width, outliers, offset[far], shift, period or None)


def equal_length_batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Indexes of equal lengths, in batches of bounded size."""
    by_length: dict[int, list[int]] = defaultdict(list)
    for index, length in enumerate(lengths):
        by_length[length].append(index)
    for length, members in by_length.items():
        size = max(1, _BATCH_POINTS // max(1, length))
        for begin in range(0, len(members), size):
            yield members[begin : begin + size]


@np.errstate(over="ignore", invalid="ignore")
def _detect(matrix: Floats) -> list[Anomalies]:
    rows, count = matrix.shape
    periods = _seasons(matrix)
    plain = matrix
    if periods.any():
        plain = matrix.copy()
        for row in np.flatnonzero(periods):
            plain[row] = _without_season(matrix[row], int(periods[row]))
    steps, strength = _steps(plain)
    centre, width = _level_and_spread(plain)
    for row in np.flatnonzero(steps):  # the baseline is the part before the step
        before = plain[row : row + 1, : steps[row]]
        centre[row], width[row] = (part[0] for part in _level_and_spread(before))
    # A flat series has no spread: use 1 % of its level, so that the distance of a jump is finite.
    width = np.maximum(np.maximum(width, np.abs(centre) * 0.01), 1e-9)
    offset = (plain - centre[:, None]) / width[:, None]
    far: Any = np.abs(offset) > OUTLIER
    far &= count >= 4
    places, distances = np.nonzero(far)[1], offset[far]
    ends = np.cumsum(np.count_nonzero(far, axis=1))
    slices = [slice(begin, end) for begin, end in pairwise([0, *ends.tolist()])]
    return [
        Anomalies(
            count,
            float(centre[row]),
            float(width[row]),
            places[slices[row]],
            distances[slices[row]],
            _change(plain[row], int(steps[row]), float(strength[row])) if steps[row] else None,
            int(periods[row]) or None,
        )
        for row in range(rows)
    ]


def _medians(matrix: Floats) -> Floats:
    """Median of each row; measured: np.median takes six times as long."""
    ordered, count = np.sort(matrix, axis=1), matrix.shape[1]
    medians: Floats = (ordered[:, (count - 1) // 2] + ordered[:, count // 2]) / 2
    return medians


def _level_and_spread(matrix: Floats) -> tuple[Floats, Floats]:
    """Robust level and spread of each row; the spread is zero only if the series is constant."""
    centre = _medians(matrix)
    distances = np.abs(matrix - centre[:, None])
    deviation = _medians(distances) * _TO_SIGMA
    return centre, np.where(deviation > 0, deviation, distances.mean(axis=1) * _MEAN_TO_SIGMA)
