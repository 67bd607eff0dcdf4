"""Metric series as arrays, for tools that analyse single points; the number of points is bounded.

Tools that need only summaries of series query the database and read no points.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import numpy as np

from sre_tools.errors import ToolError
from sre_tools.offline_incident_analysis.arguments import TimeRangeArguments
from sre_tools.offline_incident_analysis.calls import Call
from sre_tools.offline_incident_analysis.conditions import Conditions
from sre_tools.offline_incident_analysis.identity import nearest, parse_identifier
from sre_tools.offline_incident_analysis.statistics import Floats, equal_length_batches, increases, is_counter
from sre_tools.offline_incident_analysis.topology import measured_topology, pods_and_owners
from srearena.snapshots import Snapshot
from srearena.snapshots.attributes import parse_attributes

_LOOKBACK = 300.0  # seconds that a sample counts, as in Prometheus
MAX_POINTS = 1_500_000  # per call; chosen: a few seconds and 100 MB
NO_BUCKETS = "NOT metric LIKE '%\\_bucket' ESCAPE '\\'"
_COMMON_LABELS = frozenset({"pod", "namespace", "service_name", "__name__", "job", "instance", "endpoint"})
_ORDER = "object_kind, object_name, metric, labels, le, status_code, samples"


def distinguishing_labels(labels: str | None, le: str | None, status: str | None) -> dict[str, Any]:
    """The labels that distinguish a series from others of the same metric and object."""
    other = {k: v for k, v in parse_attributes(labels).items() if k not in _COMMON_LABELS}
    return {**other, **({"le": le} if le else {}), **({"status_code": status} if status else {})}


@dataclass(slots=True)
class Series:
    kind: str
    object: str
    metric: str
    labels: str | None
    le: str | None
    status: str | None
    times: Floats
    """Seconds since the epoch."""
    values: Floats

    def label_set(self) -> dict[str, Any]:
        return distinguishing_labels(self.labels, self.le, self.status)


Points = tuple[Floats, Floats, str]
"""Times, values and their unit."""


def values_or_rates(every: Sequence[Series]) -> list[Points]:
    """The points to analyse: values of gauges, rates of counters."""
    result: list[Points] = [(series.times, series.values, "value") for series in every]
    counters = [index for index, series in enumerate(every) if is_counter(series.metric) and len(series.values)]
    for chunk in equal_length_batches([len(every[index].values) for index in counters]):
        members = [counters[place] for place in chunk]
        times = np.stack([every[index].times for index in members])
        values = np.stack([every[index].values for index in members])
        per_second = increases(values) / np.diff(times)  # SeriesReader yields no two points at the same time
        for row, index in enumerate(members):
            result[index] = (times[row, 1:], per_second[row], "per second")
    return result


def totals_at(times: Floats, every: Sequence[Series]) -> Floats:
    """The sum of the last values of series at each time; not a number while none has one of the last five minutes.

    Series are scraped at different times, and end: as in Prometheus, a value counts for five minutes."""
    total, known = np.zeros(len(times)), np.zeros(len(times), dtype=bool)
    for series in every:
        place = np.searchsorted(series.times, times, side="right") - 1
        current = (place >= 0) & (times - series.times[np.maximum(place, 0)] <= _LOOKBACK)
        total[current] += series.values[place[current]]
        known |= current
    totals: Floats = np.where(known, total, np.nan)
    return totals


def to_datetime(seconds: float) -> datetime:
    """Seconds since the epoch as a time in UTC."""
    return datetime.fromtimestamp(float(seconds), UTC)


class SeriesReader:
    """The series that match conditions, in order; `left_out` counts those beyond the limit of points."""

    def __init__(
        self,
        snapshot: Snapshot,
        where: Conditions,
        times: TimeRangeArguments | None = None,
        max_points: int | None = None,
        relation: str = "series",
    ) -> None:
        """`relation` is `series`, or one of `Snapshot.series_of` for conditions on these objects."""
        self._relation = relation
        self._snapshot = snapshot
        begin, end = where.time_range(times) if times else (None, None)
        self._begin = begin.replace(tzinfo=UTC).timestamp() if begin else None
        self._end = end.replace(tzinfo=UTC).timestamp() if end else None
        self._where = where
        self._max_points = max_points or MAX_POINTS
        self.left_out = 0

    def __iter__(self) -> Iterator[Series]:
        clause, values = self._where.where, self._where.values
        heads = self._snapshot.arrays(
            f"""SELECT * EXCLUDE (upto) FROM (SELECT {_ORDER}, count(*) OVER () AS total,
                  sum(samples) OVER (ORDER BY {_ORDER} ROWS UNBOUNDED PRECEDING) AS upto
                  FROM {self._relation} {clause})
                WHERE upto <= {self._max_points} OR upto = samples ORDER BY {_ORDER}""",
            values,
        )
        sizes, total = heads.pop("samples"), heads.pop("total")
        if not len(sizes):
            return
        self.left_out = int(total[0]) - len(sizes)
        flat = self._snapshot.arrays(
            f"""SELECT epoch(unnest(times)) AS t, unnest("values") AS v
                FROM (SELECT times, "values" FROM {self._relation} {clause} ORDER BY {_ORDER} LIMIT {len(sizes)})""",
            values,
        )
        times, points = _plain(flat["t"]), _plain(flat["v"])
        usable = np.isfinite(times) & np.isfinite(points)
        if self._begin is not None:
            usable &= times >= self._begin
        if self._end is not None:
            usable &= times <= self._end
        # Use the first of several points at the same time. The first point of a series follows another series: keep it.
        repeated = np.diff(times, prepend=-np.inf) <= 0
        ends = np.cumsum(sizes)
        repeated[ends - sizes] = False
        usable &= ~repeated
        clean = bool(usable.all())
        bounds = pairwise([0, *ends.tolist()])
        for (begin, end), *head in zip(bounds, *(column.tolist() for column in heads.values()), strict=True):
            part, (kind, name, metric, labels, le, status) = slice(begin, end), head
            series_times, series_values = times[part], points[part]
            if not clean and not usable[part].all():
                series_times, series_values = series_times[usable[part]], series_values[usable[part]]
            yield Series(kind, name, metric, labels, le, status, series_times, series_values)

    @property
    def notes(self) -> list[str]:
        """Notes for the reply, complete after iteration."""
        if not self.left_out:
            return []
        return [f"{self.left_out} more series match and were not looked at; narrow by object, metric or pattern"]


def _plain(column: Any) -> Floats:
    return np.asarray(np.ma.filled(np.ma.asarray(column, dtype=float), np.nan), dtype=float)


def metric_objects(call: Call, text: str) -> list[tuple[str, str]]:
    """The (kind, name) pairs with metrics that an identifier stands for: the object itself, or the pods behind it."""
    target = parse_identifier(text)
    measured = call.snapshot.measured_objects()
    exact = [(k, n) for k, n in measured if n.lower() == target.name.lower()]
    if target.kind and target.kind.lower() in ("pod", "service"):
        exact = [pair for pair in exact if pair[0] == (target.kind or "").lower()]
        if exact:
            return exact
    pods, names = pods_and_owners(measured_topology(call.snapshot, text), text)
    behind = [(k, n) for k, n in measured if (k == "pod" and n in pods) or (k == "service" and n in names)]
    pairs = sorted({*exact, *behind})
    if not pairs:
        near = nearest(target.name, (f"{k.title()}/{n}" for k, n in measured))
        raise ToolError(f"no metrics of {text!r} in this snapshot; there are {', '.join(near) or 'none'}")
    return pairs


def add_objects(where: Conditions, pairs: list[tuple[str, str]]) -> None:
    clause = " OR ".join("(object_kind = ? AND object_name = ?)" for _ in pairs)
    where.add(clause, *(part for pair in pairs for part in pair))
