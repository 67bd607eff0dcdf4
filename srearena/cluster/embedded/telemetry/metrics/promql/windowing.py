"""Functions over the samples of a window that no running total gives: quantiles, deviations, regressions, smoothing.

Windows are laid out side by side, a bounded number of cells at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from srearena.cluster.embedded.telemetry.metrics.blocks import Flags, Floats, Integers
from srearena.cluster.embedded.telemetry.metrics.promql.values import Windows

_CELLS = 2_000_000

Spread = tuple[slice, Floats, Flags, Integers]
"""Steps; series by steps by samples; which of steps by samples are in the window; their times in milliseconds."""


def spread(group: Windows) -> Iterator[Spread]:
    longest = int(group.counts.max(initial=0))
    if not longest or not group.series:
        return
    at_once = max(1, _CELLS // (longest * len(group.series)))
    for begin in range(0, len(group.first), at_once):
        steps = slice(begin, begin + at_once)
        index: Integers = group.first[steps, None] + np.arange(longest)
        inside = index < group.last[steps, None]
        index = np.minimum(index, len(group.times) - 1)
        yield steps, group.values[:, index], inside, group.times[index]


def by_window(group: Windows, function: Callable[[Spread], Floats]) -> Floats:
    result: Floats = np.full((len(group.series), len(group.first)), np.nan)
    for part in spread(group):
        result[:, part[0]] = function(part)
    return result


def variance(part: Spread) -> Floats:
    _, values, inside, _ = part
    count = np.maximum(inside.sum(axis=1), 1)
    values = values - values[:, :, :1]  # small numbers, and zeros where nothing differs
    mean = np.where(inside, values, 0.0).sum(axis=2) / count
    squares = np.where(inside, (values - mean[:, :, None]) ** 2, 0.0).sum(axis=2)
    return np.asarray(squares / count)


def quantiles(values: Floats, inside: Flags, quantile: Floats) -> Floats:
    """The quantile of the last axis. NaN is smaller than anything; a quantile outside 0..1 is infinite."""
    nothing = np.isnan(values) & inside
    ordered = np.sort(np.where(inside, np.where(nothing, -np.inf, values), np.inf), axis=-1)
    count = inside.sum(axis=-1)
    odd = nothing.sum(axis=-1)
    rank = np.clip(np.nan_to_num(quantile), 0, 1) * (count - 1)
    lower = np.maximum(np.floor(rank), 0).astype(np.int64)
    upper = np.minimum(lower + 1, np.maximum(count - 1, 0))
    weight = rank - np.floor(rank)
    low, high = _picked(ordered, lower, odd), _picked(ordered, upper, odd)
    result = low * (1 - weight) + high * weight
    result = np.where(quantile < 0, -np.inf, np.where(quantile > 1, np.inf, result))
    return np.where(np.isnan(quantile) | (count == 0), np.nan, result)


def _picked(ordered: Floats, position: Integers, odd: Integers) -> Floats:
    shape = ordered.shape[:-1]
    position, odd = np.broadcast_to(position, shape), np.broadcast_to(odd, shape)
    picked = np.take_along_axis(ordered, position[..., None], axis=-1)[..., 0]
    return np.where(position < odd, np.nan, picked)


def deviation_from_median(part: Spread) -> Floats:
    _, values, inside, _ = part
    half = np.array(0.5)
    shown = np.broadcast_to(inside, values.shape)
    median = quantiles(values, shown, half)
    found = quantiles(np.abs(values - median[:, :, None]), shown, half)
    return np.where((np.isnan(values) & shown).any(axis=2), np.nan, found)


def regression(part: Spread, origin: Integers) -> tuple[Floats, Floats]:
    """Slope, and the line's value at a time per step, by least squares."""
    steps, values, inside, times = part
    x = np.where(inside, (times - origin[steps, None]) / 1000, 0.0)
    y = np.where(inside, values, 0.0)
    count = np.maximum(inside.sum(axis=1), 1)
    sum_x, sum_y = x.sum(axis=1), y.sum(axis=2)
    covariance = (x * y).sum(axis=2) - sum_x * sum_y / count
    spread_x = (x * x).sum(axis=1) - sum_x * sum_x / count
    slope = covariance / spread_x
    level = sum_y / count - slope * sum_x / count
    first = values[:, :, :1]
    constant = (np.where(inside, values, first) == first).all(axis=2)
    endless = np.where(np.isinf(first[:, :, 0]), np.nan, 0.0)
    slope = np.where(constant, endless, slope)
    return slope, np.where(constant, first[:, :, 0] + endless, level)


def smoothed(part: Spread, smoothing: float, trend: float) -> Floats:
    """Double exponential smoothing (Holt-Winters without seasons)."""
    _, values, inside, _ = part
    level = values[:, :, 0]
    previous = np.zeros_like(level)
    slope = values[:, :, min(1, values.shape[2] - 1)] - level
    for sample in range(1, values.shape[2]):
        if sample > 1:
            next_slope = trend * (level - previous) + (1 - trend) * slope
        else:
            next_slope = slope
        next_level = smoothing * values[:, :, sample] + (1 - smoothing) * (level + next_slope)
        inner = inside[None, :, sample]
        previous = np.where(inner, level, previous)
        level = np.where(inner, next_level, level)
        slope = np.where(inner, next_slope, slope)
    return level
