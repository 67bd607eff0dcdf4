"""Spans and experiment tracking from a trial's record, checked with the libraries of the receivers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from srearena.tracking.otlp import document, endpoint, export
from srearena.tracking.spans import spans_of
from srearena.tracking.weights_and_biases import is_enabled, rows

COMMAND = "run scale_pod_zero_social_net --agent nothing --stages detection --run tracked".split()
SESSION = "5e55104711"


def at(seconds: int) -> str:
    return f"2026-01-05T09:00:{seconds:02d}+00:00"


RECORD: list[dict[str, Any]] = [
    {"at": at(0), "what": "stage", "name": "detection"},
    {"at": at(3), "what": "model call", "seconds": 2, "model": "m", "tokens_in": 10, "tokens_out": 2, "stop": "calls"},
    {"at": at(3), "what": "action", "step": 1, "text": "kubectl('get pods')"},
    {"at": at(4), "what": "state", "step": 1, "text": "Error: no"},
    {"at": at(5), "what": "tool call", "tool": "prometheus_query", "seconds": 0.5, "error": "bad"},
    {"at": at(6), "what": "submission", "stage": "detection", "value": "Yes"},
    {"at": at(6), "what": "stage", "name": "mitigation"},
    {"at": at(8), "what": "model call", "seconds": 1, "model": "m", "stop": "failed"},
    {"at": at(9), "what": "end of actions", "outcome": "agent error"},
    {"at": at(30), "what": "verdict", "stage": "detection", "verdict": {"passed": True}},
]


@contextmanager
def collector(status: int = 200) -> Iterator[tuple[str, list[tuple[dict[str, str], bytes]]]]:
    received: list[tuple[dict[str, str], bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            received.append(({key.lower(): value for key, value in self.headers.items()}, body))
            self.send_response(status)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", received
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_record_becomes_a_tree_of_spans() -> None:
    spans = spans_of(RECORD, SESSION, {"problem": "p"})
    names = {span.span_id: span.name for span in spans}
    tree = [(span.name, names.get(span.parent_id, ""), round(span.end - span.start, 3), span.failed) for span in spans]
    assert tree == [
        ("episode", "", 30, False),
        ("stage detection", "episode", 6, False),
        ("stage mitigation", "episode", 3, False),
        ("action", "stage detection", 1, True),
        ("model call", "stage detection", 2, False),
        ("tool prometheus_query", "stage detection", 0.5, True),
        ("model call", "stage mitigation", 1, True),
    ]
    assert spans[1].attributes["passed"] is True and len(names) == len(spans)
    assert spans == spans_of(RECORD, SESSION, {"problem": "p"})


def test_opentelemetry_itself_reads_what_is_sent() -> None:
    sent = document(spans_of(RECORD, SESSION), SESSION)
    # In OTLP's JSON ids are hexadecimal, where protobuf's own mapping would have base64.
    for span in sent["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        assert len(span["traceId"]) == 32 and len(span["spanId"]) == 16
        for key in ("traceId", "spanId", "parentSpanId"):
            if key in span:
                span[key] = b64encode(bytes.fromhex(span[key])).decode()
    read = json_format.ParseDict(sent, ExportTraceServiceRequest())
    assert len(read.resource_spans[0].scope_spans[0].spans) == 7


def test_spans_go_where_the_variables_say_and_a_failure_is_one_line() -> None:
    with collector() as (url, received):
        variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"{url}/", "OTEL_EXPORTER_OTLP_HEADERS": "x-key=a%20b"}
        assert endpoint(variables) == f"{url}/v1/traces"
        assert export(RECORD, SESSION, {}, variables) == ""
    headers, body = received[0]
    assert headers["x-key"] == "a b" and json.loads(body)["resourceSpans"]
    with collector(503) as (url, _):
        output = export(RECORD, SESSION, {}, {"OTEL_EXPORTER_OTLP_ENDPOINT": url})
    assert "could not be sent" in output and "\n" not in output
    assert "could not be sent" in export(RECORD, SESSION, {}, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"})
    assert export(RECORD, SESSION, {}, {}) == ""


@pytest.mark.parametrize(
    ("value", "expected"), [("true", True), ("TRUE", True), ("1", True), ("false", False), ("", False)]
)
def test_tracking_is_off_unless_asked_for(value: str, expected: bool) -> None:
    assert is_enabled({"USE_WANDB": value}) is expected


def test_the_summary_has_a_row_per_trial_with_its_session() -> None:
    result = {"session": "s1", "problem": "p", "outcome": "pass", "scores": {"detection": 1.0}, "usage": {"steps": 3}}
    columns, table = rows([result, {"session": "s2"}])
    assert columns[0] == "session_id" and table[0][0] == "s1" and table[1][0] == "s2"
    assert table[0][columns.index("detection_score")] == 1.0 and len({len(row) for row in (columns, *table)}) == 1


def test_a_run_is_told_to_the_real_package_offline(tmp_path: Path) -> None:
    pytest.importorskip("wandb")
    with collector() as (url, received):
        environment = {
            **os.environ,
            "HOME": str(tmp_path),
            "SREARENA_RESULTS": str(tmp_path / "results"),
            "SREARENA_SHOW_ARGUMENTS": "1",
            "OTEL_EXPORTER_OTLP_ENDPOINT": url,
        }
        (tmp_path / ".env").write_text("USE_WANDB=true\nWANDB_MODE=offline\nWANDB_SILENT=true\n")
        done = subprocess.run(
            [sys.executable, "-m", "srearena", *COMMAND],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert "W&B: " in done.stderr
    folder = tmp_path / "results" / "tracked"
    result = json.loads(next(folder.rglob("result.json")).read_text())
    (table,) = (folder / "wandb").rglob("summary_*.table.json")
    shown = json.loads(table.read_text())
    assert shown["data"][0][shown["columns"].index("session_id")] == result["session"]
    assert next((folder / "wandb").rglob("*.wandb")).stat().st_size > 0
    spans = json.loads(received[0][1])["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert {"episode", "stage detection", "action"} <= {span["name"] for span in spans}
