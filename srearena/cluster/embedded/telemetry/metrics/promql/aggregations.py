"""Aggregation operators (sum, avg, topk, ...), for all steps at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from srearena.cluster.embedded.telemetry.metrics.blocks import Flags, Floats, Integers
from srearena.cluster.embedded.telemetry.metrics.labels import NAME, Labels, keeping, with_labels, without
from srearena.cluster.embedded.telemetry.metrics.promql.errors import QueryError
from srearena.cluster.embedded.telemetry.metrics.promql.label_functions import counted_label
from srearena.cluster.embedded.telemetry.metrics.promql.values import Vector
from srearena.cluster.embedded.telemetry.metrics.promql.windowing import quantiles
from srearena.cluster.embedded.telemetry.metrics.rendering import go_float


@dataclass(slots=True)
class Groups:
    """Rows of a vector, sorted by group."""

    labels: list[Labels]
    starts: Integers
    rows: Integers
    values: Floats
    present: Flags

    def reduced(self, ufunc: np.ufunc, cells: Floats) -> Floats:
        result: Floats = ufunc.reduceat(cells, self.starts, axis=0)
        return result

    @property
    def counts(self) -> Integers:
        counts: Integers = np.add.reduceat(self.present.astype(np.int64), self.starts, axis=0)
        return counts

    @property
    def sizes(self) -> Integers:
        return np.diff(np.append(self.starts, len(self.rows)))

    def each(self) -> Iterator[tuple[Labels, Integers]]:
        for labels, start, size in zip(self.labels, self.starts, self.sizes, strict=True):
            yield labels, self.rows[start : start + size]


def grouped(vector: Vector, names: tuple[str, ...], excluding: bool) -> Groups:
    if excluding:
        dropped = frozenset((*names, NAME))
        keys = [without(labels, dropped) for labels in vector.series]
    elif names:
        group_labels = frozenset(names)
        keys = [keeping(labels, group_labels) for labels in vector.series]
    else:
        keys = [()] * len(vector.series)
    numbers: dict[Labels, int] = {}
    group = np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
    rows = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[rows], np.arange(len(numbers)))
    return Groups(list(numbers), starts, rows, vector.values[rows], vector.present[rows])


def _sum(groups: Groups) -> Floats:
    return groups.reduced(np.add, np.where(groups.present, groups.values, 0.0))


def _average(groups: Groups) -> Floats:
    return _sum(groups) / np.maximum(groups.counts, 1)


def _extreme(ufunc: np.ufunc) -> Callable[[Groups], Floats]:
    return lambda groups: groups.reduced(ufunc, np.where(groups.present, groups.values, np.nan))


def _variance(groups: Groups) -> Floats:
    mean = np.repeat(_average(groups), groups.sizes, axis=0)
    squares = groups.reduced(np.add, np.where(groups.present, (groups.values - mean) ** 2, 0.0))
    counts = groups.counts
    # The deviation of a single element is zero, even if it is infinite.
    return np.where(counts == 1, 0.0, squares / np.maximum(counts, 1))


_SIMPLE: dict[str, Callable[[Groups], Floats]] = {
    "sum": _sum,
    "avg": _average,
    "min": _extreme(np.fmin),
    "max": _extreme(np.fmax),
    "count": lambda groups: groups.counts.astype(np.float64),
    "group": lambda groups: np.ones((len(groups.labels), groups.values.shape[1])),
    "stdvar": _variance,
    "stddev": lambda groups: np.sqrt(_variance(groups)),
}


def aggregated(
    operator: str, vector: Vector, names: tuple[str, ...], excluding: bool, parameter: Floats | str | None
) -> Vector:
    if not vector.series:
        return vector
    groups = grouped(vector, names, excluding)
    with np.errstate(all="ignore"):
        simple = _SIMPLE.get(operator)
        if simple is not None:
            return Vector(groups.labels, simple(groups), groups.counts > 0)
        if isinstance(parameter, str):
            return _count_values(groups, vector, counted_label(parameter))
        assert parameter is not None
        if operator == "quantile":
            return _quantile(groups, vector, parameter)
        if operator == "limit_ratio":
            raise QueryError("limit_ratio is not supported by this server")
        return _chosen(operator, groups, vector, parameter)


def _quantile(groups: Groups, vector: Vector, quantile: Floats) -> Vector:
    values = np.stack([quantiles(vector.values[rows].T, vector.present[rows].T, quantile) for _, rows in groups.each()])
    return Vector(groups.labels, values, groups.counts > 0)


def _chosen(operator: str, groups: Groups, vector: Vector, limits: Floats) -> Vector:
    """Evaluate topk, bottomk and limitk, which select elements."""
    if np.isnan(limits).any() or (np.abs(limits) >= 2**63).any():
        bad = limits[np.isnan(limits) | (np.abs(limits) >= 2**63)][0]
        raise QueryError(f"Scalar value {go_float(float(bad))} overflows int64")
    limit = np.trunc(limits).astype(np.int64)
    present = np.zeros_like(vector.present)
    order: list[int] = []
    for _, rows in groups.each():
        if operator == "limitk":
            ranking = np.where(vector.present[rows], 0.0, 1.0)
            places = np.argsort(ranking, axis=0, kind="stable")
        else:
            places = _ranking(vector.values[rows], vector.present[rows], operator == "topk")
        position = np.empty_like(places)
        np.put_along_axis(position, places, np.broadcast_to(np.arange(len(rows))[:, None], places.shape), axis=0)
        present[rows] = vector.present[rows] & (position < limit[None, :])
        order.extend(rows[places[:, 0]] if vector.steps == 1 else rows)
    return Vector(vector.series, vector.values, present).only(order).pruned()


def _ranking(values: Floats, present: Flags, descending: bool) -> Integers:
    """Best first per step; NaN after every number, absent after that; the earlier series wins a tie."""
    nothing = np.isnan(values)
    keys = np.where(nothing, 0.0, -values if descending else values)
    return np.lexsort((keys, nothing, ~present), axis=0)


def _count_values(groups: Groups, vector: Vector, label: str) -> Vector:
    series: dict[Labels, Floats] = {}
    for labels, rows in groups.each():
        values, present = vector.values[rows], vector.present[rows]
        for value in np.unique(values[present]):
            same = (np.isnan(values) if np.isnan(value) else values == value) & present
            counts = same.sum(axis=0).astype(np.float64)
            key = with_labels(labels, {label: go_float(float(value))})
            series[key] = series[key] + counts if key in series else counts
    counted = np.stack(list(series.values()))
    return Vector(list(series), counted, counted > 0)
