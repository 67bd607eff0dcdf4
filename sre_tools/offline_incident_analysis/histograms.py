"""Histogram families as series: the quantiles of each interval, from the increases of the buckets."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from sre_tools.offline_incident_analysis.metric_series import Series
from sre_tools.offline_incident_analysis.statistics import Floats, increases
from srearena.snapshots.attributes import parse_attributes

_BUCKET = "_bucket"
_QUANTILES = (0.5, 0.95, 0.99)


def bound_of(text: str | None) -> float:
    """The upper bound of a bucket; not a number if the text is none."""
    try:
        return math.inf if (text or "").lstrip("+").lower() == "inf" else float(text or "nan")
    except ValueError:
        return math.nan


def with_quantiles(every: Iterable[Series]) -> list[Series]:
    """The series, with the buckets of each histogram replaced by its quantiles; the number of events is in `_count`."""
    plain: list[Series] = []
    families: dict[tuple[str, str, str, str], list[Series]] = defaultdict(list)
    for series in every:
        if not series.metric.endswith(_BUCKET):
            plain.append(series)
            continue
        labels = {key: value for key, value in parse_attributes(series.labels).items() if key != "le"}
        families[series.kind, series.object, series.metric, repr(sorted(labels.items()))].append(series)
    for members in families.values():
        plain.extend(_quantiles(members))
    return plain


def _quantiles(members: list[Series]) -> list[Series]:
    bounded = sorted(((bound_of(m.le), m) for m in members if not math.isnan(bound_of(m.le))), key=lambda pair: pair[0])
    if len(bounded) < 2 or not math.isinf(bounded[-1][0]):
        return []
    times = bounded[-1][1].times
    bounded = [(bound, m) for bound, m in bounded if len(m.times) == len(times) and (m.times == times).all()]
    if len(bounded) < 2 or len(times) < 2:
        return []
    bounds = np.array([bound for bound, _ in bounded])
    grown = np.maximum.accumulate(np.stack([increases(m.values) for _, m in bounded]), axis=0)
    used = np.flatnonzero(grown[-1] > 0)
    if not len(used):
        return []
    first = bounded[0][1]
    labels = {key: value for key, value in parse_attributes(first.labels).items() if key != "le"}
    name = first.metric.removesuffix(_BUCKET)
    return [
        Series(
            first.kind,
            first.object,
            f"histogram_quantile({quantile:g}, {name})",
            repr(labels),
            None,
            first.status,
            times[1:][used],
            _interpolated(bounds, grown[:, used], quantile),
        )
        for quantile in _QUANTILES
    ]


def _interpolated(bounds: Floats, grown: Floats, quantile: float) -> Floats:
    """The quantile of each column, interpolated within its bucket as Prometheus does."""
    rank = quantile * grown[-1]
    place = np.argmax(grown >= rank, axis=0)
    columns = np.arange(grown.shape[1])
    below = np.where(place > 0, grown[np.maximum(place - 1, 0), columns], 0.0)
    low = np.where(place > 0, bounds[np.maximum(place - 1, 0)], 0.0)
    high = bounds[place]
    inside = grown[place, columns] - below
    share = np.divide(rank - below, inside, out=np.zeros_like(rank), where=inside > 0)
    values: Floats = np.where(np.isinf(high), low, low + (np.where(np.isinf(high), low, high) - low) * share)
    return values
