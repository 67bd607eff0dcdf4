"""event_analysis."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from sre_tools.errors import ToolError
from sre_tools.offline_incident_analysis.arguments import PagedArguments
from sre_tools.offline_incident_analysis.calls import Call
from sre_tools.offline_incident_analysis.conditions import Conditions, group_columns
from sre_tools.offline_incident_analysis.event_counts import EVENT_KEY, integer_sum
from sre_tools.offline_incident_analysis.replies import Answer, reply_schema
from sre_tools.offline_incident_analysis.workloads import workload_sql
from sre_tools.registry import tool

COLUMNS = {
    "event_time": "time",
    "event_kind": "type",
    "reason": "reason",
    "message": "message",
    "object_kind": "kind",
    "object_name": "name",
    "namespace": "namespace",
    "deployment": workload_sql("name", "kind"),
    "source_component": "component",
    "count": "count",
    "watch_type": "watch_type",
}
_AGGREGATES = {"count": "count(*)", "first": "min(time)", "last": "max(time)"}


class EventArguments(PagedArguments):
    events_file: str | None = Field(None, description="the events table; leave out for the server's snapshot")
    filters: dict[str, Any] | None = Field(None, description=f"column to value or list; columns: {', '.join(COLUMNS)}")
    group_by: str | list[str] | None = Field(None, description="one or more columns")
    agg: Literal["count", "first", "last", "nunique", "list"] = "count"
    sort_by: str | None = Field(None, description="a column; times and counts descending")


_UNREADABLE = "reason IS NULL AND kind IS NULL AND name IS NULL"


@tool(
    title="Kubernetes events",
    order=30,
    output_schema=reply_schema(
        {
            "event_time": "last time it happened",
            "event_kind": "Normal or Warning",
            "reason": "",
            "message": "",
            "object_kind": "",
            "object_name": "",
            "namespace": "",
            "deployment": "workload that the name points to",
            "count": "how often, as Kubernetes counted; with group_by: rows, one each time an event was updated",
            "occurrences": "with group_by: how often, as Kubernetes counted",
        }
    ),
)
def event_analysis(call: Call, arguments: EventArguments) -> Answer:
    """Kubernetes events, warnings first and newest first, or grouped.
    Example: event_analysis(filters={"event_kind": "Warning"}, group_by=["reason", "object_name"])."""
    where = Conditions()
    where.add_time_range("time", arguments)
    where.add_filters(arguments.filters, COLUMNS)
    groups = group_columns(arguments.group_by, COLUMNS)
    counts = call.snapshot.rows(
        f"""SELECT count_if(type = 'Warning') AS warnings, count_if({_UNREADABLE}) AS unreadable, count(*) AS n
            FROM events"""
    )[0]
    summary = {"warnings_in_snapshot": counts["warnings"]}
    notes = []
    if counts["unreadable"]:
        notes.append(
            f"{counts['unreadable']} of {counts['n']} events could not be read: their body is no Kubernetes event in "
            "JSON or Python notation"
        )
    if groups:
        picks = ", ".join(f"{COLUMNS[name]} AS {name}" for name in groups)
        listed = [name for name in ("reason", "message", "event_kind") if name not in groups]
        if arguments.agg == "nunique":
            names = [name for name in COLUMNS if name not in groups]
            values = ", ".join(f"count(DISTINCT {COLUMNS[name]}) AS {name}_unique" for name in names)
        elif arguments.agg == "list":
            values = ", ".join(f"list(DISTINCT {COLUMNS[name]})[:10] AS {name}" for name in listed)
            values = f"count(*) AS event_rows{', ' if values else ''}{values}"
        else:
            values = f'{_AGGREGATES[arguments.agg]} AS "{arguments.agg}"'
        source = f"events {where.where}"
        if arguments.agg == "count":
            values = f'{integer_sum("recorded")} AS "count", {integer_sum("happened")} AS occurrences'
            source = f"""(SELECT {picks}, count(*) AS recorded, max(count) AS happened FROM events {where.where}
                GROUP BY {", ".join(COLUMNS[name] for name in groups)}, {EVENT_KEY})"""
            picks = ", ".join(groups)
        rows = call.snapshot.rows(
            f"SELECT * FROM (SELECT {picks}, {values} FROM {source} GROUP BY ALL) ORDER BY ALL", where.values
        )
        key = "event_rows" if arguments.agg == "list" else arguments.agg
        if rows and key in rows[0]:
            rows.sort(key=lambda row: (row[key] is not None, row[key]), reverse=True)
        if arguments.sort_by and rows:
            if arguments.sort_by not in rows[0]:
                raise ToolError(f"sort_by: there is no column {arguments.sort_by!r}; there are {', '.join(rows[0])}")
            rows.sort(key=lambda row: str(row[arguments.sort_by or ""]))
        return Answer(rows, summary, notes)
    if arguments.sort_by and arguments.sort_by not in COLUMNS:
        raise ToolError(f"sort_by: there is no column {arguments.sort_by!r}; there are {', '.join(COLUMNS)}")
    order = f"{COLUMNS[arguments.sort_by]} DESC NULLS LAST, " if arguments.sort_by else ""
    picks = ", ".join(f"{column} AS {name}" for name, column in COLUMNS.items())
    total = call.snapshot.rows(f"SELECT count(*) AS n FROM events {where.where}", where.values)[0]["n"]
    rows = call.snapshot.rows(
        f"""SELECT {picks} FROM events {where.where}
            ORDER BY {order} type = 'Warning' DESC NULLS LAST, time DESC NULLS LAST, name, reason LIMIT ? OFFSET ?""",
        [*where.values, call.window.max_rows, call.window.offset],
    )
    return Answer(rows, summary, notes, total=total, start=call.window.offset)
