"""metric_analysis: series of many objects, summarised, grouped, or combined by arithmetic."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import fmean, median
from typing import Any, Literal

import numpy as np
from pydantic import Field

from sre_tools.errors import ToolError
from sre_tools.offline_incident_analysis.arguments import TimeRangeArguments
from sre_tools.offline_incident_analysis.calls import Call
from sre_tools.offline_incident_analysis.conditions import Conditions
from sre_tools.offline_incident_analysis.expressions import metric_identifier, parse_expression
from sre_tools.offline_incident_analysis.histograms import bound_of
from sre_tools.offline_incident_analysis.identity import nearest
from sre_tools.offline_incident_analysis.metric_series import (
    NO_BUCKETS,
    Series,
    SeriesReader,
    add_objects,
    distinguishing_labels,
    metric_objects,
    to_datetime,
    totals_at,
)
from sre_tools.offline_incident_analysis.replies import Answer, Row, iso_time, reply_schema
from sre_tools.offline_incident_analysis.statistics import is_counter
from sre_tools.offline_incident_analysis.workloads import workload_of, workload_sql
from sre_tools.registry import tool
from srearena.snapshots.series import summaries

_GROUPS = {
    "deployment": "deployment",
    "pod_name": "object_name",
    "object_name": "object_name",
    "_object_name": "object_name",
    "service_name": "object_name",
    "metric_name": "metric_name",
    "namespace": "namespace",
    "timestamp": "timestamp",
}
_AGGREGATES: dict[str, Callable[[Sequence[float]], float]] = {
    "mean": fmean,
    "max": max,
    "min": min,
    "sum": math.fsum,
    "median": median,
    "count": len,
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
}
_COLUMNS = {
    "metric_name": "metric",
    "object_name": "object_name",
    "pod_name": "object_name",
    "service_name": "object_name",
    "object_kind": "object_kind",
    "namespace": "namespace",
    "metric_type": "metric_type",
    "status_code": "status_code",
    "bucket_le": "le",
}
_OF_OBJECTS = frozenset({"object_name", "object_kind"})
_QUANTILES = (0.5, 0.9, 0.95, 0.99)


class MetricArguments(TimeRangeArguments):
    base_dir: str | None = Field(None, description="the snapshot's directory or metrics/; leave out for the server's")
    k8_object_name: str | None = Field(None, description="Pod/name, Service/name or name; a Deployment means its pods")
    object_pattern: str = Field("*", description='glob on kind/name, as in "pod/checkout-*"')
    metric_names: list[str] | None = Field(None, description="exact names; leave out for all")
    eval: str | None = Field(None, description="arithmetic over metrics, as in `pct = 100 * used / quota`")
    filters: dict[str, Any] | None = Field(None, description=f"column to value; columns: {', '.join(_COLUMNS)}")
    group_by: str | None = Field(None, description=f"one of {', '.join(_GROUPS)}")
    # Over all samples of a group, not over the means of its series.
    agg: Literal["mean", "max", "min", "sum", "median", "count", "first", "last"] = "mean"
    verbosity: Literal["compact", "raw"] = Field("compact", description="raw gives single samples")
    limit: int | None = Field(200, ge=0)
    sort_by: str | None = Field(None, description="a column of the reply; descending")
    include_tags: bool = Field(False, description="all labels instead of the telling ones")
    include_buckets: bool = Field(False, description="single histogram buckets instead of quantiles")
    labels_keep: list[str] = Field(default_factory=lambda: ["span_name", "span_kind", "status_code", "le", "container"])


_DEPLOYMENT = workload_sql("object_name", "object_kind")
_OBJECT = "concat(upper(object_kind[1]), object_kind[2:], '/', object_name)"
_KEYS = {
    "deployment": _DEPLOYMENT,
    "object_name": _OBJECT,
    "metric_name": "metric",
    "namespace": "namespace",
    "timestamp": "time",
}
# Aggregates over the samples of a group: from the summaries of its series where they suffice, or else from samples.
_FROM_SUMMARIES = {
    "mean": "sum(mean * points) / sum(points)",
    "max": "max(maximum)",
    "min": "min(minimum)",
    "sum": "sum(mean * points)",
    "count": "sum(points)",
    "last": "arg_max(last_value, (last_time, labels))",
}
_FROM_SAMPLES = {
    "mean": "avg(value)",
    "max": "max(value)",
    "min": "min(value)",
    "sum": "sum(value)",
    "count": "count(*)",
    "median": "median(value)",
    "first": "arg_min(value, (time, labels))",
    "last": "arg_max(value, (time, labels))",
}
# Columns of the reply as expressions over the series table.
_SORTS = {
    "object": _OBJECT,
    "deployment": _DEPLOYMENT,
    "metric_name": "metric",
    "count": "points",
    "mean": "mean",
    "min": "minimum",
    "max": "maximum",
    "last_value": "last_value",
    "last_timestamp": "last_time",
    "rate_per_s": "rate_per_s",
}
# Limits per call; selection: a reply takes a few seconds.
_MAX_SERIES = 4000  # whose points are read for a time range
_MAX_RAW_SERIES = 1000  # whose points are listed
_MAX_BUCKETS = 20_000
_SUMMARY = f"""{_OBJECT} AS object, {_DEPLOYMENT} AS deployment, metric AS metric_name, points AS count, mean,
    minimum AS min, maximum AS max, last_value, last_time, labels, le, status_code, increase,
    increase / nullif(epoch(last_time - first_time), 0) AS rate_per_s"""


def _object_conditions(call: Call, arguments: MetricArguments) -> Conditions:
    """The conditions on objects, whose files alone have to be read."""
    where = Conditions()
    if arguments.k8_object_name:
        add_objects(where, metric_objects(call, arguments.k8_object_name))
    if arguments.object_pattern not in ("", "*"):
        pattern = arguments.object_pattern.lower()
        where.add("lower(object_kind || '/' || object_name) GLOB ? OR lower(object_name) GLOB ?", pattern, pattern)
    filters = arguments.filters or {}
    where.add_filters({name: value for name, value in filters.items() if _COLUMNS.get(name) in _OF_OBJECTS}, _COLUMNS)
    return where


def _relation(call: Call, arguments: MetricArguments) -> str:
    """The relation of series for the question: `series`, or one with those of the objects it is about."""
    where = _object_conditions(call, arguments)
    measured = call.snapshot.measured_objects()
    if not where.where or not measured:
        return "series"
    kinds, names = (list(column) for column in zip(*measured, strict=True))
    pairs = "SELECT unnest(?) AS object_kind, unnest(?) AS object_name"
    rows = call.snapshot.rows(f"SELECT * FROM ({pairs}) {where.where}", [kinds, names, *where.values])
    return call.snapshot.series_of({(row["object_kind"], row["object_name"]) for row in rows})


def _conditions(call: Call, arguments: MetricArguments, names: list[str] | None) -> Conditions:
    """The conditions on series, without the time range."""
    where = _object_conditions(call, arguments)
    if names:
        where.add(f"metric IN ({', '.join('?' for _ in names)})", *names)
    filters = arguments.filters or {}
    where.add_filters(
        {name: value for name, value in filters.items() if _COLUMNS.get(name) not in _OF_OBJECTS}, _COLUMNS
    )
    return where


@dataclass(frozen=True, slots=True)
class _Selection:
    """A SQL relation of series with summaries over the requested time range."""

    relation: str
    values: list[Any]
    notes: list[str]

    def samples(self, begin: datetime | None, end: datetime | None) -> str:
        """The samples of the selected series in the time range, as a relation with `time` and `value`."""
        during = "".join(
            f" AND time {sign} TIMESTAMP '{bound.isoformat(' ')}'"
            for bound, sign in ((begin, ">="), (end, "<="))
            if bound is not None
        )
        return f"""(SELECT * FROM (SELECT * EXCLUDE (times, "values"), unnest(times) AS time, unnest("values") AS value
            FROM {self.relation}) WHERE isfinite(value) AND time IS NOT NULL{during})"""


def _select_series(call: Call, arguments: MetricArguments, where: Conditions, relation: str) -> _Selection:
    begin, end = where.time_range(arguments)
    series = f"SELECT * FROM {relation} {where.where}"
    if begin is None and end is None and not _needs_samples(arguments):
        return _Selection(f"({series} {'AND' if where.where else 'WHERE'} points > 0)", where.values, [])
    total = call.snapshot.rows(f"SELECT count(*) AS n FROM {relation} {where.where}", where.values)[0]["n"]
    notes = []
    if total > _MAX_SERIES:
        series += f" ORDER BY object_kind, object_name, metric, labels LIMIT {_MAX_SERIES}"
        notes.append(
            f"of {total} series the first {_MAX_SERIES} were looked at, as single samples are needed; "
            "narrow by k8_object_name, object_pattern or metric_names"
        )
    bare = f"SELECT * EXCLUDE (samples, points) FROM ({series})"
    return _Selection(f"(SELECT * FROM ({summaries(bare, begin, end)}) WHERE points > 0)", where.values, notes)


def _needs_samples(arguments: MetricArguments) -> bool:
    return arguments.group_by == "timestamp" or arguments.agg in ("median", "first")


def _metric_names(call: Call, relation: str) -> list[str]:
    return [str(row["metric"]) for row in call.snapshot.rows(f"SELECT DISTINCT metric FROM {relation} ORDER BY 1")]


def _checked_names(call: Call, arguments: MetricArguments, relation: str) -> list[str] | None:
    if not arguments.metric_names:
        return None
    existing = _metric_names(call, relation)
    if not set(arguments.metric_names) <= set(existing):
        existing = _metric_names(call, "series")  # other objects may have it
    for name in arguments.metric_names:
        if name not in existing:
            near = ", ".join(nearest(name, existing)) or "none: it has no metrics"
            raise ToolError(f"no metric {name!r} in this snapshot; nearest: {near}")
    return arguments.metric_names


@tool(
    title="Metrics, summarised and combined",
    order=50,
    output_schema=reply_schema(
        {
            "object": "Pod/name or Service/name",
            "metric_name": "",
            "mean": "over the time range, like min, max and last_value in the metric's own unit",
            "rate_per_s": "of counters: mean increase per second",
            "labels": "that tell this series from others",
            "duration_ms": "of histograms: p50, p90, p95, p99 over the time range",
        }
    ),
)
def metric_analysis(call: Call, arguments: MetricArguments) -> Answer:
    """Metrics per series: mean, min, max, last, and the rate of counters. Groups them (group_by, agg) or combines them
    (eval). Example: metric_analysis(k8_object_name="Deployment/cart",
    eval="pct = 100 * container_cpu_cfs_throttled_periods_total / container_cpu_cfs_periods_total",
    group_by="pod_name").
    For what is out of the ordinary use get_metric_anomalies."""
    relation = _relation(call, arguments)
    names = _checked_names(call, arguments, relation)
    if arguments.group_by and arguments.group_by not in _GROUPS:
        raise ToolError(f"group_by: there is no column {arguments.group_by!r}; there are {', '.join(_GROUPS)}")
    if arguments.eval:
        return _evaluate(call, arguments, relation)
    where = _conditions(call, arguments, names)
    quantiles = any(name.endswith("_bucket") for name in names or []) and not arguments.include_buckets
    if not arguments.include_buckets and not quantiles and arguments.verbosity != "raw":
        where.add(NO_BUCKETS)
    if arguments.verbosity == "raw":
        return _raw(call, arguments, where, relation)
    selection = _select_series(call, arguments, where, relation)
    if arguments.group_by or arguments.agg != "mean":
        return _group(call, arguments, selection)
    order = f"{_OBJECT}, metric, labels, le, status_code"
    if quantiles:
        found = call.snapshot.rows(
            f"SELECT {_SUMMARY} FROM {selection.relation} ORDER BY {order} LIMIT {_MAX_BUCKETS}", selection.values
        )
        rows = _with_quantiles(found, arguments)
        notes = (
            selection.notes if len(found) < _MAX_BUCKETS else [*selection.notes, "too many buckets: narrow by object"]
        )
        return Answer(_sorted(rows, arguments.sort_by), {"series": len(rows)}, notes)
    total = call.snapshot.rows(f"SELECT count(*) AS n FROM {selection.relation}", selection.values)[0]["n"]
    if arguments.sort_by and arguments.sort_by not in _SORTS:
        raise ToolError(f"sort_by: there is no column {arguments.sort_by!r}; there are {', '.join(_SORTS)}")
    first = arguments.sort_by or "max"
    rows = [
        _summary(row, arguments)
        for row in call.snapshot.rows(
            f"""SELECT {_SUMMARY} FROM {selection.relation}
                ORDER BY {_SORTS[first]} DESC NULLS LAST, {order} LIMIT ? OFFSET ?""",
            [*selection.values, call.window.max_rows, call.window.offset],
        )
    ]
    notes = [] if total else ["nothing matches; drop filters, metric_names, object_pattern or the time range"]
    return Answer(rows, {"series": total}, [*notes, *selection.notes], total=total, start=call.window.offset)


def _raw(call: Call, arguments: MetricArguments, where: Conditions, relation: str) -> Answer:
    """Single samples of a bounded number of series."""
    order = "object_kind, object_name, metric, labels, le, status_code"
    total = call.snapshot.rows(f"SELECT count(*) AS n FROM {relation} {where.where}", where.values)[0]["n"]
    notes = []
    if total > _MAX_RAW_SERIES:
        notes.append(
            f"of {total} series the first {_MAX_RAW_SERIES} are shown; narrow by object, pattern or metric_names"
        )
    during = Conditions()
    during.add_time_range("timestamp", arguments)
    samples = f"""(SELECT * FROM (SELECT {order}, unnest(times) AS timestamp, unnest("values") AS value
        FROM (SELECT * FROM {relation} {where.where} ORDER BY {order} LIMIT {_MAX_RAW_SERIES})) {during.where})"""
    values = [*where.values, *during.values]
    count = call.snapshot.rows(f"SELECT count(*) AS n FROM {samples}", values)[0]["n"]
    rows = call.snapshot.rows(
        f"""SELECT timestamp, {_OBJECT} AS object, metric AS metric_name, value, le, status_code FROM {samples}
            ORDER BY {order}, timestamp LIMIT ? OFFSET ?""",
        [*values, call.window.max_rows, call.window.offset],
    )
    return Answer(rows, notes=notes, total=count, start=call.window.offset)


def _summary(row: Row, arguments: MetricArguments) -> Row:
    labels = distinguishing_labels(row["labels"], row["le"], row["status_code"])
    if not arguments.include_tags:
        labels = {key: value for key, value in labels.items() if key in arguments.labels_keep}
    shown: Row = {
        **{key: row[key] for key in ("object", "deployment", "metric_name", "count")},
        **{key: _short(row[key]) for key in ("mean", "min", "max", "last_value")},
        "last_timestamp": iso_time(row["last_time"]),
        "labels": labels,
    }
    if is_counter(row["metric_name"]):
        shown["rate_per_s"] = _short(row["rate_per_s"]) if row["rate_per_s"] is not None else None
    return shown


def _with_quantiles(found: list[Row], arguments: MetricArguments) -> list[Row]:
    rows = []
    histograms: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in found:
        if row["metric_name"].endswith("_bucket"):
            plain = {
                k: v for k, v in distinguishing_labels(row["labels"], None, row["status_code"]).items() if k != "le"
            }
            histograms[row["object"], row["metric_name"], str(plain)].append(row)
        else:
            rows.append(_summary(row, arguments))
    rows.extend(quantiles for group in histograms.values() if (quantiles := _quantile_row(group)))
    return sorted(rows, key=lambda row: (-row.get("max", 0), row["object"], row["metric_name"], str(row["labels"])))


def _short(value: float) -> float:
    return float(f"{value:.6g}")


def _quantile_row(group: list[Row]) -> Row | None:
    """Quantiles of a histogram over the time range, interpolated like Prometheus does."""
    grown: dict[float, float] = defaultdict(float)
    for row in group:
        bound = bound_of(row["le"])
        if not math.isnan(bound):
            grown[bound] += row["increase"] if row["count"] > 1 else row["last_value"]
    bounds = sorted(grown)
    if len(bounds) < 2 or not math.isinf(bounds[-1]) or grown[bounds[-1]] <= 0:
        return None
    total = grown[bounds[-1]]
    first = group[0]
    found: Row = {
        **{key: first[key] for key in ("object", "deployment", "metric_name")},
        "sample_count": _short(total),
        "labels": {
            k: v for k, v in distinguishing_labels(first["labels"], None, first["status_code"]).items() if k != "le"
        },
        "duration_ms": {},
    }
    for quantile in _QUANTILES:
        rank, low, below = quantile * total, 0.0, 0.0
        for bound in bounds:
            if grown[bound] >= rank:
                inside = grown[bound] - below
                value = low if math.isinf(bound) else low + (bound - low) * ((rank - below) / inside if inside else 0)
                found["duration_ms"][f"p{quantile * 100:g}"] = _short(value)
                break
            low, below = bound, grown[bound]
    found["max"] = found["duration_ms"].get("p99", 0)
    return found


def _group(call: Call, arguments: MetricArguments, selection: _Selection) -> Answer:
    """The aggregate of all samples of a group; groups are the values of the column, for each metric."""
    key = f"{_KEYS[_GROUPS[arguments.group_by]]} AS key, " if arguments.group_by else ""
    if _needs_samples(arguments):
        relation, aggregate = selection.samples(*Conditions.time_range(arguments)), _FROM_SAMPLES[arguments.agg]
        series = "count(DISTINCT (object_kind, object_name, labels, le, status_code))"
    else:
        relation, aggregate, series = selection.relation, _FROM_SUMMARIES[arguments.agg], "count(*)"
    found = call.snapshot.rows(
        f"""SELECT {key}metric, {aggregate} AS value, {series} AS series FROM {relation}
            GROUP BY {"key, " if key else ""}metric """,
        selection.values,
    )
    rows: list[Row] = []
    for row in found:
        shown = iso_time(row["key"]) if arguments.group_by == "timestamp" else row["key"] if key else None
        named: Row = {str(arguments.group_by): shown} if key else {}
        rows.append(
            {**named, "metric_name": row["metric"], arguments.agg: _short(row["value"]), "series": row["series"]}
        )
    if arguments.group_by == "timestamp":
        rows.sort(key=lambda row: (row["metric_name"], row["timestamp"]))
    else:
        rows.sort(key=lambda row: (-float(row[arguments.agg]), str(row)))
    total = call.snapshot.rows(f"SELECT count(*) AS n FROM {selection.relation}", selection.values)[0]["n"]
    return Answer(_sorted(rows, arguments.sort_by), {"series": total}, selection.notes)


def _evaluate(call: Call, arguments: MetricArguments, relation: str) -> Answer:
    expression = parse_expression(arguments.eval or "")
    by_identifier = {metric_identifier(name): name for name in reversed(_metric_names(call, relation))}
    if not expression.metrics <= by_identifier.keys():  # other objects may have it
        by_identifier = {metric_identifier(name): name for name in reversed(_metric_names(call, "series"))}
    missing = sorted(expression.metrics - by_identifier.keys())
    if missing:
        near = ", ".join(nearest(missing[0], by_identifier))
        raise ToolError(f"eval: no metric {missing[0]!r} in this snapshot; nearest: {near or 'none'}")
    names = [by_identifier[identifier] for identifier in expression.metrics]
    if not names:
        raise ToolError("eval: the expression names no metric")
    by_time = arguments.group_by == "timestamp"
    per_object = _GROUPS.get(arguments.group_by or "") in ("deployment", "object_name")
    members: dict[str, dict[str, list[Series]]] = defaultdict(lambda: defaultdict(list))
    groups: dict[str, str] = {}
    reader = SeriesReader(call.snapshot, _conditions(call, arguments, names), arguments, relation=relation)
    for series in reader:
        place = f"{series.kind.title()}/{series.object}" if per_object else "all"
        groups[place] = _deployment(series) if _GROUPS.get(arguments.group_by or "") == "deployment" else place
        if len(series.times):
            members[place][metric_identifier(series.metric)].append(series)
    results: dict[str, list[float]] = defaultdict(list)
    for place, metrics in members.items():
        if not metrics.keys() >= expression.metrics:
            continue
        times = np.unique(np.concatenate([series.times for found in metrics.values() for series in found]))
        totals = {metric: totals_at(times, found) for metric, found in metrics.items()}
        for position, second in enumerate(times.tolist()):
            latest = {metric: float(values[position]) for metric, values in totals.items()}
            if not any(map(math.isnan, latest.values())) and (result := expression.value(latest)) is not None:
                results[str(iso_time(to_datetime(second))) if by_time else groups[place]].append(result)
    aggregate = _AGGREGATES[arguments.agg]
    label = arguments.group_by or "object"
    rows: list[Row] = [
        {
            label: group,
            expression.name: _short(float(aggregate(values))),
            "min": _short(min(values)),
            "max": _short(max(values)),
            "last": _short(values[-1]),
            "points": len(values),
        }
        for group, values in results.items()
    ]
    rows.sort(key=lambda row: str(row[label]) if by_time else (-row[expression.name], str(row[label])))
    notes = [] if rows else ["the expression had no value anywhere (missing metrics or a division by zero)"]
    summary = {"eval": arguments.eval, "agg": arguments.agg}
    return Answer(_sorted(rows, arguments.sort_by), summary, [*notes, *reader.notes])


def _deployment(series: Series) -> str:
    return workload_of(series.object, "Pod") if series.kind == "pod" else series.object


def _sorted(rows: list[Row], column: str | None) -> list[Row]:
    if column is None or not rows:
        return rows
    if not any(column in row for row in rows):
        raise ToolError(f"sort_by: there is no column {column!r}; there are {', '.join(rows[0])}")

    def weight(row: Row) -> tuple[bool, float, str]:
        value = row.get(column)
        return value is not None, float(value) if isinstance(value, int | float) else 0.0, str(value)

    return sorted(rows, key=weight, reverse=True)
