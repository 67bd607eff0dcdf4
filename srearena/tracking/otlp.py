"""Export of spans as OTLP over HTTP, to the endpoint of OpenTelemetry's variables (OTEL_EXPORTER_OTLP_ENDPOINT ...)."""

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
    """The endpoint for traces; empty where none is configured."""
    traces = variables.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "")
    base = variables.get("OTEL_EXPORTER_OTLP_ENDPOINT", "")
    return traces or (f"{base.rstrip('/')}/v1/traces" if base else "")


def document(spans: Sequence[Span], session: str, service: str = "srearena") -> dict[str, Any]:
    """Convert spans to OTLP JSON."""
    records = [
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
    scoped = [{"scope": {"name": "srearena.tracking"}, "spans": records}]
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
    """Send the spans of a session where an endpoint is configured; returns an error as one line, or ""."""
    url = endpoint(variables)
    if not url:
        return ""
    body = document(spans_of(list(entries), session, facts), session, variables.get("OTEL_SERVICE_NAME") or "srearena")
    headers = {"content-type": "application/json", **_headers(variables)}
    try:
        response = urllib3.request("POST", url, body=json.dumps(body), headers=headers, timeout=_TIMEOUT, retries=False)
    except urllib3.exceptions.HTTPError as problem:
        return f"the spans of {session} could not be sent to {url}: {str(problem).splitlines()[0]}"
    if response.status >= 400:
        return f"the spans of {session} could not be sent to {url}: it answered {response.status}"
    return ""


def _headers(variables: Mapping[str, str]) -> dict[str, str]:
    setting = variables.get("OTEL_EXPORTER_OTLP_TRACES_HEADERS") or variables.get("OTEL_EXPORTER_OTLP_HEADERS") or ""
    pairs = (pair.partition("=") for pair in setting.split(",") if "=" in pair)
    return {key.strip(): unquote(value.strip()) for key, _, value in pairs}


def export_result(result: Mapping[str, Any], session_file: Path, variables: Mapping[str, str]) -> str:
    """Send the spans of a finished trial, from its session file."""
    if not endpoint(variables) or not session_file.is_file():
        return ""
    entries = [json.loads(line) for line in session_file.read_text(encoding="utf-8").splitlines() if line]
    facts = {key: result[key] for key in ("problem", "agent", "outcome", "seed", "trial", "run") if key in result}
    return export(entries, str(result.get("session", "")), facts, variables)
