"""Traces as OTLP JSON, the format of OpenTelemetry's exporters and of Jaeger's third API."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from srearena.cluster.embedded.traffic.spans import Attributes, Resource, Span, SpanEvent, Value

Json = dict[str, Any]

KINDS = {"internal": 1, "server": 2, "client": 3, "producer": 4, "consumer": 5}
STATUSES = {"unset": 0, "ok": 1, "error": 2}


def export(spans: Iterable[Span]) -> Json:
    """Return an ExportTraceServiceRequest: spans grouped by the process that recorded them."""
    by_resource: dict[Resource, list[Span]] = {}
    for span in spans:
        by_resource.setdefault(span.resource, []).append(span)
    return {"resourceSpans": [_resource_spans(resource, group) for resource, group in by_resource.items()]}


def _resource_spans(resource: Resource, spans: list[Span]) -> Json:
    attributes: Attributes = (("service.name", resource.service), *resource.attributes)
    by_scope: dict[str, list[Span]] = {}
    for span in spans:
        by_scope.setdefault(span.scope, []).append(span)
    return {
        "resource": {"attributes": _pairs(attributes)},
        "scopeSpans": [
            {"scope": {"name": scope} if scope else {}, "spans": [_span(span) for span in group]}
            for scope, group in by_scope.items()
        ],
    }


def _span(span: Span) -> Json:
    answer: Json = {
        "traceId": f"{span.trace_id:032x}",
        "spanId": f"{span.span_id:016x}",
        "parentSpanId": f"{span.parent_id:016x}" if span.parent_id else "",
        "name": span.name,
        "kind": KINDS[span.kind],
        "startTimeUnixNano": _nanos(span.start),
        "endTimeUnixNano": _nanos(span.end),
        "attributes": _pairs(span.attributes),
    }
    if span.events:
        answer["events"] = [_event(event) for event in span.events]
    if span.links:
        answer["links"] = [{"traceId": f"{trace:032x}", "spanId": f"{linked:016x}"} for trace, linked in span.links]
    answer["status"] = {"code": STATUSES[span.status]} if span.status != "unset" else {}
    if span.message:
        answer["status"]["message"] = span.message
    return answer


def _event(event: SpanEvent) -> Json:
    return {
        "timeUnixNano": _nanos(event.time),
        "name": event.name,
        "attributes": _pairs(event.attributes),
    }


def _nanos(seconds: float) -> str:
    """Return nanoseconds as text, as OTLP JSON requires; a double has only microsecond precision."""
    return str(round(seconds * 1e6) * 1000)


def _pairs(attributes: Attributes) -> list[Json]:
    return [{"key": key, "value": _value(value)} for key, value in attributes]


def _value(value: Value) -> Json:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"stringValue": value}
