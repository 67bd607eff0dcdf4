"""Range aggregations: at every step, one number from the samples of the window that ends there.

The window is open at its beginning and closed at its end. Counts and sums come from running totals, so their cost
does not grow with the overlap of the windows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from srearena.cluster.embedded.telemetry.logs.logql.arithmetic import Array
from srearena.cluster.embedded.telemetry.logs.logql.samples import Samples

Steps = np.ndarray[tuple[int], np.dtype[np.int64]]
"""Instants in nanoseconds."""
Bounds = np.ndarray[tuple[int], np.dtype[np.intp]]


def aggregate(operation: str, samples: Samples, steps: Steps, seconds: float, parameter: float | None) -> Array:
    """One value for each step, NaN-free where there is one; `present` tells where."""
    low, high = bounds(samples, steps, seconds)
    if operation in _TOTALS:
        return _TOTALS[operation](samples.values, low, high, seconds)
    if operation == "rate_counter":
        return _each(low, high, lambda a, b: _counter_rate(samples, a, b, steps, seconds))
    if operation == "quantile_over_time":
        quantile = parameter if parameter is not None else 0.5
        return _each(low, high, lambda a, b: _quantile(samples.values[a:b], quantile))
    choose = _CHOICES[operation]
    return _each(low, high, lambda a, b: choose(samples.values[a:b]))


def bounds(samples: Samples, steps: Steps, seconds: float) -> tuple[Bounds, Bounds]:
    width = round(seconds * 1e9)
    return (
        np.searchsorted(samples.times, steps - width, side="right"),
        np.searchsorted(samples.times, steps, side="right"),
    )


def present(samples: Samples, steps: Steps, seconds: float) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    low, high = bounds(samples, steps, seconds)
    return high > low


def _sum(values: Array, low: Bounds, high: Bounds) -> Array:
    total = np.concatenate(([0.0], np.cumsum(values)))
    found: Array = total[high] - total[low]
    return found


def _average(values: Array, low: Bounds, high: Bounds) -> Array:
    counts = np.maximum(high - low, 1)
    found: Array = _sum(values, low, high) / counts
    return found


_TOTALS: Mapping[str, Callable[[Array, Bounds, Bounds, float], Array]] = {
    "count_over_time": lambda values, low, high, _: (high - low).astype(np.float64),
    "rate": lambda values, low, high, seconds: _sum(values, low, high) / seconds,
    "bytes_over_time": lambda values, low, high, _: _sum(values, low, high),
    "bytes_rate": lambda values, low, high, seconds: _sum(values, low, high) / seconds,
    "sum_over_time": lambda values, low, high, _: _sum(values, low, high),
    "avg_over_time": lambda values, low, high, _: _average(values, low, high),
    "absent_over_time": lambda values, low, high, _: np.ones(len(low)),
}
_CHOICES: Mapping[str, Callable[[Array], float]] = {
    "min_over_time": lambda values: float(values.min()),
    "max_over_time": lambda values: float(values.max()),
    "stdvar_over_time": lambda values: float(values.var()),
    "stddev_over_time": lambda values: float(values.std()),
    "first_over_time": lambda values: float(values[0]),
    "last_over_time": lambda values: float(values[-1]),
}


def _each(low: Bounds, high: Bounds, choose: Callable[[int, int], float]) -> Array:
    """The windows one by one; one that is the same as before is not looked at again."""
    found = np.full(len(low), np.nan)
    before: tuple[int, int] | None = None
    value = np.nan
    for index, (a, b) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        if b <= a:
            continue
        if (a, b) != before:
            before, value = (a, b), choose(a, b)
        found[index] = value
    return found


def _quantile(values: Array, quantile: float) -> float:
    if quantile < 0:
        return float("-inf")
    if quantile > 1:
        return float("inf")
    return float(np.quantile(values, quantile))


def _counter_rate(samples: Samples, low: int, high: int, steps: Steps, seconds: float) -> float:
    """The increase between the first and the last sample, resets included, over the window."""
    values = samples.values[low:high]
    if len(values) < 2:
        return 0.0
    drops = np.diff(values)
    increase = values[-1] - values[0] + values[:-1][drops < 0].sum()
    return float(increase / seconds)
