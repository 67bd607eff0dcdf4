"""Detected levels: what Loki finds in a line, and queries by it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from srearena.cluster.embedded.clock import Clock
from srearena.cluster.embedded.telemetry.logs.levels import level_of
from srearena.cluster.embedded.telemetry.logs.loki_api import LokiApi
from srearena.cluster.embedded.telemetry.logs.store import LogStore

NOW = 1_700_000_000.0
FOUND = {
    # Fields of JSON, to the second level of nesting; their names count as written.
    '{"level":"WARN","msg":"no error"}': "warn",
    '{"severity":"err","x":1}': "error",
    '{"log":{"level":"dbg"}}': "debug",
    '{"a":{"b":{"level":"fatal"}},"msg":"all is well"}': "unknown",
    '{"LeVeL":"fatal"}': "unknown",
    '{"level":3,"msg":"error"}': "error",
    '  {"lvl":"trc"}  ': "trace",
    '{"level":"broken"': "unknown",
    # Pairs of logfmt; case does not matter, and `level` counts before `severity`.
    'ts=1 level=info msg="an error"': "info",
    'severity=critical LEVEL=warning msg="x"': "warn",
    'msg="level=fatal" lvl=inf': "info",
    "level=notice error=none": "error",
    # Anything else is searched for words.
    "2024/01/01 INFO: started with error handling": "info",
    "E0101 12:00:00.000000 1 main.go:1] an error occurred": "error",
    "[WARNING] slow": "warn",
    "critical: disk": "critical",
    "DEBUG: x": "debug",
    "Debug and Error in mixed case": "unknown",
    "": "unknown",
}


@pytest.mark.parametrize("line", FOUND)
def test_a_level_is_found_as_loki_finds_it(line: str) -> None:
    assert level_of(line.encode()) == FOUND[line]


@pytest.fixture
def api() -> LokiApi:
    store = LogStore(max_stream_bytes=20_000, detects_levels=True)
    stream = store.stream({"app": "cart", "pod": "cart-0"})
    for number in range(100):
        level = "error" if number % 10 == 0 else "info"
        stream.append(NOW - 100 + number, f'level={level} msg="line {number}"'.encode())
    return LokiApi(store, Clock(NOW))


def get(api: LokiApi, path: str, **params: str) -> Any:
    status, _, body = api.handle("GET", f"/loki/api/v1/{path}", {name: [value] for name, value in params.items()})
    assert status == 200, body
    return json.loads(body)


def test_lines_carry_their_level_which_is_no_label_of_the_stream(api: LokiApi) -> None:
    streams = get(api, "query_range", query='{app="cart"}', limit="1000")["data"]["result"]
    assert {one["stream"]["detected_level"]: len(one["values"]) for one in streams} == {"error": 10, "info": 90}
    assert get(api, "labels")["data"] == ["app", "pod"]
    (series,) = get(api, "series", query='{app="cart"}')["data"]
    assert series == {"app": "cart", "pod": "cart-0"}
    assert "data" in get(api, "series", **{"match[]": '{app="cart"}'})
    assert get(api, "query_range", query='{detected_level="error"}')["data"]["result"] == []


def test_queries_filter_and_group_by_level(api: LokiApi) -> None:
    errors = get(api, "query_range", query='{app="cart"} | detected_level="error"')["data"]["result"]
    assert [len(one["values"]) for one in errors] == [10]
    grouped = get(api, "query", query='sum by (detected_level) (count_over_time({app="cart"}[5m]))')["data"]["result"]
    assert {one["metric"]["detected_level"]: one["value"][1] for one in grouped} == {"error": "10", "info": "90"}
    bare = get(api, "query", query='count_over_time({app="cart"}[5m])')["data"]["result"]
    assert sorted(one["value"][1] for one in bare) == ["10", "90"]
    by_pod = get(api, "query", query='sum by (pod) (count_over_time({app="cart"}[5m]))')["data"]["result"]
    assert [(one["metric"], one["value"][1]) for one in by_pod] == [({"pod": "cart-0"}, "100")]
    fields = {field["label"]: field for field in get(api, "detected_fields", query='{app="cart"}')["fields"]}
    assert fields["detected_level"] == {"label": "detected_level", "type": "string", "cardinality": 2, "parsers": []}
    values = get(api, "detected_field/detected_level/values", query='{app="cart"}')
    assert values["values"] == ["error", "info"]


def test_levels_stay_with_their_lines_when_old_ones_are_dropped(api: LokiApi) -> None:
    get(api, "query_range", query='{app="cart"}', limit="1000")
    (stream,) = api._store.streams()
    stream.forget(41)
    stream.append(NOW, b"level=fatal")
    assert [stream.labels_of(index)["detected_level"] for index in (0, 8, 9, 10, 59)] == [
        "info",
        "info",
        "error",
        "info",
        "fatal",
    ]
