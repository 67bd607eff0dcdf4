"""metric_analysis: metrics of many objects at once, summarised, grouped, or combined by arithmetic."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from statistics import fmean, median
from typing import Any, Literal

from pydantic import Field

from sre_tools.errors import ToolError
from sre_tools.offline_incident_analysis.anomaly_tool import Series, all_series, metric_objects, moment
from sre_tools.offline_incident_analysis.conditions import Conditions
from sre_tools.offline_incident_analysis.expressions import metric_identifier, parse_expression
from sre_tools.offline_incident_analysis.identity import nearest
from sre_tools.offline_incident_analysis.registry import Call, Timed, tool
from sre_tools.offline_incident_analysis.replies import Answer, Row, when
from sre_tools.offline_incident_analysis.statistics import is_counter, rates

_GROUPS = {
    "deployment": "deployment",
    "pod_name": "object_name",
    "object_name": "object_name",
    "_object_name": "object_name",
    "service_name": "object_name",
    "metric_name": "metric_name",
    "namespace": "namespace",
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
_QUANTILES = (0.5, 0.9, 0.95, 0.99)


class MetricArguments(Timed):
    base_dir: str | None = Field(None, description="the snapshot's directory or metrics/; leave out for the server's")
    k8_object_name: str | None = Field(None, description="Pod/name, Service/name or name; a Deployment means its pods")
    object_pattern: str = Field("*", description='glob on kind/name, as in "pod/checkout-*"')
    metric_names: list[str] | None = Field(None, description="exact names; leave out for all")
    eval: str | None = Field(None, description="arithmetic over metrics, as in `pct = 100 * used / quota`")
    filters: dict[str, Any] | None = Field(None, description=f"column to value; columns: {', '.join(_COLUMNS)}")
    group_by: str | None = Field(None, description=f"one of {', '.join(_GROUPS)}")
    agg: Literal["mean", "max", "min", "sum", "median", "count", "first", "last"] = "mean"
    verbosity: Literal["compact", "raw"] = Field("compact", description="raw gives single samples")
    limit: int | None = Field(200, ge=0)
    sort_by: str | None = Field(None, description="a column of the reply; descending")
    include_tags: bool = Field(False, description="all labels instead of the telling ones")
    include_buckets: bool = Field(False, description="single histogram buckets instead of quantiles")
    labels_keep: list[str] = Field(default_factory=lambda: ["span_name", "span_kind", "status_code", "le", "container"])


def _deployment(series: Series) -> str:
    return series.object.rsplit("-", 2)[0] if series.kind == "pod" and series.object.count("-") >= 2 else series.object


def _conditions(call: Call, arguments: MetricArguments, names: list[str] | None) -> Conditions:
    where = Conditions()
    where.during("time", arguments)
    if arguments.k8_object_name:
        pairs = metric_objects(call, arguments.k8_object_name)
        clause = " OR ".join("(object_kind = ? AND object_name = ?)" for _ in pairs)
        where.add(clause, *(part for pair in pairs for part in pair))
    if arguments.object_pattern not in ("", "*"):
        pattern = arguments.object_pattern.lower()
        where.add("lower(object_kind || '/' || object_name) GLOB ? OR lower(object_name) GLOB ?", pattern, pattern)
    if names:
        where.add(f"metric IN ({', '.join('?' for _ in names)})", *names)
    where.equal(arguments.filters, _COLUMNS)
    return where


def _wanted(call: Call, arguments: MetricArguments) -> list[str] | None:
    if not arguments.metric_names:
        return None
    known = [row["metric"] for row in call.snapshot.rows("SELECT DISTINCT metric FROM metrics ORDER BY 1")]
    for name in arguments.metric_names:
        if name not in known:
            near = ", ".join(nearest(name, (str(k) for k in known))) or "none: it has no metrics"
            raise ToolError(f"no metric {name!r} in this snapshot; nearest: {near}")
    return arguments.metric_names


@tool(
    "metric_analysis",
    "Metrics, summarised and combined",
    MetricArguments,
    {
        "object": "Pod/name or Service/name",
        "metric_name": "",
        "mean": "over the time range, like min, max and last_value in the metric's own unit",
        "rate_per_s": "of counters: mean increase per second",
        "labels": "that tell this series from others",
        "duration_ms": "of histograms: p50, p90, p95, p99 over the time range",
    },
)
def metric_analysis(call: Call, arguments: MetricArguments) -> Answer:
    """Metrics per series: mean, min, max, last, and the rate of counters. Groups them (group_by, agg) or combines them
    (eval). Example: metric_analysis(k8_object_name="Deployment/cart",
    eval="pct = 100 * container_cpu_cfs_throttled_periods_total / container_cpu_cfs_periods_total",
    group_by="pod_name").
    For what is out of the ordinary use get_metric_anomalies."""
    names = _wanted(call, arguments)
    if arguments.group_by and arguments.group_by not in _GROUPS:
        raise ToolError(f"group_by: there is no column {arguments.group_by!r}; there are {', '.join(_GROUPS)}")
    if arguments.eval:
        return _evaluated(call, arguments)
    where = _conditions(call, arguments, names)
    if arguments.verbosity == "raw":
        total = call.snapshot.rows(f"SELECT count(*) AS n FROM metrics {where.where}", where.values)[0]["n"]
        rows = call.snapshot.rows(
            f"""SELECT time AS timestamp, object_kind || '/' || object_name AS object, metric AS metric_name, value,
                le, status_code FROM metrics {where.where}
                ORDER BY object_kind, object_name, metric, time, labels, le LIMIT ? OFFSET ?""",
            [*where.values, call.window.most, call.window.offset],
        )
        return Answer(rows, total=total, start=call.window.offset)
    if not arguments.include_buckets and not any(name.endswith("_bucket") for name in names or []):
        where.add("NOT metric LIKE '%\\_bucket' ESCAPE '\\'")
    rows = []
    histograms: dict[tuple[Any, ...], list[Series]] = defaultdict(list)
    for series in all_series(call.snapshot, where):
        if series.metric.endswith("_bucket") and not arguments.include_buckets:
            plain = {k: v for k, v in series.label_set().items() if k != "le"}
            histograms[series.kind, series.object, series.metric, str(plain)].append(series)
        elif series.values:
            rows.append(_summary(series, arguments))
    rows.extend(row for group in histograms.values() if (row := _quantile_row(group)))
    if arguments.group_by or arguments.agg != "mean":
        rows = _grouped(rows, arguments)
    else:
        rows.sort(key=lambda row: (-row.get("max", 0), row["object"], row["metric_name"], str(row.get("labels"))))
    notes = [] if rows else ["nothing matches; drop filters, metric_names, object_pattern or the time range"]
    return Answer(_sorted(rows, arguments.sort_by), {"series": len(rows)}, notes)


def _summary(series: Series, arguments: MetricArguments) -> Row:
    labels = series.label_set()
    if not arguments.include_tags:
        labels = {key: value for key, value in labels.items() if key in arguments.labels_keep}
    row: Row = {
        "object": f"{series.kind.title()}/{series.object}",
        "deployment": _deployment(series),
        "metric_name": series.metric,
        "count": len(series.values),
        "mean": _short(fmean(series.values)),
        "min": _short(min(series.values)),
        "max": _short(max(series.values)),
        "last_value": _short(series.values[-1]),
        "last_timestamp": when(moment(series.times[-1])),
        "labels": labels,
    }
    if is_counter(series.metric):
        _, increase = rates(series.times, series.values)
        row["rate_per_s"] = _short(fmean(increase)) if increase else None
    return row


def _short(value: float) -> float:
    return float(f"{value:.6g}")


def _bound(text: str | None) -> float:
    try:
        return math.inf if (text or "").lstrip("+").lower() == "inf" else float(text or "nan")
    except ValueError:
        return math.nan


def _quantile_row(group: list[Series]) -> Row | None:
    """Quantiles of what a histogram counted during the time range, as Prometheus interpolates them."""
    grown: dict[float, float] = defaultdict(float)
    for series in group:
        bound = _bound(series.le)
        if series.values and not math.isnan(bound):
            steps = zip(series.values, series.values[1:], strict=False)
            grown[bound] += (
                sum(b - a if b >= a else b for a, b in steps) if len(series.values) > 1 else series.values[0]
            )
    bounds = sorted(grown)
    if len(bounds) < 2 or not math.isinf(bounds[-1]) or grown[bounds[-1]] <= 0:
        return None
    total = grown[bounds[-1]]
    first = group[0]
    found: Row = {
        "object": f"{first.kind.title()}/{first.object}",
        "deployment": _deployment(first),
        "metric_name": first.metric,
        "sample_count": _short(total),
        "labels": {k: v for k, v in first.label_set().items() if k != "le"},
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


def _grouped(rows: list[Row], arguments: MetricArguments) -> list[Row]:
    """Means of series, brought together; a different metric is a different group."""
    column = _GROUPS[arguments.group_by] if arguments.group_by else None
    groups: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    for row in rows:
        if "mean" not in row:
            continue
        value = {"object_name": row["object"], "deployment": row["deployment"]}.get(column or "", row.get(column or ""))
        groups[(value, row["metric_name"]) if column else (row["metric_name"],)].append(row["mean"])
    aggregate = _AGGREGATES[arguments.agg]
    found = []
    for key, values in groups.items():
        names: Row = {str(arguments.group_by): key[0], "metric_name": key[1]} if column else {"metric_name": key[0]}
        found.append({**names, arguments.agg: _short(float(aggregate(values))), "series": len(values)})
    return sorted(found, key=lambda row: (-float(row[arguments.agg]), str(row)))


def _evaluated(call: Call, arguments: MetricArguments) -> Answer:
    expression = parse_expression(arguments.eval or "")
    known = [str(r["metric"]) for r in call.snapshot.rows("SELECT DISTINCT metric FROM metrics ORDER BY 1")]
    by_identifier = {metric_identifier(name): name for name in reversed(known)}
    missing = sorted(expression.metrics - by_identifier.keys())
    if missing:
        near = ", ".join(nearest(missing[0], by_identifier))
        raise ToolError(f"eval: no metric {missing[0]!r} in this snapshot; nearest: {near or 'none'}")
    names = [by_identifier[identifier] for identifier in expression.metrics]
    if not names:
        raise ToolError("eval: the expression names no metric")
    per_object = _GROUPS.get(arguments.group_by or "") in ("deployment", "object_name")
    tables: dict[str, dict[float, dict[str, list[float]]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    groups: dict[str, str] = {}
    for series in all_series(call.snapshot, _conditions(call, arguments, names)):
        place = f"{series.kind.title()}/{series.object}" if per_object else "all"
        groups[place] = _deployment(series) if _GROUPS.get(arguments.group_by or "") == "deployment" else place
        for time, value in zip(series.times, series.values, strict=True):
            tables[place][time][metric_identifier(series.metric)].append(value)
    results: dict[str, list[float]] = defaultdict(list)
    for place, table in tables.items():
        latest: dict[str, float] = {}
        for second in sorted(table):
            # Series are scraped at slightly different moments: what was last known counts.
            latest.update({m: math.fsum(v) for m, v in table[second].items()})
            if latest.keys() >= expression.metrics and (result := expression.value(latest)) is not None:
                results[groups[place]].append(result)
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
    rows.sort(key=lambda row: (-row[expression.name], str(row[label])))
    notes = [] if rows else ["the expression had no value anywhere (missing metrics or a division by zero)"]
    return Answer(_sorted(rows, arguments.sort_by), {"eval": arguments.eval, "agg": arguments.agg}, notes)


def _sorted(rows: list[Row], column: str | None) -> list[Row]:
    if column is None or not rows:
        return rows
    if not any(column in row for row in rows):
        raise ToolError(f"sort_by: there is no column {column!r}; there are {', '.join(rows[0])}")

    def weight(row: Row) -> tuple[bool, float, str]:
        value = row.get(column)
        return value is not None, float(value) if isinstance(value, int | float) else 0.0, str(value)

    return sorted(rows, key=weight, reverse=True)
