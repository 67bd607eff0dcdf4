"""The web server in front of the telemetry APIs: compression, other origins, and WebSockets."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from srearena.cluster.embedded.clock import Clock
from srearena.cluster.embedded.telemetry.logs.loki_api import LokiApi
from srearena.cluster.embedded.telemetry.logs.store import LogStore
from srearena.cluster.embedded.telemetry.metrics.api import PrometheusApi
from srearena.cluster.embedded.telemetry.server import TelemetryServer
from srearena.coroutines import serve_until_stopped
from tests.metrics.test_api import NOW
from tests.metrics.test_api import Clock as StoppedClock
from tests.promql.samples import dataset, loaded

TOKEN = "secret"
HEADERS = {"authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def logs() -> LogStore:
    return LogStore()


@pytest.fixture(scope="module")
def server(logs: LogStore) -> Iterator[TelemetryServer]:
    apis = {
        "prometheus": PrometheusApi(loaded(dataset()), StoppedClock()),
        "loki": LokiApi(logs, Clock(NOW)),
    }
    found = TelemetryServer(apis, TOKEN)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=serve_until_stopped, args=(loop,))
    thread.start()
    asyncio.run_coroutine_threadsafe(found.start(), loop).result()
    yield found
    asyncio.run_coroutine_threadsafe(found.stop(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()


def fetch(url: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    request = urllib.request.Request(url, method=method, headers={k.replace("_", "-"): v for k, v in headers.items()})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.status, {name.lower(): value for name, value in answer.headers.items()}, answer.read()


def test_large_responses_are_compressed_where_the_client_accepts_it(server: TelemetryServer) -> None:
    url = f"{server.url('prometheus')}/api/v1/query?query=http_requests_total"
    _, plain_headers, plain = fetch(url, **HEADERS)
    _, headers, body = fetch(url, **HEADERS, accept_encoding="gzip, deflate")
    assert "content-encoding" not in plain_headers
    assert headers["content-encoding"] == "gzip" and "Accept-Encoding" in headers["vary"]
    assert len(body) < len(plain) / 2 and gzip.decompress(body) == plain


def test_scripts_of_other_origins_may_query_prometheus(server: TelemetryServer) -> None:
    url = f"{server.url('prometheus')}/api/v1/query?query=1"
    _, headers, _ = fetch(url, **HEADERS, origin="https://grafana.example")
    assert headers["access-control-allow-origin"] == "*" and headers["vary"] == "Origin"
    assert "access-control-allow-origin" not in fetch(url, **HEADERS)[1]
    status, headers, _ = fetch(url, "OPTIONS", origin="https://grafana.example")
    assert status == 204 and "Authorization" in headers["access-control-allow-headers"]
    assert "access-control-allow-origin" not in fetch(f"{server.url('loki')}/ready", **HEADERS, origin="https://x")[1]


def test_logs_are_followed_through_a_websocket(server: TelemetryServer, logs: LogStore) -> None:
    stream = logs.stream({"app": "cart"})
    stream.append(NOW - 1, b"first")
    url = f"{server.url('loki').replace('http', 'ws')}/loki/api/v1/tail?query=%7Bapp%3D%22cart%22%7D"
    with connect(url, additional_headers=HEADERS, open_timeout=30) as socket:
        assert json.loads(socket.recv(timeout=30))["streams"][0]["values"][0][1] == "first"
        stream.append(NOW, b"second")
        assert json.loads(socket.recv(timeout=30))["streams"][0]["values"][0][1] == "second"
    for headers in ({}, HEADERS):
        wrong = url if not headers else url.replace("tail", "query")
        with pytest.raises(InvalidStatus):
            connect(wrong, additional_headers=headers, open_timeout=30)
    with pytest.raises(urllib.error.HTTPError, match="400"):
        fetch(url.replace("ws", "http", 1), **HEADERS)
