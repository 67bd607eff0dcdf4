"""get_metric_anomalies: which series of an object left their usual."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from sre_tools.offline_incident_analysis.arguments import Timed
from sre_tools.offline_incident_analysis.calls import Call
from sre_tools.offline_incident_analysis.conditions import Conditions, checked_regex
from sre_tools.offline_incident_analysis.metric_series import (
    NO_BUCKETS,
    Series,
    SeriesReader,
    about_objects,
    metric_objects,
    moment,
    prepared,
)
from sre_tools.offline_incident_analysis.replies import Answer, Row, reply_schema, when
from sre_tools.offline_incident_analysis.statistics import Anomalies, Floats, judged
from sre_tools.registry import tool

_SHOWN_POINTS = 10


class AnomalyArguments(Timed):
    k8_object_name: str = Field(description="Pod/name, Service/name, or a name; a Deployment means its pods; exact")
    base_dir: str | None = Field(None, description="the snapshot's directory or metrics/; leave out for the server's")
    metric_name_filter: str | None = Field(None, description="regular expression (RE2) found anywhere in the name")
    raw_content: bool = Field(False, description="add every point of each anomalous series")
    limit: int | None = Field(30, ge=0)


def _row(series: Series, found: Anomalies, times: Floats, values: Floats, unit: str) -> Row:
    furthest = sorted(np.argsort(-np.abs(found.distances), kind="stable")[:_SHOWN_POINTS].tolist())
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
            {"timestamp": when(moment(times[i])), "value": _short(values[i]), "spreads": round(float(z), 1)}
            for i, z in zip(found.outliers[furthest], found.distances[furthest], strict=True)
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
    about_objects(where, pairs)
    where.add(NO_BUCKETS)
    if arguments.metric_name_filter:
        pattern = checked_regex(call.snapshot.rows, arguments.metric_name_filter, "metric_name_filter")
        where.add("regexp_matches(metric, ?)", pattern)
    reader = SeriesReader(call.snapshot, where, arguments)
    every = [series for series in reader if len(series.values)]
    looked_at = prepared(every)
    verdicts = judged([values for _, values, _ in looked_at])
    rows = []
    for series, (times, values, unit), found in zip(every, looked_at, verdicts, strict=True):
        if len(found.outliers) or found.shift:
            row = _row(series, found, times, values, unit)
            if arguments.raw_content:
                row["data"] = [[when(moment(t)), _short(v)] for t, v in zip(times, values, strict=True)]
            rows.append(row)
    rows.sort(key=lambda row: (-row["score"], row["object"], row["metric_name"], str(row["labels"])))
    summary = {"objects": [f"{k.title()}/{n}" for k, n in pairs], "series": len(every), "anomalous_series": len(rows)}
    notes = [] if rows or every else ["no series matches; drop metric_name_filter or the time range"]
    return Answer(rows, summary, [*notes, *reader.notes])
