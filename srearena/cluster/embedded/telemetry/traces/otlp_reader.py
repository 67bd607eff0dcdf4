"""Reader of traces in OTLP JSON, as exporters send them to a collector."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args

from srearena.cluster.embedded.telemetry.traces.otlp import KINDS, STATUSES, Json
from srearena.cluster.embedded.traffic.spans import Attributes, Kind, Resource, Span, SpanEvent, Status, Value

_KIND_NAMES: dict[int, Kind] = {KINDS[kind]: kind for kind in get_args(Kind)}
_STATUS_NAMES: dict[int, Status] = {STATUSES[status]: status for status in get_args(Status)}


class MalformedExport(ValueError):
    """The document is no export request; the text names the field."""


def attributes_of(pairs: Any) -> Attributes:
    """Read key-value pairs; ValueError where they are none."""
    return tuple((str(pair["key"]), value_of(pair.get("value") or {})) for pair in _list(pairs, "attributes"))


def value_of(value: Any) -> Value:
    if not isinstance(value, dict):
        raise MalformedExport("value: expected an object")
    if "intValue" in value:
        return int(value["intValue"])
    for name in ("boolValue", "doubleValue", "stringValue"):
        if name in value:
            plain: Value = value[name]
            return plain
    return str(value) if value else ""


def spans_of(document: Any) -> list[Span]:
    """Read an ExportTraceServiceRequest; MalformedExport where it is none."""
    try:
        return list(_spans(document))
    except (KeyError, TypeError, AttributeError, ValueError) as problem:
        if isinstance(problem, MalformedExport):
            raise
        raise MalformedExport(f"cannot unmarshal export request: {problem}") from problem


def _spans(document: Any) -> Iterable[Span]:
    if not isinstance(document, dict):
        raise MalformedExport("ReadObject: expect { or , or } or n")
    for group in _list(document.get("resourceSpans"), "resourceSpans"):
        attributes = attributes_of((group.get("resource") or {}).get("attributes"))
        service = next((str(value) for key, value in attributes if key == "service.name"), "unknown_service")
        others = tuple(pair for pair in attributes if pair[0] != "service.name")
        resource = Resource(service, others)
        for scoped in _list(group.get("scopeSpans"), "scopeSpans"):
            scope = str((scoped.get("scope") or {}).get("name", ""))
            for span in _list(scoped.get("spans"), "spans"):
                yield _span(span, resource, scope)


def _span(span: Json, resource: Resource, scope: str) -> Span:
    status = span.get("status") or {}
    start, end = (int(span.get(name) or 0) / 1e9 for name in ("startTimeUnixNano", "endTimeUnixNano"))
    return Span(
        _identifier(span.get("traceId"), 32, "traceId"),
        _identifier(span.get("spanId"), 16, "spanId"),
        _identifier(span["parentSpanId"], 16, "parentSpanId") if span.get("parentSpanId") else 0,
        resource,
        str(span.get("name", "")),
        _KIND_NAMES.get(int(span.get("kind") or 1), "internal"),
        start,
        max(end - start, 0.0),
        _STATUS_NAMES.get(int(status.get("code") or 0), "unset"),
        str(status.get("message", "")),
        attributes_of(span.get("attributes")),
        tuple(
            SpanEvent(
                int(event.get("timeUnixNano") or 0) / 1e9,
                str(event.get("name", "")),
                attributes_of(event.get("attributes")),
            )
            for event in _list(span.get("events"), "events")
        ),
        tuple(
            (_identifier(link.get("traceId"), 32, "traceId"), _identifier(link.get("spanId"), 16, "spanId"))
            for link in _list(span.get("links"), "links")
        ),
        scope,
    )


def _identifier(text: Any, digits: int, name: str) -> int:
    if not isinstance(text, str) or len(text) != digits:
        raise MalformedExport(f"{name}: length must be {digits}")
    return int(text, 16)


def _list(value: Any, name: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise MalformedExport(f"{name}: expected an array")
    return value
