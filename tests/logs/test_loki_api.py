"""Loki's HTTP API: parameters and their defaults, response formats, error messages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from srearena.cluster.embedded.clock import Clock
from srearena.cluster.embedded.telemetry.logs.loki_api import LokiApi
from srearena.cluster.embedded.telemetry.logs.store import LogStore
from tests.logs.corpus import START, streams

END = START + 120


@pytest.fixture(scope="module")
def api() -> LokiApi:
    store = LogStore()
    for labels, entries in streams():
        for moment, text in entries:
            store.stream(labels).append(moment / 1e9, text.encode())
    return LokiApi(store, Clock(float(END)))


def get(api: LokiApi, path: str, **params: str | list[str]) -> Any:
    values = {name: [value] if isinstance(value, str) else value for name, value in params.items()}
    status, headers, body = api.handle("GET", f"/loki/api/v1/{path}", values)
    assert status == 200, body
    assert headers["content-type"] == "application/json; charset=UTF-8"
    return json.loads(body)


def refused(api: LokiApi, path: str, **params: str) -> str:
    status, headers, body = api.handle("GET", f"/loki/api/v1/{path}", {name: [text] for name, text in params.items()})
    assert status == 400
    assert headers["content-type"].startswith("text/plain")
    return body.decode()


def lines(answer: Any) -> list[str]:
    assert answer["data"]["resultType"] == "streams"
    return [line for stream in answer["data"]["result"] for _, line in stream["values"]]


def test_lines_come_newest_first_unless_asked_otherwise(api: LokiApi) -> None:
    newest = lines(get(api, "query_range", query='{app="counter"}'))
    assert newest == ["total=6", "total=5", "total=21", "total=20", "total=8", "total=2"] + [
        f"total={n}" for n in (9, 9, 3, 0)
    ]
    assert lines(get(api, "query_range", query='{app="counter"}', direction="forward")) == newest[::-1]
    assert lines(get(api, "query_range", query='{app="counter"}', limit="2", direction="FORWARD")) == newest[:-3:-1]


def test_an_hour_and_a_hundred_lines_are_the_default(api: LokiApi) -> None:
    answer = get(api, "query_range", query='{namespace=~".+"}')
    assert len(lines(answer)) == 100
    assert answer["data"]["stats"]["summary"]["totalEntriesReturned"] == 100
    late = LokiApi(api._store, Clock(END + 3600.0 - 60))
    assert {int(moment) // 10**9 - START for s in get(late, "query_range", query='{app="payment"}')["data"]["result"]
            for moment, _ in s["values"]} <= set(range(60, 120))  # fmt: skip


@pytest.mark.parametrize(
    "start", [str(START + 40), f"{START + 40}.0", f"{START + 40}000000000", "2027-01-15T08:00:40Z"]
)
def test_moments_in_every_spelling(api: LokiApi, start: str) -> None:
    assert lines(get(api, "query_range", query='{app="counter"}', start=start, end=str(END))) == ["total=6", "total=5"]


def test_paging_backwards_misses_nothing(api: LokiApi) -> None:
    seen: list[str] = []
    end = str(END)
    while True:
        answer = get(api, "query_range", query='{app="frontend"}', start=str(START), end=end, limit="7")
        entries = sorted(((int(m), line) for s in answer["data"]["result"] for m, line in s["values"]), reverse=True)
        if not entries:
            break
        seen += [line for _, line in entries]
        end = str(entries[-1][0])
    assert len(seen) == len(set(seen)) == 40


def test_a_matrix(api: LokiApi) -> None:
    answer = get(
        api, "query_range", query='sum by (app) (count_over_time({app="frontend"}[30s]))',
        start=str(START), end=str(END), step="30",
    )  # fmt: skip
    assert answer["data"]["resultType"] == "matrix"
    (series,) = answer["data"]["result"]
    assert series["metric"] == {"app": "frontend"}
    assert series["values"] == [[START + 30 * n, "10"] for n in range(1, 5)]


def test_a_vector_and_a_scalar(api: LokiApi) -> None:
    answer = get(api, "query", query='sum(rate({app="frontend"}[1m]))', time=str(END))
    assert answer["data"]["resultType"] == "vector"
    assert answer["data"]["result"] == [{"metric": {}, "value": [END, "0.3333333333333333"]}]
    answer = get(api, "query", query="2 * 21", time=str(END))
    assert (answer["data"]["resultType"], answer["data"]["result"]) == ("scalar", [END, "42"])
    assert get(api, "query", query='sum(rate({app="nobody"}[1m]))')["data"]["result"] == []


def test_labels_values_and_series(api: LokiApi) -> None:
    assert get(api, "labels") == {"status": "success", "data": ["app", "namespace", "pod", "stream"]}
    assert get(api, "label/app/values")["data"] == ["counter", "frontend", "mixed", "payment", "search"]
    assert get(api, "label/pod/values", query='{app="frontend"}')["data"] == ["frontend-1", "frontend-2"]
    assert get(api, "label/nothing/values") == {"status": "success"}
    found = get(api, "series", **{"match[]": ['{app="search"}', '{app="counter"}']})["data"]
    assert [labels["app"] for labels in found] == ["counter", "search"]
    assert get(api, "labels", start=str(START - 100), end=str(START - 50)) == {"status": "success"}


def test_statistics_and_status(api: LokiApi) -> None:
    stats = get(api, "index/stats", query='{app="counter"}', start=str(START), end=str(END))
    assert (stats["streams"], stats["entries"]) == (1, 10)
    assert stats["bytes"] == sum(len(text) for _, text in streams()[-1][1])
    assert get(api, "status/buildinfo")["version"]
    volume = get(api, "index/volume", query='{namespace="shop"}', targetLabels="app", start=str(START), end=str(END))
    sizes = {one["metric"]["app"]: int(one["value"][1]) for one in volume["data"]["result"]}
    assert sizes == {
        app: sum(len(text) for labels, entries in streams() if labels["app"] == app for _, text in entries)
        for app in ("payment", "frontend")
    }
    assert api.handle("GET", "/ready", {})[2] == b"ready\n"
    assert api.handle("GET", "/loki/api/v2/query", {})[0] == 404
    assert api.handle("DELETE", "/loki/api/v1/query", {})[0] == 405


@pytest.mark.parametrize(
    ("path", "params", "message"),
    [
        ("query_range", {"query": "{"}, "parse error at line 1, col 2: syntax error: unexpected $end"),
        ("query_range", {}, "parse error : syntax error: unexpected $end"),
        ("query", {"query": '{app="a"}'}, "log queries are not supported as an instant query type"),
        ("query_range", {"query": '{a="b"}', "limit": "x"}, 'strconv.Atoi: parsing "x": invalid syntax'),
        ("query_range", {"query": '{a="b"}', "limit": "0"}, "limit must be a positive value"),
        ("query_range", {"query": '{a="b"}', "limit": "6000"}, "limit > max_entries_limit_per_query (6000 > 5000)"),
        ("query_range", {"query": '{a="b"}', "direction": "up"}, "invalid direction 'up'"),
        ("query_range", {"query": '{a="b"}', "start": "soon"}, "could not parse 'start' parameter"),
        ("query_range", {"query": '{a="b"}', "start": "20", "end": "10"}, "end timestamp must not be before"),
        ("query_range", {"query": '{a="b"}', "step": "-1"}, "zero or negative query resolution step"),
        ("query_range", {"query": 'rate({a="b"}[1m])', "step": "0.001"}, "exceeded maximum resolution"),
        ("query_range", {"query": '{a="b"} |~ "("'}, "error parsing regexp: missing closing ): `(`"),
        ("query_range", {"query": '{app="search"} | line_format "{{ .x"'}, "invalid line template"),
        ("query", {"query": 'sum by (n) (count_over_time({app="mixed"} | json [1h]))'}, "pipeline error: 'JSONParser"),
        ("series", {"match[]": "vector(1)"}, "only label matchers are supported"),
    ],
)  # fmt: skip
def test_refusals(api: LokiApi, path: str, params: dict[str, str], message: str) -> None:
    assert message in refused(api, path, **params)


def test_too_many_series_are_refused() -> None:
    store = LogStore()
    for number in range(501):
        store.stream({"app": "many", "pod": f"p{number}"}).append(START + 1.0, b"x")
    api = LokiApi(store, Clock(START + 2.0))
    message = refused(api, "query", query='count_over_time({app="many"}[1m])')
    assert "maximum number of series (500) reached for a single query" in message


def test_hostile_expressions_do_not_hang() -> None:
    store = LogStore()
    for number in range(200):
        store.stream({"app": "a"}).append(START + number / 10, b"a" * 5000 + b"!")
    api = LokiApi(store, Clock(START + 60.0))
    for expression in ("(a+)+$", "(a|a)*b", "(.*)*x", "(a?){500}b", "([a-z]+ ?){50}x"):
        assert lines(get(api, "query_range", query=f'{{app="a"}} |~ "{expression}"')) == []
    for stage in ('regexp "(?P<x>(a?){900})b"', 'regexp "((?P<x>a+)+)+$"'):
        api.handle("GET", "/loki/api/v1/query_range", {"query": [f'{{app="a"}} | {stage}']})
    refused(api, "query_range", query="(" * 5000 + '{app="a"}')
    refused(api, "query_range", query='{app="a"} | line_format `' + "{{ if .a }}" * 200 + "`")
