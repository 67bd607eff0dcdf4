"""Series of metrics, as tools that judge them point by point want them: arrays, and never more than fit in memory.

What only needs a summary of series (how high, how often) asks the database for that and reads no points.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import numpy as np

from sre_tools.errors import ToolError
from sre_tools.offline_incident_analysis.arguments import Timed
from sre_tools.offline_incident_analysis.calls import Call
from sre_tools.offline_incident_analysis.conditions import Conditions
from sre_tools.offline_incident_analysis.identity import nearest, parse_identifier
from sre_tools.offline_incident_analysis.statistics import Floats, alike, increases, is_counter
from sre_tools.offline_incident_analysis.topology import pods_and_owners
from srearena.snapshots import Snapshot
from srearena.snapshots.attributes import parse_attributes

MOST_POINTS = 1_500_000  # read for one call
NO_BUCKETS = "NOT metric LIKE '%\\_bucket' ESCAPE '\\'"
_OWN_LABELS = frozenset({"pod", "namespace", "service_name", "__name__", "job", "instance", "endpoint"})
_ORDER = "object_kind, object_name, metric, labels, le, status_code, samples"


def telling_labels(labels: str | None, le: str | None, status: str | None) -> dict[str, Any]:
    """What tells a series from others of the same metric and object."""
    kept = {k: v for k, v in parse_attributes(labels).items() if k not in _OWN_LABELS}
    return {**kept, **({"le": le} if le else {}), **({"status_code": status} if status else {})}


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
        return telling_labels(self.labels, self.le, self.status)


Prepared = tuple[Floats, Floats, str]
"""Times, values and their unit."""


def prepared(every: Sequence[Series]) -> list[Prepared]:
    """What to look at: the value of a gauge, the rate of a counter."""
    found: list[Prepared] = [(series.times, series.values, "value") for series in every]
    counters = [index for index, series in enumerate(every) if is_counter(series.metric) and len(series.values)]
    for chunk in alike([len(every[index].values) for index in counters]):
        members = [counters[place] for place in chunk]
        times = np.stack([every[index].times for index in members])
        values = np.stack([every[index].values for index in members])
        per_second = increases(values) / np.diff(times)  # a reader gives no two points at one moment
        for row, index in enumerate(members):
            found[index] = (times[row, 1:], per_second[row], "per second")
    return found


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(float(seconds), UTC)


class SeriesReader:
    """The series that conditions choose, in order; `left_out` counts those that were too many to look at."""

    def __init__(
        self, snapshot: Snapshot, where: Conditions, times: Timed | None = None, most: int | None = None
    ) -> None:
        self._snapshot = snapshot
        begin, end = where.within(times) if times else (None, None)
        self._begin = begin.replace(tzinfo=UTC).timestamp() if begin else None
        self._end = end.replace(tzinfo=UTC).timestamp() if end else None
        self._where = where
        self._most = most or MOST_POINTS
        self.left_out = 0

    def __iter__(self) -> Iterator[Series]:
        chosen, given = self._where.where, self._where.values
        heads = self._snapshot.arrays(
            f"""SELECT * EXCLUDE (upto) FROM (SELECT {_ORDER}, count(*) OVER () AS found,
                  sum(samples) OVER (ORDER BY {_ORDER} ROWS UNBOUNDED PRECEDING) AS upto FROM series {chosen})
                WHERE upto <= {self._most} OR upto = samples ORDER BY {_ORDER}""",
            given,
        )
        sizes, found = heads.pop("samples"), heads.pop("found")
        if not len(sizes):
            return
        self.left_out = int(found[0]) - len(sizes)
        flat = self._snapshot.arrays(
            f"""SELECT epoch(unnest(times)) AS t, unnest("values") AS v
                FROM (SELECT times, "values" FROM series {chosen} ORDER BY {_ORDER} LIMIT {len(sizes)})""",
            given,
        )
        times, values = _plain(flat["t"]), _plain(flat["v"])
        usable = np.isfinite(times) & np.isfinite(values)
        if self._begin is not None:
            usable &= times >= self._begin
        if self._end is not None:
            usable &= times <= self._end
        # Of two points at one moment the first counts; between series time may stand still.
        again = np.diff(times, prepend=-np.inf) <= 0
        ends = np.cumsum(sizes)
        again[ends - sizes] = False
        usable &= ~again
        clean = bool(usable.all())
        bounds = pairwise([0, *ends.tolist()])
        for (begin, end), *head in zip(bounds, *(column.tolist() for column in heads.values()), strict=True):
            here, (kind, name, metric, labels, le, status) = slice(begin, end), head
            own_times, own_values = times[here], values[here]
            if not clean and not usable[here].all():
                own_times, own_values = own_times[usable[here]], own_values[usable[here]]
            yield Series(kind, name, metric, labels, le, status, own_times, own_values)

    @property
    def notes(self) -> list[str]:
        """Said after all series were seen."""
        if not self.left_out:
            return []
        return [f"{self.left_out} more series match and were not looked at; narrow by object, metric or pattern"]


def _plain(column: Any) -> Floats:
    return np.asarray(np.ma.filled(np.ma.asarray(column, dtype=float), np.nan), dtype=float)


def metric_objects(call: Call, text: str) -> list[tuple[str, str]]:
    """The (kind, name) pairs with metrics that a name stands for: itself exactly, or the pods behind it."""
    wanted = parse_identifier(text)
    known = call.snapshot.derived(_measured, "metrics")
    exact = [(k, n) for k, n in known if n.lower() == wanted.name.lower()]
    if wanted.kind and wanted.kind.lower() in ("pod", "service"):
        exact = [pair for pair in exact if pair[0] == (wanted.kind or "").lower()]
        if exact:
            return exact
    pods, names = pods_and_owners(call.snapshot, text)
    behind = [(k, n) for k, n in known if (k == "pod" and n in pods) or (k == "service" and n in names)]
    found = sorted({*exact, *behind})
    if not found:
        near = nearest(wanted.name, (f"{k.title()}/{n}" for k, n in known))
        raise ToolError(f"no metrics of {text!r} in this snapshot; there are {', '.join(near) or 'none'}")
    return found


def _measured(snapshot: Snapshot) -> list[tuple[str, str]]:
    """The (kind, name) of every object with metrics."""
    rows = snapshot.rows("SELECT DISTINCT object_kind, object_name FROM series ORDER BY ALL")
    return [(row["object_kind"], row["object_name"]) for row in rows]


def about_objects(where: Conditions, pairs: list[tuple[str, str]]) -> None:
    clause = " OR ".join("(object_kind = ? AND object_name = ?)" for _ in pairs)
    where.add(clause, *(part for pair in pairs for part in pair))
