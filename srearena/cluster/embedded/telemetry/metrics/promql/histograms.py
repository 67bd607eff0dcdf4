"""Functions of classic histograms: buckets are series with an `le` label."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from srearena.cluster.embedded.telemetry.metrics.blocks import Floats, Integers
from srearena.cluster.embedded.telemetry.metrics.labels import Labels, value_of, with_labels, without
from srearena.cluster.embedded.telemetry.metrics.promql.annotations import Annotations
from srearena.cluster.embedded.telemetry.metrics.promql.errors import QueryError
from srearena.cluster.embedded.telemetry.metrics.promql.values import Vector, nameless
from srearena.cluster.embedded.telemetry.metrics.rendering import go_float

_LE = frozenset(("le",))
_TOLERANCE = 1e-12
"""Relative difference of counts that is taken for a rounding error: `smallDeltaTolerance` of the real server."""


@dataclass(frozen=True, slots=True)
class Noted:
    """Where corrections of buckets are noted."""

    annotations: Annotations
    times: Integers
    at: int


@dataclass(slots=True)
class Histograms:
    """Buckets by histogram: pairs of bound and row, in ascending order."""

    buckets: Vector
    members: dict[Labels, list[tuple[float, int]]]


def bound_of(labels: Labels) -> float | None:
    """Return the upper bound of a bucket's `le`, if it is valid."""
    text = value_of(labels, "le")
    try:
        bound = float(text.replace("_", "x"))
    except ValueError:
        return None
    return bound


def grouped(buckets: Vector, annotations: Annotations, at: int) -> Histograms:
    members: dict[Labels, list[tuple[float, int]]] = {}
    for row, labels in enumerate(buckets.series):
        bound = bound_of(labels)
        if bound is None:
            annotations.bad_bucket(value_of(labels, "le"), at)
        else:
            members.setdefault(without(labels, _LE), []).append((bound, row))
    for bounds in members.values():
        bounds.sort()
    return Histograms(buckets, members)


Compute = Callable[[Integers, Floats, Floats], Floats]
"""Steps, bounds, and counts (bounds by steps) in; values out."""


def quantile(quantiles: Floats, histograms: Histograms, noted: Noted) -> Vector:
    def compute(steps: Integers, bounds: Floats, counts: Floats) -> Floats:
        return _quantiles(quantiles[steps], bounds, counts, noted, steps)

    return _evaluated(histograms, compute).nameless().unified()


def quantiles(levels: Sequence[Floats], label: str, histograms: Histograms, noted: Noted) -> Vector:
    """Evaluate histogram_quantiles: one element per quantile, with the quantile as a label."""
    parts = []
    for values in levels:
        text = _label_number(float(values[0]))
        for labels in histograms.members:
            if value_of(labels, label):
                raise QueryError(f"histogram_quantiles: label {label!r} is in use")
        part = quantile(values, histograms, noted)
        parts.append(part.relabelled(lambda labels, text=text: with_labels(nameless(labels), {label: text})))  # type: ignore[misc]
    if not parts or not parts[0].series:
        return parts[0]
    return Vector(
        [labels for part in parts for labels in part.series],
        np.concatenate([part.values for part in parts]),
        np.concatenate([part.present for part in parts]),
    ).unified()


def _label_number(value: float) -> str:
    """Return a number as labels have it in OpenMetrics: whole ones with a fraction."""
    text = go_float(value)
    return f"{text}.0" if text.lstrip("-").isdigit() else text


def fraction(lower: Floats, upper: Floats, histograms: Histograms) -> Vector:
    def compute(steps: Integers, bounds: Floats, counts: Floats) -> Floats:
        pairs = zip(lower[steps].tolist(), upper[steps].tolist(), counts.T.tolist(), strict=True)
        return np.array([_fraction(low, high, bounds.tolist(), column) for low, high, column in pairs])

    return _evaluated(histograms, compute)


def _evaluated(histograms: Histograms, compute: Compute) -> Vector:
    buckets = histograms.buckets
    values = np.full((len(histograms.members), buckets.steps), np.nan)
    present = np.zeros(values.shape, dtype=bool)
    alike: dict[tuple[float, ...], list[tuple[int, list[int]]]] = {}
    """By bounds: the histograms of which every bucket is present at every step. They are evaluated together."""
    with np.errstate(all="ignore"):
        for number, members in enumerate(histograms.members.values()):
            rows = [row for _, row in members]
            if buckets.present[rows].all():
                alike.setdefault(tuple([bound for bound, _ in members]), []).append((number, rows))
                continue
            for steps, bounds, counts in _patterns(buckets, members, rows):
                present[number, steps] = True
                values[number, steps] = _complete(compute, steps, bounds, counts)
        for shared, group in alike.items():
            numbers = [number for number, _ in group]
            counts = buckets.values[[rows for _, rows in group]].transpose(1, 0, 2).reshape(len(shared), -1)
            steps = np.tile(np.arange(buckets.steps), len(group))
            present[numbers] = True
            values[numbers] = _complete(compute, steps, np.array(shared), counts).reshape(len(group), -1)
    return Vector(list(histograms.members), values, present).pruned()


def _complete(compute: Compute, steps: Integers, bounds: Floats, counts: Floats) -> Floats:
    """Compute from buckets whose last one has everything; others have no counts."""
    if math.isinf(bounds[-1]) and bounds[-1] > 0:
        return compute(steps, *_coalesced(bounds, counts))
    return compute(steps, bounds, np.zeros((0, len(steps))))


def _patterns(
    buckets: Vector, members: list[tuple[float, int]], rows: list[int]
) -> Iterator[tuple[Integers, Floats, Floats]]:
    """Yield steps at which the same buckets are present, with bounds and counts."""
    shown = buckets.present[rows]
    counts = buckets.values[rows]
    bounds = np.array([bound for bound, _ in members])
    patterns, which = np.unique(shown, axis=1, return_inverse=True)
    for number, pattern in enumerate(patterns.T):
        if pattern.any():
            steps = np.flatnonzero(which.ravel() == number)
            yield steps, bounds[pattern], counts[np.ix_(pattern, steps)]


def _coalesced(bounds: Floats, counts: Floats) -> tuple[Floats, Floats]:
    if len(bounds) == len(set(bounds.tolist())):
        return bounds, counts
    unique, first = np.unique(bounds, return_index=True)
    return unique, np.add.reduceat(counts, first, axis=0)


def _monotonic(bounds: Floats, counts: Floats, noted: Noted, steps: Integers) -> Floats:
    """Counts that never fall: small differences are rounding errors, larger ones are noted."""
    if not (counts[1:] != counts[:-1]).any():
        return counts
    fixed = counts.copy()
    fallen: list[tuple[int, float, float]] = []
    for row in range(1, len(fixed)):
        before, now = fixed[row - 1], fixed[row]
        scale = np.abs(before) + np.abs(now)
        close = (before != now) & (np.abs(before - now) < _TOLERANCE * np.minimum(scale, np.finfo(float).max))
        down = ~close & (now < before)
        if down.any():
            where = np.flatnonzero(down)
            fallen += [(int(noted.times[steps[i]]), float(bounds[row]), float(before[i] - now[i])) for i in where]
        fixed[row] = np.where(close | down, before, now)
    if fallen:
        times, bound, difference = (np.array(column) for column in zip(*fallen, strict=True))
        noted.annotations.forced_monotonicity(times, bound, difference, noted.at)
    return fixed


def _quantiles(quantile: Floats, bounds: Floats, counts: Floats, noted: Noted, steps: Integers) -> Floats:
    """Per step the quantile, by linear interpolation inside the bucket its rank falls into."""
    outside = np.where(quantile < 0, -np.inf, np.where(quantile > 1, np.inf, np.nan))
    if not len(counts):
        return outside
    counts = _monotonic(bounds, counts, noted, steps)
    if len(bounds) < 2:
        return outside
    total = counts[-1]
    rank = quantile * total
    bucket = np.minimum((counts < rank[None, :]).sum(axis=0), len(bounds) - 1)
    columns = np.arange(len(rank))
    last = bucket == len(bounds) - 1
    inner = np.minimum(bucket, len(bounds) - 2)
    below = np.maximum(inner - 1, 0)
    start = np.where(inner > 0, bounds[below], 0.0)
    end = bounds[inner]
    before = np.where(inner > 0, counts[below, columns], 0.0)
    result = start + (end - start) * ((rank - before) / (counts[inner, columns] - before))
    result = np.where((inner == 0) & (bounds[0] <= 0), bounds[0], result)
    result = np.where(last, bounds[-2], result)
    result = np.where((total == 0) | np.isnan(quantile), np.nan, result)
    return np.where(np.isnan(outside), result, outside)


def _fraction(lower: float, upper: float, bounds: list[float], counts: list[float]) -> float:
    """Return the share of observations between two values."""
    if not counts or counts[-1] == 0 or math.isnan(lower) or math.isnan(upper):
        return math.nan
    if lower >= upper:
        return 0.0
    total = counts[-1]
    ranks = [_rank(value, bounds, counts) for value in (lower, upper)]
    low, high = (min(rank, total) for rank in ranks)
    return (high - low) / total


def _rank(value: float, bounds: list[float], counts: list[float]) -> float:
    """Return the number of observations below a value."""
    below, before = (-math.inf if bounds[0] <= 0 else 0.0), 0.0
    for bound, count in zip(bounds, counts, strict=True):
        if below >= value:
            return before
        if bound > value:
            if below == -math.inf:
                return count
            return before + (count - before) * (value - below) / (bound - below)
        below, before = bound, count
    return counts[-1]
