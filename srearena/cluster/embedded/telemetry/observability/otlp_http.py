"""The OTLP receiver over HTTP (port 4318), as the Collector and Jaeger embed it.

JSON is read and stored. A body in protocol buffers is refused as malformed unless it is empty, since this receiver
has no schema for it; the exporters of the applications use gRPC, which the traffic engine accounts for.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from srearena.cluster.embedded.durations import format_micro_time
from srearena.cluster.embedded.machine.networking.http_message import HttpRequest, HttpResponse
from srearena.cluster.embedded.telemetry.observability.receivers import SpanReceiver, SpanReceivers
from srearena.cluster.embedded.telemetry.observability.telemetry_program import go_not_found, json_body
from srearena.cluster.embedded.telemetry.traces.otlp_reader import (
    MalformedExport,
    attributes_of,
    spans_of,
    value_of,
)
from srearena.cluster.embedded.telemetry.traces.store import SpanStore

_JSON = "application/json"
_PROTOBUF = "application/x-protobuf"
_MOST_PUSHED = 10_000
"""Chosen: bounds what a client outside can add to the memory of a cluster."""


class OtlpHttp:
    """The receiver of one process, with the signals that its pipelines have."""

    def __init__(
        self, receivers: SpanReceivers, receiver: SpanReceiver, store: SpanStore, signals: Collection[str]
    ) -> None:
        self._receivers = receivers
        self._receiver = receiver
        self._store = store
        self._paths = {f"/v1/{signal}": signal for signal in signals}

    def answer(self, request: HttpRequest) -> HttpResponse:
        signal = self._paths.get(request.path)
        if signal is None:
            return go_not_found()
        if request.method != "POST":
            return HttpResponse(
                405, b"405 method not allowed, supported: [POST]", {"Content-Type": "text/plain", "Allow": "POST"}
            )
        kind = request.header("Content-Type").partition(";")[0].strip().lower()
        if kind not in (_JSON, _PROTOBUF):
            text = b"415 unsupported media type, supported: [application/json, application/x-protobuf]"
            return HttpResponse(415, text, {"Content-Type": "text/plain"})
        if kind == _PROTOBUF:
            if request.body:
                # google.rpc.Status in protocol buffers: code 3 and a message.
                message = b"proto: cannot parse invalid wire-format data"
                return HttpResponse(400, b"\x08\x03\x12" + bytes([len(message)]) + message, {"Content-Type": _PROTOBUF})
            return HttpResponse(200, b"", {"Content-Type": _PROTOBUF})
        try:
            document = json.loads(request.body)
            self._take(signal, document)
        except ValueError as problem:
            return json_body({"code": 3, "message": str(problem)}, 400)
        self._receiver.requests[signal] += 1
        return json_body({"partialSuccess": {}})

    def _take(self, signal: str, document: Any) -> None:
        if signal == "traces":
            self._take_spans(document)
        elif signal == "logs":
            self._take_logs(document)
        else:
            if not isinstance(document, dict):
                raise MalformedExport("ReadObject: expect { or , or } or n")
            self._receiver.records[signal] += _count_points(document)

    def _take_spans(self, document: Any) -> None:
        pushed = self._receivers.pushed_traces
        for span in spans_of(document):
            if len(pushed) >= _MOST_PUSHED:
                del pushed[next(iter(pushed))]
            pushed[span.trace_id] = self._receiver.namespace
            self._store.add([span])
            reached = [self._receiver]
            if self._receiver.collects:
                backends = self._receivers.backends(self._receiver.namespace)
                reached += backends
                self._receiver.forwarded += bool(backends)
                self._receiver.failed += not backends
            for receiver in reached:
                receiver.accepted[span.service] += 1

    def _take_logs(self, document: Any) -> None:
        if not isinstance(document, dict):
            raise MalformedExport("ReadObject: expect { or , or } or n")
        stored = self._receivers.pushed_logs.setdefault(self._receiver.namespace, [])
        for group in document.get("resourceLogs") or ():
            resource = dict(attributes_of((group.get("resource") or {}).get("attributes")))
            for scoped in group.get("scopeLogs") or ():
                for record in scoped.get("logRecords") or ():
                    self._receiver.records["logs"] += 1
                    stored.append(_document(record, resource, str((scoped.get("scope") or {}).get("name", ""))))
        del stored[:-_MOST_PUSHED]


def _document(record: dict[str, Any], resource: dict[str, Any], scope: str) -> dict[str, Any]:
    moment = int(record.get("timeUnixNano") or record.get("observedTimeUnixNano") or 0) / 1e9
    return {
        "@timestamp": format_micro_time(moment),
        "attributes": dict(attributes_of(record.get("attributes"))),
        "body": value_of(record.get("body") or {}),
        "instrumentationScope": {"name": scope},
        "observedTimestamp": format_micro_time(int(record.get("observedTimeUnixNano") or 0) / 1e9 or moment),
        "resource": resource,
        "severity": {"number": int(record.get("severityNumber") or 0), "text": str(record.get("severityText", ""))},
        "spanId": str(record.get("spanId", "")),
        "traceId": str(record.get("traceId", "")),
    }


def _count_points(document: dict[str, Any]) -> int:
    return sum(
        len((metric.get(kind) or {}).get("dataPoints") or ())
        for group in document.get("resourceMetrics") or ()
        for scoped in group.get("scopeMetrics") or ()
        for metric in scoped.get("metrics") or ()
        for kind in ("gauge", "sum", "histogram", "exponentialHistogram", "summary")
    )
