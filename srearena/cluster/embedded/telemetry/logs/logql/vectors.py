"""Series over steps, with aggregations and binary operators for all steps at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from srearena.cluster.embedded.telemetry.logs.logql.arithmetic import ARITHMETIC, COMPARISONS, Array
from srearena.cluster.embedded.telemetry.logs.logql.errors import QueryError
from srearena.cluster.embedded.telemetry.logs.logql.samples import Key, Labels, grouped
from srearena.cluster.embedded.telemetry.logs.logql.syntax import Binary, Grouping, Matching, VectorAggregation

Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]


@dataclass(slots=True)
class Series:
    labels: Labels
    values: Array
    present: Mask

    @property
    def key(self) -> Key:
        return tuple(sorted(self.labels.items()))


Vector = list[Series]


# Aggregations


def aggregated(aggregation: VectorAggregation, vector: Vector) -> Vector:
    if aggregation.operation in ("sort", "sort_desc"):
        return _sorted(vector, descending=aggregation.operation == "sort_desc")
    groups: dict[Key, Vector] = {}
    grouping = aggregation.grouping or Grouping(without=False, labels=())
    for series in vector:
        labels = grouped(series.labels, grouping)
        groups.setdefault(tuple(sorted(labels.items())), []).append(series)
    if aggregation.operation in ("topk", "bottomk", "approx_topk"):
        largest = aggregation.operation != "bottomk"
        return [series for group in groups.values() for series in _chosen(group, aggregation.parameter, largest)]
    reduce = _REDUCERS[aggregation.operation]
    found = []
    for key, group in groups.items():
        values = np.array([series.values for series in group])
        present = np.array([series.present for series in group])
        with np.errstate(all="ignore"):
            found.append(Series(dict(key), reduce(values, present), _any(present)))
    return found


def _any(present: Any) -> Any:
    return present.any(axis=0)


def _mean(values: Any, present: Any) -> Any:
    return np.where(present, values, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1)


def _variance(values: Any, present: Any) -> Any:
    spread = np.where(present, values - _mean(values, present), 0.0)
    return (spread**2).sum(axis=0) / np.maximum(present.sum(axis=0), 1)


_REDUCERS: Mapping[str, Callable[[Any, Any], Any]] = {
    "sum": lambda values, present: np.where(present, values, 0.0).sum(axis=0),
    "avg": _mean,
    "min": lambda values, present: np.where(present, values, np.inf).min(axis=0),
    "max": lambda values, present: np.where(present, values, -np.inf).max(axis=0),
    "count": lambda values, present: present.sum(axis=0).astype(np.float64),
    "stddev": lambda values, present: np.sqrt(_variance(values, present)),
    "stdvar": _variance,
}


def _chosen(group: Vector, count: int, largest: bool) -> Vector:
    """At every step the first `count` of a group; equals in the order of their labels."""
    ordered = sorted(group, key=lambda series: series.key)
    worst = -np.inf if largest else np.inf
    values = np.array([np.where(series.present, series.values, worst) for series in ordered])
    ranks = np.argsort(-values if largest else values, axis=0, kind="stable").argsort(axis=0, kind="stable")
    found = []
    for series, rank in zip(ordered, ranks, strict=True):
        present = series.present & (rank < count)
        if present.any():
            found.append(Series(series.labels, series.values, present))
    return found


def _sorted(vector: Vector, *, descending: bool) -> Vector:
    def last(series: Series) -> float:
        return float(series.values[-1]) if series.present[-1] else -np.inf

    return sorted(vector, key=last, reverse=descending)


# Binary operators


def with_number(binary: Binary, vector: Vector, number: float, *, number_is_left: bool) -> Vector:
    operator = binary.operator
    found = []
    with np.errstate(all="ignore"):
        for series in vector:
            left, right = (number, series.values) if number_is_left else (series.values, number)
            if operator in COMPARISONS:
                holds = COMPARISONS[operator](left, right)
                if binary.returns_bool:
                    found.append(Series(series.labels, holds.astype(np.float64), series.present))
                else:
                    found.append(Series(series.labels, series.values, series.present & holds))
            else:
                found.append(Series(series.labels, ARITHMETIC[operator](left, right), series.present))
    return _inhabited(found)


def combined(binary: Binary, left: Vector, right: Vector) -> Vector:
    match binary.operator:
        case "and":
            return _inhabited(_both(binary.matching, left, right))
        case "unless":
            return _inhabited(_unless(binary.matching, left, right))
        case "or":
            return _inhabited([*left, *_unless(binary.matching, right, left)])
        case _:
            return _inhabited(_matched(binary, left, right))


def _inhabited(vector: Iterable[Series]) -> Vector:
    return [series for series in vector if series.present.any()]


def _signature(labels: Labels, matching: Matching) -> Key:
    if matching.on:
        return tuple((name, labels[name]) for name in sorted(matching.labels) if name in labels)
    return tuple(sorted((name, value) for name, value in labels.items() if name not in matching.labels))


def _presence(vector: Vector, matching: Matching) -> dict[Key, Mask]:
    found: dict[Key, Mask] = {}
    for series in vector:
        key = _signature(series.labels, matching)
        found[key] = found[key] | series.present if key in found else series.present
    return found


def _both(matching: Matching, left: Vector, right: Vector) -> Iterable[Series]:
    there = _presence(right, matching)
    for series in left:
        other = there.get(_signature(series.labels, matching))
        if other is not None:
            yield Series(series.labels, series.values, series.present & other)


def _unless(matching: Matching, left: Vector, right: Vector) -> Iterable[Series]:
    there = _presence(right, matching)
    for series in left:
        other = there.get(_signature(series.labels, matching))
        yield series if other is None else Series(series.labels, series.values, series.present & ~other)


def _matched(binary: Binary, left: Vector, right: Vector) -> Iterable[Series]:
    matching = binary.matching
    swaps = matching.many == "right"
    many, one = (right, left) if swaps else (left, right)
    ones: dict[Key, Series] = {}
    for series in one:
        key = _signature(series.labels, matching)
        if key in ones and (ones[key].present & series.present).any():
            raise QueryError(
                f"found duplicate series on the {'left' if swaps else 'right'} hand-side;many-to-many matching "
                "not allowed: matching labels must be unique on one side"
            )
        ones[key] = _merged(ones[key], series) if key in ones else series
    seen: dict[Key, Mask] = {}
    for series in many:
        key = _signature(series.labels, matching)
        other = ones.get(key)
        if other is None:
            continue
        present = series.present & other.present
        if not matching.many:
            if key in seen and (seen[key] & present).any():
                raise QueryError(
                    "multiple matches for labels: many-to-one matching must be explicit (group_left/group_right)"
                )
            seen[key] = present
        values, present = _computed(binary, series, other, present, swaps)
        yield Series(_result_labels(binary, series.labels, other.labels), values, present)


def _merged(first: Series, second: Series) -> Series:
    return Series(first.labels, np.where(first.present, first.values, second.values), first.present | second.present)


def _computed(binary: Binary, many: Series, one: Series, present: Mask, swaps: bool) -> tuple[Array, Mask]:
    left, right = (one.values, many.values) if swaps else (many.values, one.values)
    operator = binary.operator
    with np.errstate(all="ignore"):
        if operator not in COMPARISONS:
            return ARITHMETIC[operator](left, right), present
        holds = COMPARISONS[operator](left, right)
        if binary.returns_bool:
            return holds.astype(np.float64), present
        return left, present & holds


def _result_labels(binary: Binary, many: Labels, one: Labels) -> Labels:
    matching = binary.matching
    if not matching.many:
        if matching.on:
            return {name: many[name] for name in matching.labels if name in many}
        return {name: value for name, value in many.items() if name not in matching.labels}
    labels = dict(many)
    for name in matching.include:
        if one.get(name):
            labels[name] = one[name]
        else:
            labels.pop(name, None)
    return labels
