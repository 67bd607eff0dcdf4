"""Jaeger's query API, used as its user interface does."""

from __future__ import annotations

import json
from typing import Any

from srearena.cluster.embedded.telemetry.traces import otlp
from srearena.cluster.embedded.telemetry.traces.jaeger_api import JaegerApi
from tests.traces.corpus import LONG, LONG_ID, NOW, V3, small_shop


def ask(api: JaegerApi, path: str, status: int = 200, **params: str | list[str]) -> Any:
    values = {name: [value] if isinstance(value, str) else value for name, value in params.items()}
    code, headers, body = api.handle("GET", path, values)
    assert code == status, body
    assert headers["content-type"].startswith("application/json")
    return json.loads(body)


def found(api: JaegerApi, **params: str) -> list[str]:
    return [trace["traceID"] for trace in ask(api, "/api/traces", **params)["data"]]


def test_services_and_operations() -> None:
    api = small_shop()
    assert ask(api, "/api/services") == {
        "data": ["cart", "frontend", "worker"],
        "total": 3,
        "limit": 0,
        "offset": 0,
        "errors": None,
    }
    assert ask(api, "/api/services/frontend/operations")["data"] == ["Cart/Get", "GET /", "GET /cart"]
    assert ask(api, "/api/services/nobody/operations")["data"] is None
    assert ask(api, "/api/operations", service="frontend", spanKind="client")["data"] == [
        {"name": "Cart/Get", "spanKind": "client"}
    ]
    refused = ask(api, "/api/operations", 400)
    assert refused["errors"] == [{"code": 400, "msg": "parameter 'service' is required"}]


def test_a_trace_by_its_id() -> None:
    (trace,) = ask(small_shop(), f"/api/traces/{LONG}")["data"]
    root, client, server = trace["spans"]
    assert trace["traceID"] == root["traceID"] == LONG
    assert root["references"] == []
    assert client["references"] == [{"refType": "CHILD_OF", "traceID": LONG, "spanID": "0000000000000001"}]
    assert (root["startTime"], root["duration"]) == (round((NOW - 60) * 1e6), 250_000)
    assert trace["processes"][root["processID"]]["serviceName"] == "frontend"
    assert {"key": "k8s.pod.name", "type": "string", "value": "cart-1"} in trace["processes"][server["processID"]][
        "tags"
    ]
    assert {"key": "http.status_code", "type": "int64", "value": 500} in root["tags"]
    assert {"key": "otel.library.name", "type": "string", "value": "otelhttp"} in trace["processes"]["p1"]["tags"]
    assert {"key": "retry", "type": "bool", "value": False} in server["tags"]
    assert {"key": "ratio", "type": "float64", "value": 0.5} in server["tags"]
    assert {"key": "error", "type": "bool", "value": True} in server["tags"]
    assert {"key": "otel.status_description", "type": "string", "value": "boom"} in server["tags"]
    assert {"key": "span.kind", "type": "string", "value": "server"} in server["tags"]
    (log,) = server["logs"]
    assert log["fields"][0] == {"key": "event", "type": "string", "value": "exception"}
    assert {"key": "exception.message", "type": "string", "value": "connection refused"} in log["fields"]


def test_searches() -> None:
    api = small_shop()
    assert found(api, service="frontend") == ["0000000000000007", LONG]
    assert found(api, service="frontend", limit="1") == ["0000000000000007"]
    assert found(api, service="frontend", operation="GET /cart") == [LONG]
    assert found(api, service="frontend", tags='{"error":"true"}') == [LONG]
    assert found(api, service="frontend", tag="http.status_code:500") == [LONG]
    assert found(api, service="frontend", tags='{"k8s.pod.name":"frontend-1","http.status_code":"500"}') == [LONG]
    assert found(api, service="frontend", tags='{"http.status_code":"404"}') == []
    assert found(api, service="cart", tags='{"exception.type":"RedisError"}') == [LONG]
    assert found(api, service="frontend", minDuration="100ms") == [LONG]
    assert found(api, service="frontend", maxDuration="100ms") == ["0000000000000007"]
    assert found(api, service="frontend", start=str(round((NOW - 40) * 1e6))) == ["0000000000000007"]
    assert found(api, service="frontend", end=str(round((NOW - 40) * 1e6))) == [LONG]
    assert found(api, service="nobody") == []


def test_error_and_status_must_be_on_one_span() -> None:
    """The erring client span has no status code, and the span with the code has no error of its own."""
    assert found(small_shop(), service="frontend", tags='{"error":"true","http.status_code":"500"}') == []


def test_several_traces_by_id_say_which_are_missing() -> None:
    answer = ask(small_shop(), "/api/traces", traceID=["7", "99"])
    assert [trace["traceID"] for trace in answer["data"]] == ["0000000000000007"]
    assert answer["errors"] == [{"msg": "trace not found", "traceID": "0000000000000099"}]


def test_bad_and_unknown_ids() -> None:
    api = small_shop()
    assert ask(api, "/api/traces/1234", 404)["errors"] == [{"code": 404, "msg": "trace not found"}]
    assert "invalid syntax" in ask(api, "/api/traces/xyz", 400)["errors"][0]["msg"]
    assert "longer than 32" in ask(api, "/api/traces/" + "a" * 33, 400)["errors"][0]["msg"]


def test_dependencies_count_calls_between_services() -> None:
    api = small_shop()
    links = ask(api, "/api/dependencies", endTs=str(int(NOW * 1000)), lookback="3600000")["data"]
    assert links == [
        {"parent": "cart", "child": "worker", "callCount": 1},
        {"parent": "frontend", "child": "cart", "callCount": 1},
    ]
    assert ask(api, "/api/dependencies", endTs=str(int(NOW * 1000)), lookback="25000")["data"] == [links[0]]


def test_the_third_api_speaks_otlp() -> None:
    api = small_shop()
    assert ask(api, "/api/v3/services") == {"services": ["cart", "frontend", "worker"]}
    assert ask(api, f"/api/v3/traces/{LONG}")["result"] == json.loads(
        json.dumps(otlp.export(api.store.get(LONG_ID).spans))  # type: ignore[union-attr]
    )
    assert ask(api, "/api/v3/traces/1", 404)["error"]["httpCode"] == 404
    found = ask(api, "/api/v3/traces", **{"query.service_name": "worker", **V3})["result"]
    spans = [span for group in found["resourceSpans"] for span in group["scopeSpans"][0]["spans"]]
    assert {span["name"] for span in spans} == {"orders publish", "orders process"}


def test_otlp_carries_everything() -> None:
    api = small_shop()
    trace = api.store.get(LONG_ID)
    assert trace is not None
    exported = otlp.export(trace.spans)
    frontend, cart = exported["resourceSpans"]
    assert {"key": "service.name", "value": {"stringValue": "cart"}} in cart["resource"]["attributes"]
    (span,) = cart["scopeSpans"][0]["spans"]
    assert span["traceId"] == LONG
    assert (span["spanId"], span["parentSpanId"]) == ("0000000000000003", "0000000000000002")
    assert (span["kind"], span["status"]) == (2, {"code": 2, "message": "boom"})
    assert int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"]) == 100_000_000
    assert {"key": "retry", "value": {"boolValue": False}} in span["attributes"]
    assert span["events"][0]["name"] == "exception"
    assert frontend["scopeSpans"][0]["scope"] == {"name": "otelhttp"}
