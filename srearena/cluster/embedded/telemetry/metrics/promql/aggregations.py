"""Aggregation operators (sum, avg, topk, ...), for all steps at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from srearena.cluster.embedded.go_text import float_text
from srearena.cluster.embedded.telemetry.metrics.blocks import Flags, Floats, Integers
from srearena.cluster.embedded.telemetry.metrics.labels import NAME, Labels, keeping, with_labels, without
from srearena.cluster.embedded.telemetry.metrics.promql.compensation import compensated, inaccurate, mean, suspicious
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
    values = np.where(groups.present, groups.values, 0.0)
    return _corrected(groups, values, groups.reduced(np.add, values), compensated)


def _average(groups: Groups) -> Floats:
    values = np.where(groups.present, groups.values, 0.0)
    averages = groups.reduced(np.add, values) / np.maximum(groups.counts, 1)
    return _corrected(groups, values, averages, mean)


def _corrected(groups: Groups, values: Floats, results: Floats, exact: Callable[[list[float]], float]) -> Floats:
    """Compute those groups one by one whose sum lost digits or overflowed."""
    if suspicious(values):
        wrong = inaccurate(results, groups.reduced(np.add, np.abs(values)) / np.maximum(groups.counts, 1))
        ends = groups.starts + groups.sizes
        for group, step in zip(*np.nonzero(wrong & (groups.counts > 0)), strict=True):
            rows = slice(groups.starts[group], ends[group])
            results[group, step] = exact(groups.values[rows, step][groups.present[rows, step]].tolist())
    return results


def _extreme(ufunc: np.ufunc) -> Callable[[Groups], Floats]:
    return lambda groups: groups.reduced(ufunc, np.where(groups.present, groups.values, np.nan))


def _variance(groups: Groups) -> Floats:
    counts = np.maximum(groups.counts, 1)
    # Relative to one element of the group: small numbers, and zeros where nothing differs.
    reference = groups.reduced(np.fmin, np.where(groups.present, groups.values, np.nan))
    values = np.where(groups.present, groups.values - np.repeat(reference, groups.sizes, axis=0), 0.0)
    mean = np.repeat(groups.reduced(np.add, values) / counts, groups.sizes, axis=0)
    squares = groups.reduced(np.add, np.where(groups.present, (values - mean) ** 2, 0.0))
    return squares / counts


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


LIMITING = frozenset(("topk", "bottomk", "limitk", "limit_ratio"))


def _is_choosing(operator: str, parameter: Floats) -> bool:
    """Return whether any element can be chosen; an error where the parameter is no number to choose by."""
    if operator == "limit_ratio":
        if np.isnan(parameter).any():
            raise QueryError("Ratio value is NaN")
        return bool(parameter.any())
    if np.nanmax(parameter, initial=-np.inf) < 1 and not np.isnan(parameter).all():
        return False
    if np.isnan(parameter).any():
        raise QueryError("Parameter value is NaN")
    for bad, failing in ((parameter.min(), "underflows"), (parameter.max(), "overflows")):
        if abs(bad) >= 2**63 and (bad < 0) == (failing == "underflows"):
            raise QueryError(f"Scalar value {float_text(float(bad))} {failing} int64")
    return True


def aggregated(
    operator: str, vector: Vector, names: tuple[str, ...], excluding: bool, parameter: Floats | str | None
) -> Vector:
    if operator in LIMITING:
        assert isinstance(parameter, np.ndarray)
        if not _is_choosing(operator, parameter):
            return Vector.empty(vector.steps)
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
            return _sampled(vector, parameter)
        return _chosen(operator, groups, vector, parameter)


def _quantile(groups: Groups, vector: Vector, quantile: Floats) -> Vector:
    values = np.stack([quantiles(vector.values[rows].T, vector.present[rows].T, quantile) for _, rows in groups.each()])
    return Vector(groups.labels, values, groups.counts > 0)


def _chosen(operator: str, groups: Groups, vector: Vector, limits: Floats) -> Vector:
    """Evaluate topk, bottomk and limitk, which select elements."""
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


def _sampled(vector: Vector, ratios: Floats) -> Vector:
    """Evaluate limit_ratio: a series is chosen by its hash; a negative ratio chooses the others."""
    places = np.array([_place(labels) for labels in vector.series])[:, None]
    chosen = np.where(ratios >= 0, places < ratios, places >= 1 + ratios)
    return Vector(vector.series, vector.values, vector.present & chosen).pruned()


def _place(labels: Labels) -> float:
    """Return a place in [0, 1) that depends on the labels alone."""
    text = "\xff".join(f"{name}\xff{value}" for name, value in labels)
    return int.from_bytes(blake2b(text.encode(), digest_size=6).digest()) / 2**48


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
