"""get_metric_anomalies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from pydantic import Field

from sre_tools.offline_incident_analysis.arguments import TimeRangeArguments, parse_time
from sre_tools.offline_incident_analysis.calls import Call
from sre_tools.offline_incident_analysis.conditions import Conditions, checked_regex
from sre_tools.offline_incident_analysis.histograms import with_quantiles
from sre_tools.offline_incident_analysis.metric_series import (
    Points,
    Series,
    SeriesReader,
    add_objects,
    metric_objects,
    to_datetime,
    values_or_rates,
)
from sre_tools.offline_incident_analysis.replies import Answer, Row, iso_time, reply_schema
from sre_tools.offline_incident_analysis.statistics import Anomalies, Floats, anomalies_since, detect_anomalies
from sre_tools.offline_incident_analysis.tools.alerts import first_capture
from sre_tools.offline_incident_analysis.trace_onsets import pivot
from sre_tools.registry import tool
from srearena.snapshots import Snapshot

_MAX_POINTS_SHOWN = 10
_MOST_SERIES = 0.8  # of an object are born or dead: the object is; chosen
_LIFETIME_SCORE = 60.0  # chosen: below large steps, above outliers of a few spreads


class AnomalyArguments(TimeRangeArguments):
    k8_object_name: str = Field(description="Pod/name, Service/name, or a name; a Deployment means its pods; exact")
    base_dir: str | None = Field(None, description="the snapshot's directory or metrics/; leave out for the server's")
    metric_name_filter: str | None = Field(None, description="regular expression (RE2) found anywhere in the name")
    pivot_time: str | None = Field(None, description="ISO 8601; when the incident began. Found by itself if left out")
    raw_content: bool = Field(False, description="add every point of each anomalous series")
    limit: int | None = Field(30, ge=0)


def _row(series: Series, result: Anomalies, times: Floats, values: Floats, unit: str) -> Row:
    furthest = sorted(np.argsort(-np.abs(result.distances), kind="stable")[:_MAX_POINTS_SHOWN].tolist())
    row: Row = {
        "object": f"{series.kind.title()}/{series.object}",
        "metric_name": series.metric,
        "labels": series.label_set(),
        "finding": "changed",
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
            "clearness": round(result.shift.strength, 2),
        }
    if result.period:
        row["seasonal_period_points"] = result.period
    return row


def _short(value: float) -> float:
    return float(f"{value:.5g}")


@dataclass(frozen=True, slots=True)
class _Extent:
    first: float
    last: float
    interval: float
    """Seconds between two samples, as a rule."""


def _extent(call: Call, arguments: AnomalyArguments, every: Sequence[Series]) -> _Extent | None:
    """The time that metrics were recorded, as far as the question is about it, and the interval of these series."""
    recorded = call.snapshot.metric_times()
    lasting = [series.times for series in every if len(series.times) > 1]
    if recorded is None or not lasting:
        return None
    first = min(recorded[0].timestamp(), *(float(times[0]) for times in lasting))
    last = max(recorded[1].timestamp(), *(float(times[-1]) for times in lasting))
    begin, end = (time.replace(tzinfo=UTC).timestamp() if time else None for time in Conditions.time_range(arguments))
    interval = float(np.median([(times[-1] - times[0]) / (len(times) - 1) for times in lasting]))
    return _Extent(max(first, begin or first), min(last, end or last), max(interval, 1.0))


def _incident_begin(snapshot: Snapshot) -> datetime | None:
    """When the incident began: the onset in traces, or else the first alert that became active in the recording."""
    onset = pivot(snapshot)
    if onset:
        return onset[0]
    began = first_capture(snapshot)
    if began is None:
        return None
    rows = snapshot.rows("SELECT min(active_at) AS t FROM alerts WHERE active_at >= CAST(? AS TIMESTAMP)", [began])
    time: datetime | None = rows[0]["t"]
    return time


def _born_or_dead(series: Series, begin: float, extent: _Extent) -> str | None:
    """Whether the series began or ended after the incident began, in a recording that began before and went on."""
    slack = 3 * extent.interval  # a missed sample is no end
    if extent.first < begin - slack and series.times[0] >= begin - extent.interval:
        return "born"
    if series.times[-1] >= begin - extent.interval and series.times[-1] < extent.last - slack:
        return "dead"
    return None


def _lifetimes(every: Sequence[Series], begin: float, extent: _Extent) -> list[Row]:
    """A row for each series that was born or died with the incident; one for an object all of whose series did."""
    found: dict[tuple[str, str, str], list[Series]] = defaultdict(list)
    sizes: dict[tuple[str, str], int] = defaultdict(int)
    for series in every:
        sizes[series.kind, series.object] += 1
        fate = _born_or_dead(series, begin, extent)
        if fate:
            found[series.kind, series.object, fate].append(series)
    rows = []
    for (kind, name, fate), members in found.items():
        whole = len(members) > 1 and len(members) >= _MOST_SERIES * sizes[kind, name]
        for series in members[:1] if whole else members:
            edge = min(s.times[0] for s in members) if fate == "born" else max(s.times[-1] for s in members)
            at = edge if whole else series.times[0 if fate == "born" else -1]
            rows.append(
                {
                    "object": f"{kind.title()}/{name}",
                    "metric_name": f"all {len(members)} series" if whole else series.metric,
                    "labels": {} if whole else series.label_set(),
                    "finding": fate,
                    "at": iso_time(to_datetime(at)),
                    "score": _LIFETIME_SCORE,
                    **({} if whole else {"last_value": _short(float(series.values[-1]))}),
                }
            )
    return rows


@tool(
    title="Metrics that left their usual",
    order=60,
    output_schema=reply_schema(
        {
            "object": "Pod/name or Service/name",
            "metric_name": "histogram families are quantiles: histogram_quantile(0.95, …)",
            "labels": "that tell this series from others of the metric",
            "finding": "changed; or born or dead: the series began or ended with the incident",
            "score": "0 to 100, how far it went",
            "unit": "`value` of a gauge; `per second` for counters, which are differentiated first",
            "baseline": "median before the incident began (of the usual part, if that is not known)",
            "shift": "a lasting step: when, from, to, and how clear it is (0 to 1)",
            "anomalies": "single points, with how many robust standard deviations they are away",
        }
    ),
)
def get_metric_anomalies(call: Call, arguments: AnomalyArguments) -> Answer:
    """Series of an object that changed with the incident, worst first, each compared with itself before: outliers,
    lasting steps, series that were born or died. Counters are turned into rates, histograms into quantiles.
    Example: get_metric_anomalies(k8_object_name="Deployment/checkout", metric_name_filter="cpu")."""
    where = Conditions()
    pairs = metric_objects(call, arguments.k8_object_name)
    add_objects(where, pairs)
    if arguments.metric_name_filter:
        pattern = checked_regex(call.snapshot.rows, arguments.metric_name_filter, "metric_name_filter")
        where.add("regexp_matches(metric, ?)", pattern)
    reader = SeriesReader(call.snapshot, where, arguments, relation=call.snapshot.series_of(pairs))
    every = with_quantiles(series for series in reader if len(series.values))
    pivot_argument = parse_time(arguments.pivot_time, "pivot_time")
    begin = pivot_argument.replace(tzinfo=UTC) if pivot_argument else _incident_begin(call.snapshot)
    rows = _lifetimes(every, begin.timestamp(), extent) if begin and (extent := _extent(call, arguments, every)) else []
    points = values_or_rates(every)
    for series, (times, values, unit), result in zip(every, points, _judged(points, begin), strict=True):
        if len(result.outliers) or result.shift:
            row = _row(series, result, times, values, unit)
            if arguments.raw_content:
                row["data"] = [[iso_time(to_datetime(t)), _short(v)] for t, v in zip(times, values, strict=True)]
            rows.append(row)
    rows.sort(key=lambda row: (-row["score"], row["object"], row["metric_name"], str(row["labels"])))
    summary = {"objects": [f"{k.title()}/{n}" for k, n in pairs], "series": len(every), "anomalous_series": len(rows)}
    summary["baseline"] = f"before {iso_time(begin)}" if begin else "the usual part of each series"
    notes = [] if rows or every else ["no series matches; drop metric_name_filter or the time range"]
    return Answer(rows, summary, [*notes, *reader.notes])


def _judged(points: Sequence[Points], begin: datetime | None) -> list[Anomalies]:
    """The anomalies of each series since the incident began; of one without points before, in itself."""
    if begin is None:
        return detect_anomalies([values for _, values, _ in points])
    nothing = np.zeros(0, dtype=int), np.zeros(0)
    found = []
    for times, values, _ in points:
        since = anomalies_since(times, values, begin.timestamp())
        found.append(since or Anomalies(len(values), 0.0, 1e-9, *nothing, None, None))
    return found
