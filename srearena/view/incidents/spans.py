"""Traces for the pages: a line for the list, and the spans of one trace as a waterfall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from srearena.view.incidents.topology import TracedSpan

_MOST_SPANS = 2000
_DEEPEST = 60


@dataclass(slots=True)
class TimedSpan:
    """A span with its time, in microseconds since the epoch."""

    span: TracedSpan
    start: int
    duration: int
    failed: bool
    message: str = ""
    logs: list[str] = field(default_factory=list)


def jaeger_spans(trace: Mapping[str, Any]) -> list[TimedSpan]:
    """The spans of a trace in Jaeger's JSON."""
    processes = trace.get("processes") or {}
    return [_jaeger_span(span, processes) for span in (trace.get("spans") or [])[:_MOST_SPANS]]


def _jaeger_span(span: Mapping[str, Any], processes: Mapping[str, Any]) -> TimedSpan:
    tags = {str(tag["key"]): _text(tag.get("value")) for tag in span.get("tags") or []}
    parents = [str(ref["spanID"]) for ref in span.get("references") or [] if ref.get("refType") == "CHILD_OF"]
    service = str((processes.get(str(span.get("processID"))) or {}).get("serviceName") or "")
    logs = [
        " ".join(f"{field.get('key')}={_text(field.get('value'))}" for field in log.get("fields") or [])
        for log in span.get("logs") or []
    ]
    traced = TracedSpan(
        str(span["spanID"]),
        parents[0] if parents else "",
        service,
        str(span.get("operationName") or ""),
        tags.get("span.kind", "internal"),
        tags,
    )
    failed = tags.get("error") == "true" or tags.get("otel.status_code") == "ERROR"
    start, duration = int(span.get("startTime") or 0), int(span.get("duration") or 0)
    return TimedSpan(traced, start, duration, failed, tags.get("otel.status_description", ""), logs)


def _text(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def trace_row(identity: str, spans: Sequence[TimedSpan]) -> dict[str, Any]:
    """One line for the list of traces."""
    root = min(spans, key=lambda one: (bool(one.span.parent), one.start))
    end = max(one.start + one.duration for one in spans)
    return {
        "id": identity,
        "start": root.start / 1e6,
        "milliseconds": (end - root.start) / 1e3,
        "service": root.span.service,
        "operation": root.span.name,
        "spans": len(spans),
        "failed": sum(one.failed for one in spans),
        "services": sorted({one.span.service for one in spans}),
    }


def waterfall(identity: str, spans: Sequence[TimedSpan]) -> dict[str, Any]:
    """The spans of a trace in the order of a tree, with depth and offset."""
    children: dict[str, list[TimedSpan]] = {}
    known = {one.span.id for one in spans}
    for one in sorted(spans, key=lambda one: one.start):
        parent = one.span.parent if one.span.parent in known and one.span.parent != one.span.id else ""
        children.setdefault(parent, []).append(one)
    begin = min((one.start for one in spans), default=0)
    rows: list[dict[str, Any]] = []
    stack = [(one, 0) for one in reversed(children.get("", []))]
    seen: set[str] = set()
    while stack:
        one, depth = stack.pop()
        if one.span.id in seen:
            continue
        seen.add(one.span.id)
        rows.append(
            {
                "id": one.span.id,
                "depth": min(depth, _DEEPEST),
                "service": one.span.service,
                "operation": one.span.name,
                "kind": one.span.kind,
                "offset": (one.start - begin) / 1e3,
                "milliseconds": one.duration / 1e3,
                "failed": one.failed,
                "message": one.message,
                "tags": one.span.tags,
                "logs": one.logs,
            }
        )
        stack += [(child, depth + 1) for child in reversed(children.get(one.span.id, []))]
    length = max((one.start + one.duration for one in spans), default=0) - begin
    return {"id": identity, "start": begin / 1e6, "milliseconds": length / 1e3, "spans": rows}
