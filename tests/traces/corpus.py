"""A few traces, and questions about them whose answers were recorded from a real Jaeger (all-in-one 1.57).

`python -m tests.traces.corpus QUERY_URL OTLP_URL | gzip -9 -n > tests/traces/golden/jaeger.json.gz` sends the traces to
one that was just started and records its responses.
"""

from __future__ import annotations

import json
import sys
from time import sleep
from typing import Any

import httpx

from srearena.cluster.embedded.clock import Clock
from srearena.cluster.embedded.telemetry.traces import otlp
from srearena.cluster.embedded.telemetry.traces.jaeger_api import JaegerApi
from srearena.cluster.embedded.telemetry.traces.store import SpanStore
from srearena.cluster.embedded.traffic.spans import Resource, Span, exception

NOW = 1_800_000_000.0
FRONTEND = Resource("frontend", (("k8s.pod.name", "frontend-1"), ("k8s.namespace.name", "shop")))
SCOPE = "otelhttp"
CART = Resource("cart", (("k8s.pod.name", "cart-1"),))
WORKER = Resource("worker", (("k8s.pod.name", "worker-1"),))
LONG_ID = 0xABCDEF0123456789 << 64 | 1


def small_shop() -> JaegerApi:
    store = SpanStore()
    store.add(
        [
            Span(
                LONG_ID,
                1,
                0,
                FRONTEND,
                "GET /cart",
                "server",
                NOW - 60,
                0.25,
                attributes=(("http.status_code", 500),),
                scope=SCOPE,
            ),
            Span(LONG_ID, 2, 1, FRONTEND, "Cart/Get", "client", NOW - 59.99, 0.2, "error", "UNAVAILABLE", scope=SCOPE),
            Span(
                LONG_ID,
                3,
                2,
                CART,
                "Cart/Get",
                "server",
                NOW - 59.98,
                0.1,
                "error",
                "boom",
                (("rpc.system", "grpc"), ("retry", False), ("ratio", 0.5)),
                (exception(NOW - 59.9, "RedisError", "connection refused"),),
            ),
        ]
    )
    store.add([Span(7, 4, 0, FRONTEND, "GET /", "server", NOW - 30, 0.01, "ok", scope=SCOPE)])
    store.add(
        [
            Span(8, 5, 0, CART, "orders publish", "producer", NOW - 20, 0.01),
            Span(8, 6, 0, WORKER, "orders process", "consumer", NOW - 19, 0.5, links=((8, 5),)),
        ]
    )
    return JaegerApi(store, Clock(NOW))


LONG = "abcdef01234567890000000000000001"
WINDOW = {"start": str(round((NOW - 3600) * 1e6)), "end": str(round((NOW + 10) * 1e6))}
V3 = {"query.start_time_min": "2027-01-01T00:00:00Z", "query.start_time_max": "2027-02-01T00:00:00Z"}

Question = tuple[str, dict[str, Any]]


def questions() -> list[Question]:
    searches: list[dict[str, Any]] = [
        {"service": "frontend"},
        {"service": "cart"},
        {"service": "worker"},
        {"service": "nobody"},
        {"service": "frontend", "operation": "GET /cart"},
        {"service": "frontend", "tags": '{"error":"true"}'},
        {"service": "frontend", "tags": '{"error":"true","http.status_code":"500"}'},
        {"service": "frontend", "tag": "http.status_code:500"},
        {"service": "cart", "tags": '{"exception.type":"RedisError"}'},
        {"service": "cart", "tags": '{"k8s.pod.name":"cart-1"}'},
        {"service": "cart", "tags": '{"ratio":"0.5"}'},
        {"service": "cart", "tags": '{"span.kind":"producer"}'},
        {"service": "frontend", "tags": '{"otel.library.name":"otelhttp"}'},
        {"service": "frontend", "minDuration": "100ms"},
        {"service": "frontend", "maxDuration": "100ms"},
        {"service": "frontend", "limit": "1"},
        {"service": "frontend", "limit": "0"},
    ]
    mistakes: list[dict[str, Any]] = [
        {},
        {"service": "a", "start": "x"},
        {"service": "a", "end": "1.5"},
        {"service": "a", "limit": "1e3"},
        {"service": "a", "limit": "99999999999999999999"},
        {"service": "a", "limit": "-1"},
        {"service": "a", "minDuration": "soon"},
        {"service": "a", "minDuration": "2s", "maxDuration": "1s"},
        {"service": "a", "tag": "x"},
        {"service": "a", "tags": "x"},
        {"service": "a", "tags": "[1]"},
        {"service": "a", "tags": '{"a":1}'},
        {"service": "a", "tags": '{"a":{}}'},
        {"service": "a", "tags": '{"a"'},
        {"service": "a", "tags": "null"},
        {"traceID": ["zz"]},
        {"traceID": ["7", "99"]},
    ]
    return [
        ("/api/services", {}),
        ("/api/services/frontend/operations", {}),
        ("/api/services/nobody/operations", {}),
        ("/api/operations", {"service": "frontend"}),
        ("/api/operations", {"service": "frontend", "spanKind": "client"}),
        ("/api/operations", {}),
        *(("/api/traces", {**search, **WINDOW}) for search in searches),
        *(("/api/traces", mistake) for mistake in mistakes),
        *((f"/api/traces/{text}", {}) for text in (LONG, "7", "1234", "xyz", "a" * 33)),
        ("/api/dependencies", {"endTs": str(round((NOW + 10) * 1000)), "lookback": "3600000"}),
        ("/api/dependencies", {"endTs": str(round((NOW + 10) * 1000)), "lookback": "25000"}),
        ("/api/dependencies", {"endTs": "x"}),
        ("/api/dependencies", {"lookback": "x"}),
        ("/api/v3/services", {}),
        ("/api/v3/operations", {"service": "cart"}),
        ("/api/v3/operations", {}),
        *((f"/api/v3/traces/{text}", {}) for text in ("7", "1", "xyz")),
        ("/api/v3/traces", {"query.service_name": "frontend", "query.operation_name": "GET /", **V3}),
        ("/api/v3/traces", {"query.service_name": "nobody", **V3}),
        ("/api/v3/traces", {}),
        ("/api/v3/traces", {"query.service_name": "worker", **V3, "query.start_time_min": "x"}),
    ]


def recorded(query: str, collector: str) -> list[dict[str, Any]]:
    spans = [span for _, trace in small_shop().store.latest_first() for span in trace.spans]
    httpx.post(f"{collector}/v1/traces", json=otlp.export(spans)).raise_for_status()
    sleep(1)
    answers = []
    for path, params in questions():
        answer = httpx.get(f"{query}{path}", params=params)
        answers.append({"path": path, "params": params, "status": answer.status_code, "body": answer.json()})
    return answers


if __name__ == "__main__":
    json.dump(recorded(*sys.argv[1:]), sys.stdout)
