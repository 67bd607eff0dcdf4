"""get_metric_anomalies."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from sre_tools.offline_incident_analysis.arguments import TimeRangeArguments
from sre_tools.offline_incident_analysis.calls import Call
from sre_tools.offline_incident_analysis.conditions import Conditions, checked_regex
from sre_tools.offline_incident_analysis.metric_series import (
    NO_BUCKETS,
    Series,
    SeriesReader,
    add_objects,
    metric_objects,
    to_datetime,
    values_or_rates,
)
from sre_tools.offline_incident_analysis.replies import Answer, Row, iso_time, reply_schema
from sre_tools.offline_incident_analysis.statistics import Anomalies, Floats, detect_anomalies
from sre_tools.registry import tool

_MAX_POINTS_SHOWN = 10


class AnomalyArguments(TimeRangeArguments):
    k8_object_name: str = Field(description="Pod/name, Service/name, or a name; a Deployment means its pods; exact")
    base_dir: str | None = Field(None, description="the snapshot's directory or metrics/; leave out for the server's")
    metric_name_filter: str | None = Field(None, description="regular expression (RE2) found anywhere in the name")
    raw_content: bool = Field(False, description="add every point of each anomalous series")
    limit: int | None = Field(30, ge=0)


def _row(series: Series, result: Anomalies, times: Floats, values: Floats, unit: str) -> Row:
    furthest = sorted(np.argsort(-np.abs(result.distances), kind="stable")[:_MAX_POINTS_SHOWN].tolist())
    row: Row = {
        "object": f"{series.kind.title()}/{series.object}",
        "metric_name": series.metric,
        "labels": series.label_set(),
        "score": round(result.score, 1),
        "unit": unit,
        "baseline": _short(result.baseline),
        "spread": _short(result.spread),
        "points": result.points,
        "anomaly_count": len(result.outliers),
        "anomalies": [
            {"timestamp": iso_time(to_datetime(times[i])), "value": _short(values[i]), "spreads": round(float(z), 1)}
            for i, z in zip(result.outliers[furthest], result.distances[furthest], strict=True)
        ],
    }
    if result.shift:
        row["shift"] = {
            "at": iso_time(to_datetime(times[result.shift.index])),
            "before": _short(result.shift.before),
            "after": _short(result.shift.after),
            "explains": round(result.shift.strength, 2),
        }
    if result.period:
        row["seasonal_period_points"] = result.period
    return row


def _short(value: float) -> float:
    return float(f"{value:.5g}")


@tool(
    title="Metrics that left their usual",
    order=60,
    output_schema=reply_schema(
        {
            "object": "Pod/name or Service/name",
            "metric_name": "",
            "labels": "that tell this series from others of the metric",
            "score": "0 to 100, how far it went",
            "unit": "`value` of a gauge; `per second` for counters, which are differentiated first",
            "baseline": "median of the usual part",
            "shift": "a lasting step: when, from, to, and the share of variance it explains",
            "anomalies": "single points, with how many robust standard deviations they are away",
        }
    ),
)
def get_metric_anomalies(call: Call, arguments: AnomalyArguments) -> Answer:
    """Series of an object with outliers or lasting steps, worst first, each judged against itself alone. Counters are
    turned into rates. Example: get_metric_anomalies(k8_object_name="Deployment/checkout", metric_name_filter="cpu")."""
    where = Conditions()
    pairs = metric_objects(call, arguments.k8_object_name)
    add_objects(where, pairs)
    where.add(NO_BUCKETS)
    if arguments.metric_name_filter:
        pattern = checked_regex(call.snapshot.rows, arguments.metric_name_filter, "metric_name_filter")
        where.add("regexp_matches(metric, ?)", pattern)
    reader = SeriesReader(call.snapshot, where, arguments)
    every = [series for series in reader if len(series.values)]
    points = values_or_rates(every)
    results = detect_anomalies([values for _, values, _ in points])
    rows = []
    for series, (times, values, unit), result in zip(every, points, results, strict=True):
        if len(result.outliers) or result.shift:
            row = _row(series, result, times, values, unit)
            if arguments.raw_content:
                row["data"] = [[iso_time(to_datetime(t)), _short(v)] for t, v in zip(times, values, strict=True)]
            rows.append(row)
    rows.sort(key=lambda row: (-row["score"], row["object"], row["metric_name"], str(row["labels"])))
    summary = {"objects": [f"{k.title()}/{n}" for k, n in pairs], "series": len(every), "anomalous_series": len(rows)}
    notes = [] if rows or every else ["no series matches; drop metric_name_filter or the time range"]
    return Answer(rows, summary, [*notes, *reader.notes])
