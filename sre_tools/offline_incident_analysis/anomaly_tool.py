"""get_metric_anomalies: which series of an object left their usual."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pydantic import Field

from sre_tools.errors import ToolError
from sre_tools.offline_incident_analysis.conditions import Conditions, checked_regex
from sre_tools.offline_incident_analysis.identity import nearest, parse_identifier
from sre_tools.offline_incident_analysis.log_tools import pods_of
from sre_tools.offline_incident_analysis.registry import Call, Timed, tool
from sre_tools.offline_incident_analysis.replies import Answer, Row, when
from sre_tools.offline_incident_analysis.statistics import Anomalies, anomalies, is_counter, rates
from srearena.snapshots import Snapshot
from srearena.snapshots.attributes import parse_attributes

_SHOWN_POINTS = 10
_OWN_LABELS = frozenset({"pod", "namespace", "service_name", "__name__", "job", "instance", "endpoint"})


class AnomalyArguments(Timed):
    k8_object_name: str = Field(description="Pod/name, Service/name, or a name; a Deployment means its pods; exact")
    base_dir: str | None = Field(None, description="the snapshot's directory or metrics/; leave out for the server's")
    metric_name_filter: str | None = Field(None, description="regular expression (RE2) found anywhere in the name")
    raw_content: bool = Field(False, description="add every point of each anomalous series")
    limit: int | None = Field(30, ge=0)


@dataclass(slots=True)
class Series:
    kind: str
    object: str
    metric: str
    labels: str | None
    le: str | None
    status: str | None
    times: list[float] = field(default_factory=list)
    """Seconds since the epoch: there are far more points than anybody is shown."""
    values: list[float] = field(default_factory=list)

    def prepared(self) -> tuple[list[float], list[float], str]:
        """What to look at: the value of a gauge, the rate of a counter."""
        if not is_counter(self.metric):
            return self.times, self.values, "value"
        return *rates(self.times, self.values), "per second"

    def label_set(self) -> dict[str, Any]:
        kept = {k: v for k, v in parse_attributes(self.labels).items() if k not in _OWN_LABELS}
        return {**kept, **({"le": self.le} if self.le else {}), **({"status_code": self.status} if self.status else {})}


def all_series(snapshot: Snapshot, where: Conditions) -> Iterator[Series]:
    """Every series chosen, its points in order; of two points at one moment the first counts."""
    columns = "object_kind, object_name, metric, labels, le, status_code"
    chosen = f"{where.where} {'AND' if where.where else 'WHERE'} time IS NOT NULL AND isfinite(value)"
    sql = f"""SELECT {columns}, list(epoch(time) ORDER BY time) AS times, list(value ORDER BY time) AS points
              FROM metrics {chosen} GROUP BY {columns} ORDER BY {columns}"""
    for row in snapshot.stream(sql, where.values):
        times, values = row.pop("times"), row.pop("points")
        if len(set(times)) < len(times):
            kept = [index for index, moment in enumerate(times) if index == 0 or moment != times[index - 1]]
            times, values = [times[index] for index in kept], [values[index] for index in kept]
        kind, name, metric, labels, le, status = row.values()
        yield Series(kind, name, metric, labels, le, status, times, values)


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def metric_objects(call: Call, text: str) -> list[tuple[str, str]]:
    """The (kind, name) pairs with metrics that a name stands for: itself exactly, or the pods behind it."""
    wanted = parse_identifier(text)
    known = [
        (row["object_kind"], row["object_name"])
        for row in call.snapshot.rows("SELECT DISTINCT object_kind, object_name FROM metrics ORDER BY ALL")
    ]
    exact = [(k, n) for k, n in known if n.lower() == wanted.name.lower()]
    if wanted.kind and wanted.kind.lower() in ("pod", "service"):
        exact = [pair for pair in exact if pair[0] == (wanted.kind or "").lower()]
        if exact:
            return exact
    pods, names = pods_of(call, text)
    behind = [(k, n) for k, n in known if (k == "pod" and n in pods) or (k == "service" and n in names)]
    found = sorted({*exact, *behind})
    if not found:
        near = nearest(wanted.name, (f"{k.title()}/{n}" for k, n in known))
        raise ToolError(f"no metrics of {text!r} in this snapshot; there are {', '.join(near) or 'none'}")
    return found


def _row(series: Series, found: Anomalies, times: list[float], values: list[float], unit: str) -> Row:
    furthest = sorted(found.outliers, key=lambda item: -abs(item[1]))[:_SHOWN_POINTS]
    row: Row = {
        "object": f"{series.kind.title()}/{series.object}",
        "metric_name": series.metric,
        "labels": series.label_set(),
        "score": round(found.score, 1),
        "unit": unit,
        "baseline": _short(found.baseline),
        "spread": _short(found.spread),
        "points": found.points,
        "anomaly_count": len(found.outliers),
        "anomalies": [
            {"timestamp": when(moment(times[i])), "value": _short(values[i]), "spreads": round(z, 1)}
            for i, z in sorted(furthest)
        ],
    }
    if found.shift:
        row["shift"] = {
            "at": when(moment(times[found.shift.index])),
            "before": _short(found.shift.before),
            "after": _short(found.shift.after),
            "explains": round(found.shift.strength, 2),
        }
    if found.period:
        row["seasonal_period_points"] = found.period
    return row


def _short(value: float) -> float:
    return float(f"{value:.5g}")


@tool(
    "get_metric_anomalies",
    "Metrics that left their usual",
    AnomalyArguments,
    {
        "object": "Pod/name or Service/name",
        "metric_name": "",
        "labels": "that tell this series from others of the metric",
        "score": "0 to 100, how far it went",
        "unit": "`value` of a gauge; `per second` for counters, which are differentiated first",
        "baseline": "median of the usual part",
        "shift": "a lasting step: when, from, to, and the share of variance it explains",
        "anomalies": "single points, with how many robust standard deviations they are away",
    },
)
def get_metric_anomalies(call: Call, arguments: AnomalyArguments) -> Answer:
    """Series of an object with outliers or lasting steps, worst first, each judged against itself alone. Counters are
    turned into rates. Example: get_metric_anomalies(k8_object_name="Deployment/checkout", metric_name_filter="cpu")."""
    where = Conditions()
    where.during("time", arguments)
    pairs = metric_objects(call, arguments.k8_object_name)
    where.add(
        " OR ".join("(object_kind = ? AND object_name = ?)" for _ in pairs), *(part for pair in pairs for part in pair)
    )
    where.add("NOT metric LIKE '%\\_bucket' ESCAPE '\\'")
    if arguments.metric_name_filter:
        pattern = checked_regex(call.snapshot.rows, arguments.metric_name_filter, "metric_name_filter")
        where.add("regexp_matches(metric, ?)", pattern)
    rows, count = [], 0
    for series in all_series(call.snapshot, where):
        count += 1
        times, values, unit = series.prepared()
        found = anomalies(values)
        if found.outliers or found.shift:
            row = _row(series, found, times, values, unit)
            if arguments.raw_content:
                row["data"] = [[when(moment(t)), _short(v)] for t, v in zip(times, values, strict=True)]
            rows.append(row)
    rows.sort(key=lambda row: (-row["score"], row["object"], row["metric_name"], str(row["labels"])))
    summary = {"objects": [f"{k.title()}/{n}" for k, n in pairs], "series": count, "anomalous_series": len(rows)}
    notes = [] if rows or count else ["no series matches; drop metric_name_filter or the time range"]
    return Answer(rows, summary, notes)
