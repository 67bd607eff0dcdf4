"""What log explorers ask Loki for besides lines: labels, fields, patterns, volumes, formatting, following."""

from __future__ import annotations

import json
from typing import Any

import pytest

from srearena.cluster.embedded.clock import Clock
from srearena.cluster.embedded.telemetry.logs.loki_api import LokiApi
from srearena.cluster.embedded.telemetry.logs.store import LogStore

NOW = 1_700_000_000.0


@pytest.fixture
def store() -> LogStore:
    store = LogStore()
    cart = store.stream({"namespace": "shop", "app": "cart", "pod": "cart-0", "replica": "1"})
    for number in range(20):
        text = f'level=info msg="item added" user=u{number} took={number}ms size=1{number}kB ok=true ratio=0.{number}'
        cart.append(NOW - 60 + number, text.encode())
    pay = store.stream({"namespace": "shop", "app": "pay", "pod": "pay-0", "replica": "2"})
    for number in range(5):
        pay.append(NOW - 30 + number, json.dumps({"severity": "warn", "order": {"id": number}}).encode())
    return store


@pytest.fixture
def api(store: LogStore) -> LokiApi:
    return LokiApi(store, Clock(NOW))


def get(api: LokiApi, path: str, **params: str) -> Any:
    status, _, body = api.handle("GET", path, {name: [value] for name, value in params.items()})
    assert status == 200, body
    return json.loads(body)


def test_labels_that_only_number_things_are_not_detected(api: LokiApi) -> None:
    assert get(api, "/loki/api/v1/detected_labels") == {
        "detectedLabels": [
            {"label": "app", "cardinality": 2},
            {"label": "namespace", "cardinality": 1},
            {"label": "pod", "cardinality": 2},
        ]
    }


def test_fields_of_lines_are_detected_with_their_types(api: LokiApi) -> None:
    found = get(api, "/loki/api/v1/detected_fields", query='{namespace="shop"}')
    fields = {field["label"]: (field["type"], field["parsers"]) for field in found["fields"]}
    assert fields == {
        "level": ("string", ["logfmt"]),
        "msg": ("string", ["logfmt"]),
        "user": ("string", ["logfmt"]),
        "took": ("duration", ["logfmt"]),
        "size": ("bytes", ["logfmt"]),
        "ok": ("boolean", ["logfmt"]),
        "ratio": ("float", ["logfmt"]),
        "severity": ("string", ["json"]),
        "order_id": ("int", ["json"]),
    }
    assert found["limit"] == 1000
    assert len(get(api, "/loki/api/v1/detected_fields", query='{app="pay"}', limit="1")["fields"]) == 1
    values = get(api, "/loki/api/v1/detected_field/order_id/values", query='{app="pay"}')
    assert values["values"] == ["0", "1", "2", "3", "4"]


def test_lines_of_one_shape_are_one_pattern(api: LokiApi) -> None:
    (found,) = get(api, "/loki/api/v1/patterns", query='{app="cart"}', step="10")["data"]
    assert found["pattern"] == 'level=info msg="item added" user=<_> took=<_> size=<_> ok=true ratio=<_>'
    assert sum(count for _, count in found["samples"]) == 20


def test_volumes_over_time_add_up_to_the_volume(api: LokiApi) -> None:
    params = {"query": '{namespace="shop"}', "targetLabels": "app", "start": str(int(NOW) - 60), "end": str(int(NOW))}
    total = get(api, "/loki/api/v1/index/volume", **params)["data"]["result"]
    spread = get(api, "/loki/api/v1/index/volume_range", **params, step="10")["data"]
    assert spread["resultType"] == "matrix"
    sums = {row["metric"]["app"]: sum(int(size) for _, size in row["values"]) for row in spread["result"]}
    assert sums == {row["metric"]["app"]: int(row["value"][1]) for row in total}
    assert len(spread["result"][0]["values"]) > 1


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('{app="cart"}|="x"!~`y`|json|level="info"', '{app="cart"} |= "x" !~ "y" | json | level="info"'),
        ('sum(rate({app="cart"}|logfmt[5m]))by(level)', 'sum by (level)(rate({app="cart"} | logfmt[5m]))'),
        ('topk(3,count_over_time({app="cart"}[1h]offset 5m))', 'topk(3,count_over_time({app="cart"}[1h] offset 5m))'),
        (
            'quantile_over_time(0.9,{app="cart"}|logfmt|unwrap duration(took)[5m])by(user)',
            'quantile_over_time(0.9,{app="cart"} | logfmt | unwrap duration(took)[5m]) by (user)',
        ),
    ],
)
def test_queries_are_formatted(api: LokiApi, query: str, expected: str) -> None:
    assert get(api, "/loki/api/v1/format_query", query=query) == {"status": "success", "data": expected}


def test_a_long_query_gets_a_line_per_stage(api: LokiApi) -> None:
    query = (
        '{namespace="shop",app="cart"}|="a rather long text to look for"!="another rather long text"|logfmt|level="x"'
    )
    assert get(api, "/loki/api/v1/format_query", query=query)["data"].splitlines() == [
        '{namespace="shop", app="cart"}',
        '  |= "a rather long text to look for"',
        '  != "another rather long text"',
        "  | logfmt",
        '  | level="x"',
    ]


def test_an_invalid_query_is_not_formatted(api: LokiApi) -> None:
    status, _, body = api.handle("GET", "/loki/api/v1/format_query", {"query": ["{app="]})
    assert (status, json.loads(body)["status"]) == (400, "invalid-query")


def test_there_are_no_rules(api: LokiApi) -> None:
    assert api.handle("GET", "/loki/api/v1/rules", {})[0] == 404
    assert get(api, "/prometheus/api/v1/rules")["data"] == {"groups": []}
    assert get(api, "/prometheus/api/v1/alerts")["data"] == {"alerts": []}


def test_following_sends_every_line_once(api: LokiApi, store: LogStore) -> None:
    tail = api.follow("/loki/api/v1/tail", {"query": ['{app="cart"} |= "u1"'], "limit": ["4"]})
    assert tail is not None
    texts: list[str] = []
    while message := tail.message():
        (stream,) = json.loads(message)["streams"]
        texts += [text for _, text in stream["values"]]
    assert len(texts) == len(set(texts)) == 11
    store.stream({"namespace": "shop", "app": "cart", "pod": "cart-0", "replica": "1"}).append(NOW, b"user=u100")
    message = tail.message()
    assert message is not None and b"user=u100" in message
    assert tail.message() is None
    assert api.follow("/loki/api/v1/tail", {"query": ["{"]}) is None
    assert api.follow("/loki/api/v1/query", {"query": ['{app="cart"}']}) is None
