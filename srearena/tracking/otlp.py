"""Spans to wherever OpenTelemetry's own variables say (OTEL_EXPORTER_OTLP_ENDPOINT and the like), as OTLP over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import urllib3

from srearena.tracking.spans import Span, spans_of, trace_id

_TIMEOUT = 10.0


def endpoint(variables: Mapping[str, str]) -> str:
    """Where traces go; empty if nowhere."""
    own = variables.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "")
    base = variables.get("OTEL_EXPORTER_OTLP_ENDPOINT", "")
    return own or (f"{base.rstrip('/')}/v1/traces" if base else "")


def document(spans: Sequence[Span], session: str, service: str = "srearena") -> dict[str, Any]:
    """The spans as OTLP JSON."""
    written = [
        {
            "traceId": trace_id(session),
            "spanId": span.span_id,
            **({"parentSpanId": span.parent_id} if span.parent_id else {}),
            "name": span.name,
            "kind": 1,
            "startTimeUnixNano": str(int(span.start * 1e9)),
            "endTimeUnixNano": str(int(max(span.start, span.end) * 1e9)),
            "attributes": [{"key": key, "value": _value(value)} for key, value in span.attributes.items()],
            "status": {"code": 2 if span.failed else 0},
        }
        for span in spans
    ]
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]}
    scoped = [{"scope": {"name": "srearena.tracking"}, "spans": written}]
    return {"resourceSpans": [{"resource": resource, "scopeSpans": scoped}]}


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"stringValue": str(value)}


def export(
    entries: Iterable[Mapping[str, Any]], session: str, facts: Mapping[str, Any], variables: Mapping[str, str]
) -> str:
    """Send a record's spans, if there is somewhere to send them; what went wrong, in one line, if something did."""
    place = endpoint(variables)
    if not place:
        return ""
    sent = document(spans_of(list(entries), session, facts), session, variables.get("OTEL_SERVICE_NAME") or "srearena")
    headers = {"content-type": "application/json", **_headers(variables)}
    try:
        answer = urllib3.request("POST", place, body=json.dumps(sent), headers=headers, timeout=_TIMEOUT, retries=False)
    except urllib3.exceptions.HTTPError as problem:
        return f"the spans of {session} could not be sent to {place}: {str(problem).splitlines()[0]}"
    if answer.status >= 400:
        return f"the spans of {session} could not be sent to {place}: it answered {answer.status}"
    return ""


def _headers(variables: Mapping[str, str]) -> dict[str, str]:
    told = variables.get("OTEL_EXPORTER_OTLP_TRACES_HEADERS") or variables.get("OTEL_EXPORTER_OTLP_HEADERS") or ""
    pairs = (pair.partition("=") for pair in told.split(",") if "=" in pair)
    return {key.strip(): unquote(value.strip()) for key, _, value in pairs}


def export_result(result: Mapping[str, Any], session_file: Path, variables: Mapping[str, str]) -> str:
    """The same for a finished trial, from its record on disk."""
    if not endpoint(variables) or not session_file.is_file():
        return ""
    entries = [json.loads(line) for line in session_file.read_text(encoding="utf-8").splitlines() if line]
    facts = {key: result[key] for key in ("problem", "agent", "outcome", "seed", "trial", "run") if key in result}
    return export(entries, str(result.get("session", "")), facts, variables)
