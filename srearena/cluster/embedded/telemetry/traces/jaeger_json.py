"""Traces in the JSON of Jaeger's query service (1.57), converted from OpenTelemetry spans.

Kind and status become tags, the instrumentation scope one of the process; events become logs; the processes of a
trace are numbered in the order in which their spans appear.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from srearena.cluster.embedded.telemetry.traces.store import Trace
from srearena.cluster.embedded.traffic.spans import Attributes, Resource, Span, Value

Json = dict[str, Any]


def trace_id_text(trace_id: int) -> str:
    """Return sixteen hexadecimal digits where they suffice, else thirty-two."""
    return f"{trace_id:016x}" if trace_id < 1 << 64 else f"{trace_id:032x}"


def span_id_text(span_id: int) -> str:
    return f"{span_id:016x}"


def micros(seconds: float) -> int:
    return round(seconds * 1e6)


def tags(span: Span) -> Iterator[tuple[str, Value]]:
    """Yield the tags of a span, by which it can be searched."""
    yield from span.attributes
    yield "span.kind", span.kind
    if span.status == "error":
        yield "otel.status_code", "ERROR"
        yield "error", True
        if span.message:
            yield "otel.status_description", span.message
    elif span.status == "ok":
        yield "otel.status_code", "OK"
    yield "internal.span.format", "otlp"


def process_tags(span: Span) -> Iterator[tuple[str, Value]]:
    yield from span.resource.attributes
    if span.scope:
        yield "otel.library.name", span.scope


def as_text(value: Value) -> str:
    """Return a tag's value as searches write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)


def trace_json(trace: Trace) -> Json:
    numbers: dict[tuple[Resource, str], str] = {}
    processes: dict[str, Json] = {}
    spans = []
    trace_id = trace_id_text(trace.trace_id)
    for span in sorted(trace.spans, key=lambda span: (span.start, -span.duration)):
        recorder = (span.resource, span.scope)
        process = numbers.get(recorder)
        if process is None:
            process = numbers[recorder] = f"p{len(numbers) + 1}"
            processes[process] = _process(span)
        spans.append(_span(span, trace_id, process))
    return {"traceID": trace_id, "spans": spans, "processes": processes, "warnings": None}


def _process(span: Span) -> Json:
    return {"serviceName": span.service, "tags": _pairs(sorted(process_tags(span)))}


def _span(span: Span, trace_id: str, process: str) -> Json:
    references = []
    if span.parent_id:
        references.append({"refType": "CHILD_OF", "traceID": trace_id, "spanID": span_id_text(span.parent_id)})
    for linked_trace, linked_span in span.links:
        references.append(
            {
                "refType": "FOLLOWS_FROM",
                "traceID": trace_id_text(linked_trace),
                "spanID": span_id_text(linked_span),
            }
        )
    return {
        "traceID": trace_id,
        "spanID": span_id_text(span.span_id),
        "operationName": span.name,
        "references": references,
        "startTime": micros(span.start),
        "duration": micros(span.duration),
        "tags": _pairs(tuple(tags(span))),
        "logs": [
            {
                "timestamp": micros(event.time),
                "fields": _pairs(sorted((("event", event.name), *event.attributes))),
            }
            for event in span.events
        ],
        "processID": process,
        "warnings": None,
    }


def _pairs(attributes: Attributes | list[tuple[str, Value]]) -> list[Json]:
    return [{"key": key, "type": _type(value), "value": value} for key, value in attributes]


_TYPES = {str: "string", bool: "bool", int: "int64", float: "float64"}


def _type(value: Value) -> str:
    found = _TYPES.get(type(value))
    return found or ("float64" if isinstance(value, float) else "string")  # numpy's floats are floats of its own type
