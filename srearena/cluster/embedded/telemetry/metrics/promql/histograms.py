"""histogram_quantile over classic histograms: buckets are series with an `le` label."""

from __future__ import annotations

import math

import numpy as np

from srearena.cluster.embedded.telemetry.metrics.blocks import Floats
from srearena.cluster.embedded.telemetry.metrics.labels import NAME, Labels, value_of, without
from srearena.cluster.embedded.telemetry.metrics.promql.values import Vector


def bound_of(labels: Labels) -> float | None:
    """Return the upper bound of a bucket's `le`, if it is valid."""
    text = value_of(labels, "le")
    try:
        bound = float(text.replace("_", "x"))
    except ValueError:
        return None
    return bound


def histogram_quantile(quantile: Floats, buckets: Vector) -> Vector:
    groups: dict[Labels, list[tuple[float, int]]] = {}
    for row, labels in enumerate(buckets.series):
        bound = bound_of(labels)
        if bound is not None:
            groups.setdefault(without(labels, (NAME, "le")), []).append((bound, row))
    values = np.full((len(groups), buckets.steps), np.nan)
    present = np.zeros(values.shape, dtype=bool)
    with np.errstate(all="ignore"):
        for number, members in enumerate(groups.values()):
            members.sort()
            _fill(values[number], present[number], quantile, buckets, members)
    return Vector(list(groups), values, present).pruned()


def _fill(values: Floats, present: Floats, quantile: Floats, buckets: Vector, members: list[tuple[float, int]]) -> None:
    """Evaluate one histogram at all steps, grouped by the buckets that are present."""
    rows = [row for _, row in members]
    shown = buckets.present[rows]
    counts = buckets.values[rows]
    bounds = np.array([bound for bound, _ in members])
    patterns, which = np.unique(shown, axis=1, return_inverse=True)
    for number, pattern in enumerate(patterns.T):
        if not pattern.any():
            continue
        steps = np.flatnonzero(which.ravel() == number)
        present[steps] = True
        values[steps] = _quantiles(quantile[steps], bounds[pattern], counts[np.ix_(pattern, steps)])


def _quantiles(quantile: Floats, bounds: Floats, counts: Floats) -> Floats:
    """Per step the quantile, by linear interpolation inside the bucket its rank falls into."""
    outside = np.where(quantile < 0, -np.inf, np.where(quantile > 1, np.inf, np.nan))
    if not math.isinf(bounds[-1]) or bounds[-1] < 0:
        return outside
    if len(bounds) > len(set(bounds)):
        bounds, first = np.unique(bounds, return_index=True)
        counts = np.add.reduceat(counts, first, axis=0)
    counts = np.fmax.accumulate(counts, axis=0)
    if len(bounds) < 2:
        return outside
    total = counts[-1]
    rank = quantile * total
    bucket = np.minimum((counts < rank[None, :]).sum(axis=0), len(bounds) - 1)
    steps = np.arange(len(rank))
    last = bucket == len(bounds) - 1
    inner = np.minimum(bucket, len(bounds) - 2)
    below = np.maximum(inner - 1, 0)
    start = np.where(inner > 0, bounds[below], 0.0)
    end = bounds[inner]
    before = np.where(inner > 0, counts[below, steps], 0.0)
    result = start + (end - start) * ((rank - before) / (counts[inner, steps] - before))
    result = np.where((inner == 0) & (bounds[0] <= 0), bounds[0], result)
    result = np.where(last, bounds[-2], result)
    result = np.where((total == 0) | np.isnan(quantile), np.nan, result)
    return np.where(np.isnan(outside), result, outside)
