"""alert_summary and alert_analysis."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from sre_tools.errors import ToolError
from sre_tools.offline_incident_analysis.arguments import PagedArguments
from sre_tools.offline_incident_analysis.calls import Call
from sre_tools.offline_incident_analysis.conditions import Conditions, group_columns
from sre_tools.offline_incident_analysis.replies import Answer, Row, reply_schema
from sre_tools.registry import tool
from srearena.snapshots import Snapshot
from srearena.snapshots.alert_files import time_in_name
from srearena.snapshots.attributes import parse_attributes

_BASE = Field(None, description="the snapshot's directory or its alerts/; leave out for the server's snapshot")
# Labels that say where an alert was measured, or that other columns show; the others tell alerts of one rule apart.
_NOT_TELLING = (
    "alertname severity namespace service service_name instance job uid id endpoint metrics_path prometheus".split()
)
_NULLS = ", ".join(f'"{name}": null' for name in _NOT_TELLING)
OTHER_LABELS = f"json_merge_patch(CAST(labels AS JSON), '{{{_NULLS}}}')"
"""The labels that tell the alerts of one rule and entity apart: a user, an operation."""
_BASIS = {"snapshot": "observed_at", "activeAt": "active_at"}


class SummaryArguments(PagedArguments):
    base_dir: str | None = _BASE
    time_basis: Literal["snapshot", "activeAt"] = Field("snapshot", description="which time start and end refer to")
    state_filter: str | None = Field(None, description="firing or pending")
    min_duration_min: float | None = Field(None, ge=0, description="only what was active at least so many minutes")
    limit: int | None = Field(50, ge=0)


def captures(snapshot: Snapshot) -> list[str]:
    """Times of the captures of alerts, with or without any firing, in order; of files whose names have a time."""
    times = {time_in_name(path.name) for path in snapshot.layout.alerts}
    return sorted(time.rstrip("Z") for time in times if time)


def first_capture(snapshot: Snapshot) -> str | None:
    """Time of the first capture of alerts; None if there is none.

    Over a running system, the begin of the observed time."""
    if snapshot.observed_since is not None:
        return snapshot.observed_since.replace(tzinfo=None).isoformat()
    return next(iter(captures(snapshot)), None)


def telling_labels(row: Row) -> Row:
    """The further labels of an alert, without the one that names what it is about."""
    return {key: value for key, value in parse_attributes(row["labels"]).items() if value != row["entity"]}


@tool(
    title="Alerts at a glance",
    order=10,
    output_schema=reply_schema(
        {
            "alertname": "name of the alerting rule",
            "entity": "what it is about, from its labels",
            "namespace": "",
            "severity": "",
            "labels": "further labels (a user, an operation) that tell alerts of one rule and entity apart",
            "state": "firing if it ever was",
            "first_seen": "first capture that shows it",
            "last_seen": "last capture that shows it",
            "active_since": "when the rule says it began",
            "duration_min": "minutes from active_since (or first_seen) to last_seen",
            "occurrences": "captures that show it",
            "began_during_recording": "false for alerts that were active before the recording began (often noise)",
        }
    ),
)
def alert_summary(call: Call, arguments: SummaryArguments) -> Answer:
    """START HERE. One row per alert and entity: since when, how long, how often. Alerts that began during the
    recording come first, as they point to the incident; alerts active all along (Watchdog) come last.
    Example: alert_summary() or alert_summary(state_filter="firing", min_duration_min=5)."""
    where = Conditions()
    where.add_time_range(_BASIS[arguments.time_basis], arguments)
    rows = call.snapshot.rows(
        f"""
        WITH edge AS (SELECT least(min(observed_at), CAST(? AS TIMESTAMP)) AS began FROM alerts)
        SELECT alertname, coalesce(entity, 'cluster-wide') AS entity, namespace, severity,
          CAST({OTHER_LABELS} AS VARCHAR) AS labels,
          CASE WHEN bool_or(state = 'firing') THEN 'firing' ELSE any_value(state) END AS state,
          min(observed_at) AS first_seen, max(observed_at) AS last_seen, min(active_at) AS active_since,
          round(date_diff('second', least(min(active_at), min(observed_at)), max(observed_at)) / 60.0, 1)
            AS duration_min,
          count(DISTINCT observed_at) AS occurrences,
          coalesce(min(active_at), min(observed_at)) >= any_value(began) AS began_during_recording
        FROM alerts, edge {where.where} GROUP BY ALL
        ORDER BY began_during_recording DESC, state, duration_min DESC, occurrences DESC, alertname, entity,
          namespace, labels
        """,
        [first_capture(call.snapshot), *where.values],
    )
    for row in rows:
        row["labels"] = telling_labels(row)
    if arguments.state_filter:
        rows = [row for row in rows if row["state"] == arguments.state_filter.lower()]
    if arguments.min_duration_min is not None:
        rows = [row for row in rows if (row["duration_min"] or 0) >= arguments.min_duration_min]
    fresh = [row for row in rows if row["began_during_recording"]]
    summary: Row = {"alerts": len(rows), "began_during_recording": len(fresh)}
    if began := first_capture(call.snapshot):
        summary["recording_began"] = f"{began}Z"
    if fresh:
        summary["first_began"] = min(row["active_since"] or row["first_seen"] for row in fresh)
    notes = [] if call.snapshot.layout.alerts else ["this snapshot has no alerts; try incident_timeline"]
    return Answer(rows, summary, notes)


_COLUMNS = {
    "alertname": "alertname",
    "severity": "severity",
    "state": "state",
    "namespace": "namespace",
    "entity": "entity",
    "service_name": "coalesce(json_extract_string(labels, '$.service_name'), json_extract_string(labels, '$.service'))",
    "pod": "json_extract_string(labels, '$.pod')",
    "deployment": "json_extract_string(labels, '$.deployment')",
    "snapshot_timestamp": "observed_at",
}
_AGGREGATES = {
    "count": "count(*)",
    "first": "min(observed_at)",
    "last": "max(observed_at)",
    "sum": "sum(duration_active_min)",
    "mean": "round(avg(duration_active_min), 1)",
    "max": "max(duration_active_min)",
    "min": "min(duration_active_min)",
}


class AnalysisArguments(PagedArguments):
    base_dir: str | None = _BASE
    time_basis: Literal["snapshot", "activeAt"] = "snapshot"
    filters: dict[str, Any] | None = Field(None, description='column to value or list; labels as "labels.<name>"')
    group_by: str | list[str] | None = Field(None, description=f"one or more of {', '.join(_COLUMNS)}")
    agg: Literal["count", "first", "last", "sum", "mean", "max", "min"] = Field(
        "count", description="with group_by: count, first and last time, or of duration_active_min"
    )
    sort_by: str | None = Field(None, description="a column of the reply; descending")


def _columns(names: list[str]) -> dict[str, str]:
    columns = dict(_COLUMNS)
    for name in names:
        if name.startswith("labels."):
            label = name.removeprefix("labels.")
            if not label.replace("_", "").isalnum():
                raise ToolError(f"{name!r} is no label")
            columns[name] = f"json_extract_string(labels, '$.{label}')"
    return columns


@tool(
    title="Alerts in detail",
    order=20,
    output_schema=reply_schema(
        {
            "snapshot_timestamp": "when the alert was captured",
            "active_at": "when it became active",
            "duration_active_min": "minutes between the two; null if negative",
            "value": "of the alert's expression",
            "labels": "all labels",
        }
    ),
)
def alert_analysis(call: Call, arguments: AnalysisArguments) -> Answer:
    """Single captures of alerts, filtered, or grouped and counted. For the overview use alert_summary.
    Example: alert_analysis(filters={"severity": "critical"}, group_by="alertname")."""
    group_names = arguments.group_by if isinstance(arguments.group_by, list) else [arguments.group_by or ""]
    columns = _columns([*(arguments.filters or {}), *group_names])
    where = Conditions()
    where.add_time_range(_BASIS[arguments.time_basis], arguments)
    where.add_filters(arguments.filters, columns)
    minutes = "round(date_diff('second', active_at, observed_at) / 60.0, 1)"
    source = f"""(SELECT *, CASE WHEN active_at <= observed_at THEN {minutes} END AS duration_active_min
                  FROM alerts {where.where})"""
    groups = group_columns(arguments.group_by, columns)
    if groups:
        picks = ", ".join(f'{columns[name]} AS "{name}"' for name in groups)
        rows = call.snapshot.rows(
            f'SELECT {picks}, {_AGGREGATES[arguments.agg]} AS "{arguments.agg}" FROM {source} '
            f"GROUP BY ALL ORDER BY ALL",
            where.values,
        )
        rows.sort(key=lambda row: (row[arguments.agg] is not None, row[arguments.agg]), reverse=True)
        return Answer(_sorted(rows, arguments.sort_by))
    total = call.snapshot.rows(f"SELECT count(*) AS n FROM alerts {where.where}", where.values)[0]["n"]
    order = "observed_at DESC, duration_active_min ASC NULLS LAST, alertname, entity"
    if arguments.sort_by:
        column = {**_COLUMNS, "duration_active_min": "duration_active_min", "active_at": "active_at"}.get(
            arguments.sort_by
        )
        if column is None:
            raise ToolError(f"sort_by: there is no column {arguments.sort_by!r}")
        order = f"{column} DESC NULLS LAST, {order}"
    rows = call.snapshot.rows(
        f"""SELECT observed_at AS snapshot_timestamp, alertname, entity, namespace, severity, state, active_at,
            duration_active_min, value, labels, annotations FROM {source} ORDER BY {order} LIMIT ? OFFSET ?""",
        [*where.values, call.window.max_rows, call.window.offset],
    )
    for row in rows:
        row["labels"], row["annotations"] = parse_attributes(row["labels"]), parse_attributes(row["annotations"])
    return Answer(rows, total=total, start=call.window.offset)


def _sorted(rows: list[dict[str, Any]], column: str | None) -> list[dict[str, Any]]:
    if column is None:
        return rows
    if rows and column not in rows[0]:
        raise ToolError(f"sort_by: there is no column {column!r}; there are {', '.join(rows[0])}")
    return sorted(rows, key=lambda row: (row[column] is not None, str(row[column])), reverse=True)
