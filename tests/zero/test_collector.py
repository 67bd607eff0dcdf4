"""The collector: stores every request of a CLI, on a port of its own."""

from __future__ import annotations

import base64
import gzip
import http.client
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from zero.collector import MAX_BODY, collect
from zero.errors import RequestError

LOGS = {
    "resourceLogs": [
        {
            "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "codex"}}]},
            "scopeLogs": [
                {
                    "logRecords": [
                        {
                            "timeUnixNano": "1",
                            "attributes": [
                                {"key": "event.name", "value": {"stringValue": "codex.sse_event"}},
                                {"key": "input_token_count", "value": {"intValue": "12"}},
                            ],
                        }
                    ]
                }
            ],
        }
    ]
}


def post(port: int, body: Any, kind: str = "application/json", **headers: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("POST", "/v1/logs", body, {"content-type": kind, **headers})
    status = connection.getresponse().status
    connection.close()
    return status


def test_every_request_is_a_line(tmp_path: Path) -> None:
    file = tmp_path / "traces" / "traces.jsonl"
    seen: list[dict[str, Any]] = []
    whole = json.dumps(LOGS).encode()
    with collect(file, watch=seen.append) as port:
        assert post(port, whole) == 200
        assert post(port, gzip.compress(whole), **{"content-encoding": "gzip"}) == 200
        assert post(port, iter([whole[:10], whole[10:]])) == 200, "in chunks, as Node's exporters send"
        assert post(port, b"\x00\x01", "application/x-protobuf") == 200
        assert post(port, b"{", "application/json") == 200
        for packed, status in (
            (b"no gzip", 400),
            (gzip.compress(whole)[:-9], 400),
            (gzip.compress(bytes(MAX_BODY + 1), 1), 413),
        ):
            assert post(port, packed, **{"content-encoding": "gzip"}) == status
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line.get("data") for line in lines] == [LOGS, LOGS, LOGS, None, None]
    assert base64.b64decode(lines[3]["data_base64"]) == b"\x00\x01"
    assert {line["path"] for line in lines} == {"/v1/logs"}
    assert seen == [{"event.name": "codex.sse_event", "input_token_count": "12"}] * 3


def test_a_port_in_use_is_left_to_its_owner(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as owner:
        port = owner.getsockname()[1]
        with pytest.raises(RequestError, match=f"--otel-port {port}"), collect(tmp_path / "t.jsonl", port):
            pass
        owner.settimeout(5)
        with socket.create_connection(("127.0.0.1", port)):
            owner.accept()[0].close()


def test_it_is_reached_from_this_machine_only(tmp_path: Path) -> None:
    with collect(tmp_path / "t.jsonl") as port, open("/proc/net/tcp") as table:
        listening = [line.split()[1] for line in table if line.split()[3] == "0A"]
    assert f"0100007F:{port:04X}" in listening
