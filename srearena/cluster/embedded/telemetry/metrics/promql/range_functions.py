"""Functions of range vectors, as a table from name to rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from srearena.cluster.embedded.telemetry.metrics.blocks import Flags, Floats
from srearena.cluster.embedded.telemetry.metrics.promql import rates, windowing
from srearena.cluster.embedded.telemetry.metrics.promql.compensation import compensated, inaccurate, mean, suspicious
from srearena.cluster.embedded.telemetry.metrics.promql.errors import QueryError
from srearena.cluster.embedded.telemetry.metrics.promql.values import Matrix, Vector, Windows, joined

Result = tuple[Floats, Flags]
Rule = Callable[[Matrix, Windows, Sequence[Floats]], Result]
"""Matrix, group and scalar arguments in; values (series by steps) and which steps have one out."""


@dataclass(frozen=True, slots=True)
class RangeFunction:
    rule: Rule
    keeps_name: bool = False
    effort: float = 0.0
    """Cost of a sample in a window, relative to sorting it."""

    def effort_for(self, matrix: Matrix) -> float:
        if not self.effort:
            return 0.0
        return self.effort * sum(len(group.series) * int(group.counts.sum()) for group in matrix.groups)


def computed(function: RangeFunction, matrix: Matrix, scalars: Sequence[Floats]) -> Vector:
    """The function's values; series still have their names."""
    parts = []
    with np.errstate(all="ignore"):
        for group in matrix.groups:
            if not (group.counts > 0).any():
                continue
            values, present = function.rule(matrix, group, scalars)
            parts.append(Vector(group.series, values, np.broadcast_to(present, values.shape)).pruned())
    vector = joined(parts, len(matrix.steps))
    if len(parts) > 1:
        vector = vector.only(sorted(range(len(vector.series)), key=vector.series.__getitem__))
    return vector


def finished(function: RangeFunction, vector: Vector) -> Vector:
    return vector if function.keeps_name else vector.nameless().unified(strict=True)


def _sum(matrix: Matrix, group: Windows, scalars: Sequence[Floats]) -> Result:
    return _corrected(group, _totals(group, group.values), compensated), group.counts > 0


def _corrected(group: Windows, results: Floats, exact: Callable[[list[float]], float]) -> Floats:
    """Compute those windows one by one whose sum lost digits or overflowed."""
    if suspicious(group.values):
        wrong = inaccurate(results, _totals(group, np.abs(group.values)) / np.maximum(group.counts, 1))
        for row, step in zip(*np.nonzero(wrong & (group.counts > 0)), strict=True):
            results[row, step] = exact(group.values[row, group.first[step] : group.last[step]].tolist())
    return results


def _totals(group: Windows, values: Floats) -> Floats:
    """The sum of each window: windows overlap, so `reduceat` gets begin and end of each in turn."""
    width = values.shape[1]
    padded = np.concatenate([values, np.zeros((len(group.series), 1))], axis=1)
    edges = np.stack([np.minimum(group.first, width), group.last], axis=1).ravel()
    totals: Floats = np.add.reduceat(padded, edges, axis=1)[:, ::2]
    return totals


def _extreme(ufunc: np.ufunc) -> Rule:
    """Minimum or maximum: every window is two overlapping stretches whose length is a power of two."""

    def rule(matrix: Matrix, group: Windows, scalars: Sequence[Floats]) -> Result:
        counts = group.counts
        result: Floats = np.full((len(group.series), len(counts)), np.nan)
        stretches, length = group.values, 1
        while length <= counts.max(initial=0):
            steps = np.flatnonzero((counts >= length) & (counts < 2 * length))
            if len(steps):
                first, last = group.first[steps], group.last[steps] - length
                result[:, steps] = ufunc(stretches[:, first], stretches[:, last])
            stretches = ufunc(stretches[:, :-length], stretches[:, length:])
            length *= 2
        return result, counts > 0

    return rule


def _average(matrix: Matrix, group: Windows, scalars: Sequence[Floats]) -> Result:
    counts = group.counts
    averages = _totals(group, group.values) / np.maximum(counts, 1)
    return _corrected(group, averages, mean), counts > 0


def _picked(position: str) -> Rule:
    def rule(matrix: Matrix, group: Windows, scalars: Sequence[Floats]) -> Result:
        some = group.counts > 0
        chosen = group.first if position == "first" else group.last - 1
        return group.values[:, np.where(some, chosen, 0)], some

    return rule


def _count(matrix: Matrix, group: Windows, scalars: Sequence[Floats]) -> Result:
    shape = (len(group.series), len(group.first))
    return np.broadcast_to(group.counts.astype(np.float64), shape), group.counts > 0


def _present(matrix: Matrix, group: Windows, scalars: Sequence[Floats]) -> Result:
    return np.ones((len(group.series), len(group.first))), group.counts > 0


def _windowed(function: Callable[[windowing.Spread], Floats]) -> Rule:
    def rule(matrix: Matrix, group: Windows, scalars: Sequence[Floats]) -> Result:
        return windowing.by_window(group, function), group.counts > 0

    return rule


def _quantile(matrix: Matrix, group: Windows, scalars: Sequence[Floats]) -> Result:
    def of_part(part: windowing.Spread) -> Floats:
        steps, values, inside, _ = part
        return windowing.quantiles(values, np.broadcast_to(inside, values.shape), scalars[0][steps])

    return windowing.by_window(group, of_part), group.counts > 0


def _slope(matrix: Matrix, group: Windows, scalars: Sequence[Floats]) -> Result:
    # The origin is free; the first sample of each window keeps the sums small.
    enough = group.counts >= 2
    origin = group.times[np.where(enough, group.first, 0)]
    return windowing.by_window(group, lambda part: windowing.regression(part, origin)[0]), enough


def _prediction(matrix: Matrix, group: Windows, scalars: Sequence[Floats]) -> Result:
    def of_part(part: windowing.Spread) -> Floats:
        slope, level = windowing.regression(part, matrix.steps)
        return slope * scalars[0][part[0]] + level

    return windowing.by_window(group, of_part), group.counts >= 2


def _smoothing(matrix: Matrix, group: Windows, scalars: Sequence[Floats]) -> Result:
    smoothing, trend = float(scalars[0][0]), float(scalars[1][0])
    if not 0 < smoothing < 1:
        raise QueryError(f"invalid smoothing factor. Expected: 0 < sf < 1, got: {smoothing:f}")
    if not 0 < trend < 1:
        raise QueryError(f"invalid trend factor. Expected: 0 < tf < 1, got: {trend:f}")
    return windowing.by_window(group, lambda part: windowing.smoothed(part, smoothing, trend)), group.counts >= 2


def _extreme_time(best: np.ufunc) -> Rule:
    """Return the time of the last minimum or maximum in the window."""

    def of_part(part: windowing.Spread) -> Floats:
        _, values, inside, times = part
        shown = np.where(inside, values, np.nan)
        extreme = best.reduce(shown, axis=2, keepdims=True)
        hit = (shown == extreme) | (np.isnan(extreme) & inside)
        latest: Floats = np.where(hit, times / 1000, -np.inf).max(axis=2)
        return latest

    return _windowed(of_part)


def _edge_time(position: str) -> Rule:
    def rule(matrix: Matrix, group: Windows, scalars: Sequence[Floats]) -> Result:
        some = group.counts > 0
        chosen = np.where(some, group.first if position == "first" else group.last - 1, 0)
        return np.broadcast_to(group.times[chosen] / 1000, (len(group.series), len(chosen))), some

    return rule


def _rate(counter: bool, per_second: bool) -> RangeFunction:
    return RangeFunction(lambda matrix, group, _: rates.extrapolated(matrix, group, counter, per_second))


RANGE_FUNCTIONS: dict[str, RangeFunction] = {
    "rate": _rate(counter=True, per_second=True),
    "increase": _rate(counter=True, per_second=False),
    "delta": _rate(counter=False, per_second=False),
    "irate": RangeFunction(lambda matrix, group, _: rates.instantaneous(group, per_second=True)),
    "idelta": RangeFunction(lambda matrix, group, _: rates.instantaneous(group, per_second=False)),
    "changes": RangeFunction(lambda matrix, group, _: rates.transitions(group, resets=False)),
    "resets": RangeFunction(lambda matrix, group, _: rates.transitions(group, resets=True)),
    "sum_over_time": RangeFunction(_sum, effort=0.02),
    "min_over_time": RangeFunction(_extreme(np.fmin)),
    "max_over_time": RangeFunction(_extreme(np.fmax)),
    "avg_over_time": RangeFunction(_average, effort=0.02),
    "count_over_time": RangeFunction(_count),
    "last_over_time": RangeFunction(_picked("last"), keeps_name=True),
    "first_over_time": RangeFunction(_picked("first"), keeps_name=True),
    "present_over_time": RangeFunction(_present),
    "stdvar_over_time": RangeFunction(_windowed(windowing.variance), effort=0.3),
    "stddev_over_time": RangeFunction(_windowed(lambda part: np.sqrt(windowing.variance(part))), effort=0.3),
    "mad_over_time": RangeFunction(_windowed(windowing.deviation_from_median), effort=2),
    "quantile_over_time": RangeFunction(_quantile, effort=1),
    "deriv": RangeFunction(_slope, effort=0.5),
    "predict_linear": RangeFunction(_prediction, effort=0.5),
    "holt_winters": RangeFunction(_smoothing, effort=0.5),
    "double_exponential_smoothing": RangeFunction(_smoothing, effort=0.5),
    "ts_of_min_over_time": RangeFunction(_extreme_time(np.fmin), effort=0.3),
    "ts_of_max_over_time": RangeFunction(_extreme_time(np.fmax), effort=0.3),
    "ts_of_first_over_time": RangeFunction(_edge_time("first")),
    "ts_of_last_over_time": RangeFunction(_edge_time("last")),
}
