"""get_trace_error_tree: errors and latency by call path, before and after a pivot."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Literal

from pydantic import Field

from sre_tools.errors import ToolError
from sre_tools.offline_incident_analysis.arguments import Arguments, parse_time
from sre_tools.offline_incident_analysis.calls import Call
from sre_tools.offline_incident_analysis.identity import nearest
from sre_tools.offline_incident_analysis.replies import Answer, Row, iso_time, reply_schema
from sre_tools.offline_incident_analysis.trace_onsets import extent as trace_extent
from sre_tools.offline_incident_analysis.trace_onsets import pivot as find_pivot
from sre_tools.offline_incident_analysis.trace_origins import Origin, origins
from sre_tools.offline_incident_analysis.trace_tree import ARROW, call_tree
from sre_tools.registry import tool

_DELTA = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|d)")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_MAX_SUSPECTS = 5
_SEVERITY = {"CRITICAL": 0, "NEW": 1, "WARNING": 2, "DISAPPEARED": 3, "ERRORS": 1, "OK": 4}


class TraceArguments(Arguments):
    trace_file: str | None = Field(None, description="the traces table; leave out for the server's snapshot")
    service_name: str | None = Field(None, description="only paths through this service; exact")
    span_kind: Literal["Client", "Server", "Internal", "Producer", "Consumer"] | None = Field(
        None, description="count only spans of this kind"
    )
    pivot_time: str | None = Field(None, description="ISO 8601; compare before and after. Found by itself if left out")
    delta_time: str = Field("5m", description="how much before and after the pivot: 30s, 5m, 1h")
    error_threshold_pct: float = Field(10, ge=0, description="change in error rate that counts, in points")
    latency_threshold_pct: float = Field(10, ge=0, description="change in p99 latency that counts, in percent")
    limit: int | None = Field(50, ge=0)


@tool(
    title="Where requests fail",
    order=70,
    output_schema=reply_schema(
        {
            "path": "services from the entry to this one",
            "service": "the last of them",
            "severity": "CRITICAL, WARNING, NEW, DISAPPEARED, ERRORS (no pivot) or OK",
            "own_errors": "failed spans none of whose children failed: the failure starts here",
            "pre": "before the pivot: spans, rate_per_s, error_pct, p50_ms, p99_ms, "
            "self_ms (mean time not spent in calls)",
            "post": "after the pivot, the same",
            "sample_errors": "status messages",
        }
    ),
)
def get_trace_error_tree(call: Call, arguments: TraceArguments) -> Answer:
    """The call tree by path with errors, latency and self time, before and after a pivot. Without pivot_time the
    moment at which errors (or latency) rose is found. Times are milliseconds.
    Example: get_trace_error_tree(service_name="checkout", pivot_time="2025-06-01T10:11:00Z", delta_time="10m")."""
    match = _DELTA.fullmatch(arguments.delta_time.strip())
    if not match:
        raise ToolError(f"delta_time: {arguments.delta_time!r} is no duration; write 30s, 5m, 1h or 1d")
    delta = timedelta(seconds=float(match[1]) * _UNITS[match[2]])
    extent = trace_extent(call.snapshot)
    if extent.first is None or extent.last is None:
        return Answer([], {}, ["this snapshot has no traces; try log_analysis or metric_analysis"])
    if arguments.service_name and arguments.service_name not in extent.services:
        near = ", ".join(nearest(arguments.service_name, extent.services))
        raise ToolError(f"no spans of a service {arguments.service_name!r}; nearest: {near}")
    pivot, how = parse_time(arguments.pivot_time, "pivot_time"), "given"
    if pivot is None:
        onset = find_pivot(call.snapshot, arguments.service_name)
        pivot, how = (onset[0].replace(tzinfo=None), f"found: {onset[1]}") if onset else (None, "none found")
    first, last = extent.first.replace(tzinfo=None), extent.last.replace(tzinfo=None) + timedelta(microseconds=1)
    begin, end = (pivot - delta, pivot + delta) if pivot else (first, last)
    # Without a pivot there is one window, named `post`.
    tree = call_tree(call.snapshot, extent.services, pivot or first, begin, end, arguments.span_kind)
    rows = tree.rows
    seconds = {"pre": _length(first, last, begin, pivot), "post": _length(first, last, pivot or first, end)}
    seconds = {side: length / tree.share for side, length in seconds.items()}
    scale = seconds["post"] / seconds["pre"] if pivot and pivot > first else 0.0
    starts = origins(call.snapshot, pivot or first, begin, end, tree.share, scale)
    paths: dict[str, Row] = {}
    for row in rows:
        paths.setdefault(row["path"], {"path": row["path"], "service": row["service"]})[row["side"]] = row
    shown = [
        _compared(path, seconds, arguments, compare=pivot is not None)
        for path in paths.values()
        if not arguments.service_name or arguments.service_name in path["path"].split(ARROW)
    ]
    shown.sort(key=lambda row: (_SEVERITY[row["severity"]], -row["own_errors"], -row["weight"], row["path"]))
    for row in shown:
        del row["weight"]
    summary: Row = {
        "pivot_time": iso_time(pivot.replace(tzinfo=extent.first.tzinfo)) if pivot else None,
        "pivot": how,
        "window": arguments.delta_time if pivot else "the whole recording",
        "paths": len(shown),
        **_suspects(starts, failures=pivot is None),
    }
    notes = []
    if tree.share > 1:
        notes.append(
            f"1 in {tree.share} traces was looked at: spans and errors are counts among those, rates are scaled up; "
            "a smaller delta_time looks at more"
        )
    return Answer(shown, summary, notes)


def _length(first: datetime, last: datetime, begin: datetime, end: datetime | None) -> float:
    if end is None:
        return 1.0
    return max((min(last, end) - max(first, begin)).total_seconds(), 1.0)


def _numbers(row: Row | None, seconds: float) -> Row | None:
    if row is None:
        return None
    return {
        "spans": row["spans"],
        "rate_per_s": round(row["spans"] / seconds, 3),
        "error_pct": round(100 * row["errors"] / row["spans"], 1),
        "p50_ms": round(row["p50"] or 0, 2),
        "p99_ms": round(row["p99"] or 0, 2),
        "self_ms": round(row["self_ms"] or 0, 2),
    }


def _compared(path: Row, seconds: dict[str, float], arguments: TraceArguments, *, compare: bool) -> Row:
    pre, post = _numbers(path.get("pre"), seconds["pre"]), _numbers(path.get("post"), seconds["post"])
    errors = (post["error_pct"] if post else 0.0) - (pre["error_pct"] if pre else 0.0)
    before, after = (pre["p99_ms"] if pre else 0.0), (post["p99_ms"] if post else 0.0)
    slower = 100 * (after - before) / before if before else 0.0
    if not compare:
        severity = "ERRORS" if post and post["error_pct"] > 0 else "OK"
    elif pre is None or post is None:
        severity = "NEW" if pre is None else "DISAPPEARED"
    elif abs(errors) < arguments.error_threshold_pct and abs(slower) < arguments.latency_threshold_pct:
        severity = "OK"
    else:
        severity = "CRITICAL" if errors > 50 or post["error_pct"] > 50 or slower > 100 else "WARNING"
    last = path.get("post") or path["pre"]
    result: Row = {
        "path": path["path"],
        "service": path["service"],
        "severity": severity,
        "own_errors": last["own_errors"],
        "pre": pre,
        "post": post,
        "sample_errors": last["messages"] or [],
        "weight": last["errors"],
    }
    if pre and post:
        result["delta"] = {"error_pct": round(errors, 1), "p99_pct": round(slower, 1)}
    return result


def _suspects(found: list[Origin], failures: bool) -> Row:
    """The services in which failures start, or else delays; the first is the suspect."""
    failing = [origin for origin in found if round(origin.failed) >= 1]
    total = sum(origin.failed for origin in failing)
    ranked = [
        {
            "service": origin.name,
            "reason": f"{round(origin.failed)} of {round(total)} failed requests begin here"
            + (f", in calls from {', '.join(sorted(origin.callers))}" if origin.callers else "")
            + (f": {origin.messages[0]}" if origin.messages else ""),
        }
        for origin in failing
    ]
    if not failing and not failures:
        slower = sorted(found, key=lambda origin: (-origin.delay_ms, origin.name))
        total = sum(origin.delay_ms for origin in slower)
        ranked = [
            {"service": o.name, "reason": f"{100 * o.delay_ms / total:.0f} % of the additional time is spent here"}
            for o in slower
            if o.delay_ms > 0.1 * total
        ]
    if not ranked:
        return {}
    return {"root_cause_suspect": ranked[0], "other_suspects": ranked[1:_MAX_SUSPECTS]}
