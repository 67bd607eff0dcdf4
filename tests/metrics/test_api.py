"""Prometheus' HTTP API: shapes, limits and refusals as the real server has them."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from srearena.cluster.embedded.telemetry.alerts.evaluation import Rules
from srearena.cluster.embedded.telemetry.collectors.collector import Target
from srearena.cluster.embedded.telemetry.metrics.api import PrometheusApi
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore
from tests.promql.real_prometheus import BINARY, RealPrometheus, running, version
from tests.promql.samples import START, dataset, loaded

NOW = START / 1000 + 1800
IN_BRACES = 'invalid parameter "query": 1:4: parse error: unexpected end of input inside braces'


class Clock:
    now = NOW


TARGETS = [
    Target({"job": "api", "instance": "a:80"}, "http://a:80/metrics", {"__address__": "a:80"}, "up", "", NOW - 5, 0.01),
    Target({"job": "api", "instance": "b:80"}, "http://b:80/metrics", {}, "down", "connection refused"),
]


@pytest.fixture(scope="module")
def api() -> PrometheusApi:
    store = loaded(dataset())
    store.describe("up", "gauge", "Whether the target answers.")
    store.describe("http_requests_total", "counter", "Requests.")
    return PrometheusApi(store, Clock(), targets=lambda: TARGETS)


_PARAMETERS = {"match": "match[]"}


def ask(api: PrometheusApi, path: str, method: str = "GET", **params: str | list[str]) -> tuple[int, Any]:
    parameters = {_PARAMETERS.get(name, name): [v] if isinstance(v, str) else v for name, v in params.items()}
    status, headers, body = api.handle(method, path, parameters)
    return status, orjson.loads(body) if headers["content-type"] == "application/json" else body.decode()


def data(api: PrometheusApi, path: str, **params: str | list[str]) -> Any:
    status, body = ask(api, f"/api/v1/{path}", **params)
    assert status == 200 and body["status"] == "success", body
    return body["data"]


def test_an_instant_query_without_a_time_is_about_now(api: PrometheusApi) -> None:
    found = data(api, "query", query="up{job='web'}")
    assert found["resultType"] == "vector"
    assert found["result"] == [
        {"metric": {"__name__": "up", "instance": "w:80", "job": "web"}, "value": [int(NOW), "0"]}
    ]


@pytest.mark.parametrize("time", ["1704105000", "1704105000.0", "2024-01-01T10:30:00Z", "2024-01-01T11:30:00+01:00"])
def test_times_may_be_seconds_or_rfc_3339(api: PrometheusApi, time: str) -> None:
    assert data(api, "query", query="time()", time=time) == {
        "resultType": "scalar",
        "result": [1704105000, "1704105000"],
    }


def test_results_of_every_kind(api: PrometheusApi) -> None:
    assert data(api, "query", query='"a\\"b"') == {"resultType": "string", "result": [int(NOW), 'a"b']}
    samples = data(api, "query", query="up{job='web'}[30s]")
    assert samples["resultType"] == "matrix"
    assert [value for _, value in samples["result"][0]["values"]] == ["1", "0"]
    assert data(api, "query", query="1 / 0")["result"][1] == "+Inf"
    assert data(api, "query", query="123456789 * 1e12")["result"][1] == "123456789000000000000"
    assert data(api, "query", query="1e21")["result"][1] == "1e+21"
    assert data(api, "query", query="0.0000001")["result"][1] == "1e-07"


def test_a_form_is_as_good_as_a_query_string(api: PrometheusApi) -> None:
    parameters = {"query": "up", "start": str(NOW - 60), "end": str(NOW), "step": "15s"}
    assert ask(api, "/api/v1/query_range", "POST", **parameters) == ask(api, "/api/v1/query_range", "GET", **parameters)
    assert ask(api, "/api/v1/metadata", "POST")[0] == 405


@pytest.mark.parametrize(
    ("path", "params", "status", "kind", "message"),
    [
        (
            "query",
            {"query": "up{"},
            400,
            "bad_data",
            IN_BRACES,
        ),
        (
            "query",
            {"query": "up", "time": "soon"},
            400,
            "bad_data",
            'invalid parameter "time": Invalid time value for \'time\': cannot parse "soon" to a valid timestamp',
        ),
        (
            "query_range",
            {"query": "up"},
            400,
            "bad_data",
            'invalid parameter "start": cannot parse "" to a valid timestamp',
        ),
        (
            "query_range",
            {"query": "up", "start": "2", "end": "1", "step": "1"},
            400,
            "bad_data",
            'invalid parameter "end": end timestamp must not be before start time',
        ),
        (
            "query_range",
            {"query": "up", "start": "1", "end": "2", "step": "0"},
            400,
            "bad_data",
            'invalid parameter "step": zero or negative query resolution step widths are not accepted. '
            "Try a positive integer",
        ),
        (
            "query_range",
            {"query": "up", "start": "1", "end": "2", "step": "x"},
            400,
            "bad_data",
            'invalid parameter "step": cannot parse "x" to a valid duration',
        ),
        (
            "query_range",
            {"query": "up", "start": "0", "end": "12000", "step": "1"},
            400,
            "bad_data",
            "exceeded maximum resolution of 11,000 points per timeseries. "
            "Try decreasing the query resolution (?step=XX)",
        ),
        (
            "query_range",
            {"query": "up[5m]", "start": "1", "end": "2", "step": "1"},
            400,
            "bad_data",
            'invalid parameter "query": invalid expression type "range vector" for range query, '
            "must be Scalar or instant Vector",
        ),
        (
            "query",
            {"query": "memory_bytes * on(node) node_info"},
            422,
            "execution",
            "multiple matches for labels: many-to-one matching must be explicit (group_left/group_right)",
        ),
        ("series", {}, 400, "bad_data", "no match[] parameter provided"),
        (
            "series",
            {"match": "up{"},
            400,
            "bad_data",
            'invalid parameter "match[]": 1:4: parse error: unexpected end of input inside braces',
        ),
        (
            "query",
            {"query": "up @ 1e20"},
            400,
            "bad_data",
            'invalid parameter "query": 1:1: parse error: timestamp out of bounds for @ modifier: '
            "100000000000000000000.000000",
        ),
        (
            "query",
            {"query": "up", "limit": "-1"},
            400,
            "bad_data",
            'invalid parameter "limit": limit must be non-negative',
        ),
        ("format_query", {"query": "up{"}, 400, "bad_data", IN_BRACES),
        ("rules", {"type": "x"}, 400, "bad_data", 'invalid parameter "type": not supported value "x"'),
        ("metadata", {"limit": "x"}, 400, "bad_data", "limit must be a number"),
    ],
)
def test_refusals(
    api: PrometheusApi,
    server: RealPrometheus | None,
    path: str,
    params: dict[str, str],
    status: int,
    kind: str,
    message: str,
) -> None:
    found, body = ask(api, f"/api/v1/{path}", **params)
    assert (found, body) == (status, {"status": "error", "errorType": kind, "error": message})
    if server is not None and version() > 2:
        parameters = {name.replace("match", "match[]"): value for name, value in params.items()}
        if path == "query":
            parameters.setdefault("time", str(NOW))
        assert server.ask(path, **parameters) == body


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The real server where it is installed, to check what we expect of it."""
    if BINARY is None:
        yield None
        return
    with running(tmp_path_factory.mktemp("prometheus")) as found:
        found.write(dataset())
        yield found


def test_series_labels_and_values_are_the_real_servers(api: PrometheusApi, server: RealPrometheus | None) -> None:
    window = {"start": str(START / 1000), "end": str(START / 1000 + 3600)}
    requests: list[tuple[str, dict[str, str]]] = [
        ("series", {"match": "up"}),
        ("series", {"match": '{job="web"}'}),
        ("labels", {}),
        ("labels", {"match": "pod_info"}),
        ("label/job/values", {}),
        ("label/__name__/values", {}),
        ("label/pod/values", {"match": 'memory_bytes{pod=~"db.*"}'}),
        ("label/nope/values", {}),
    ]
    for path, params in requests:
        ours = data(api, path, **params, **window)
        assert isinstance(ours, list)
        if server is not None:
            parameters = {name.replace("match", "match[]"): value for name, value in params.items()}
            assert server.ask(path, **parameters, **window)["data"] == ours, path
    assert data(api, "series", match=["up", "flag"], start="1", end="2") == []


def test_metadata(api: PrometheusApi) -> None:
    assert data(api, "metadata", metric="up") == {
        "up": [{"type": "gauge", "help": "Whether the target answers.", "unit": ""}]
    }
    assert len(data(api, "metadata", limit="1")) == 1


def test_targets(api: PrometheusApi) -> None:
    up, down = data(api, "targets")["activeTargets"]
    assert (up["health"], up["scrapePool"], up["scrapeUrl"]) == ("up", "api", "http://a:80/metrics")
    assert (down["health"], down["lastError"]) == ("down", "connection refused")
    assert data(api, "targets", state="dropped") == {"activeTargets": [], "droppedTargets": []}


def test_scrape_pools_and_the_targets_of_one(api: PrometheusApi) -> None:
    assert data(api, "scrape_pools") == {"scrapePools": ["api"]}
    assert len(data(api, "targets", scrapePool="api")["activeTargets"]) == 2
    assert data(api, "targets", scrapePool="web")["activeTargets"] == []


def test_metadata_of_a_targets_metrics(api: PrometheusApi) -> None:
    requests = {"type": "counter", "help": "Requests.", "unit": ""}
    target = {"job": "api", "instance": "a:80"}
    wanted = {"match_target": '{instance="a:80"}'}
    assert data(api, "targets/metadata", **wanted) == [{"target": target, "metric": "http_requests_total", **requests}]
    found = data(api, "targets/metadata", metric="http_requests_total", limit="1")
    assert found == [{"target": target, **requests}]
    assert data(api, "targets/metadata", metric="nothing") == []


def test_queries_are_formatted_as_the_real_server_does(api: PrometheusApi, server: RealPrometheus | None) -> None:
    long = (
        'sum by (service_name) (rate(calls_total{code=~"5..", namespace="shop"}[5m] offset 1m)) / on (service_name) '
        "group_left (team) sum by (service_name) (rate(calls_total[5m])) > bool 0.05 and -avg_over_time((up)[1h:1m])"
    )
    queries = [
        "sum(up)by(job)",
        "foo[90s]@start() offset -2d",
        "topk(3,up{b='x',a!~`y`})",
        "-1^2",
        '{"a.b",c="d"}',
        long,
    ]
    assert data(api, "format_query", query="sum(up)by(job)") == "sum by (job) (up)"
    assert data(api, "format_query", query=long).startswith("      sum by (service_name) (rate(")
    if server is not None and version() > 2:
        for query in queries:
            assert data(api, "format_query", query=query) == server.ask("format_query", query=query)["data"], query


def test_a_limit_truncates_and_says_so(api: PrometheusApi) -> None:
    for path, wanted in (("query", {"query": "up"}), ("series", {"match": "up"}), ("labels", {})):
        _, body = ask(api, f"/api/v1/{path}", **wanted, limit="1")
        found = body["data"]["result"] if path == "query" else body["data"]
        assert (len(found), body["warnings"]) == (1, ["results truncated due to limit"])


def test_annotations_come_with_the_result(api: PrometheusApi) -> None:
    _, body = ask(api, "/api/v1/query", query="rate(temperature[5m])")
    assert body["infos"] == [
        "PromQL info: metric might not be a counter, name does not end in _total/_sum/_count/_bucket: "
        '"temperature" (1:6)'
    ]
    _, body = ask(api, "/api/v1/query_range", query="sort(up)", start=str(NOW - 60), end=str(NOW), step="15")
    assert body["warnings"] == [
        "PromQL warning: sort is ineffective for range queries since results are always ordered by labels (1:1)"
    ]


def test_rules_are_chosen_by_group_name_and_file() -> None:
    api = PrometheusApi(MetricStore(), Clock(), Rules(MetricStore()))
    groups = data(api, "rules")["groups"]
    (chosen,) = data(api, "rules", **{"rule_group[]": groups[0]["name"], "file[]": groups[0]["file"]})["groups"]
    assert chosen == groups[0]
    (named,) = data(api, "rules", **{"rule_name[]": groups[1]["rules"][0]["name"]})["groups"]
    assert [rule["name"] for rule in named["rules"]] == [groups[1]["rules"][0]["name"]]


def test_the_servers_own_metrics_are_exposed() -> None:
    store = MetricStore()
    store.describe("prometheus_tsdb_head_series", "gauge", "Series in the head block.")
    labels = {"job": "prometheus", "instance": "prometheus:9090"}
    store.block([{"__name__": "prometheus_tsdb_head_series", **labels}, {"__name__": "up", **labels}]).append(
        NOW - 1, (7, 1)
    )
    _, text = ask(PrometheusApi(store, Clock()), "/metrics")
    assert text.splitlines() == [
        "# HELP prometheus_tsdb_head_series Series in the head block.",
        "# TYPE prometheus_tsdb_head_series gauge",
        "prometheus_tsdb_head_series 7",
    ]


def test_the_server_about_itself(api: PrometheusApi) -> None:
    assert data(api, "status/buildinfo")["version"] == "3.15.0"
    old = PrometheusApi(api.store, Clock(), version=2)
    assert data(old, "status/buildinfo")["version"] == "2.42.0"
    assert ask(api, "/version")[1].startswith('{"version":"3.15.0"')
    assert data(api, "status/walreplay") == {"min": 0, "max": 0, "current": 0}
    assert data(api, "status/tsdb/blocks") == {"blocks": []}
    assert "scrape_interval" in data(api, "status/config")["yaml"]
    assert data(api, "status/runtimeinfo")["storageRetention"] == "1d"
    assert data(api, "status/tsdb")["headStats"]["numSeries"] == len(api.store)
    assert data(api, "status/flags")["query.lookback-delta"] == "5m"
    assert data(api, "rules") == {"groups": []}
    assert data(api, "query_exemplars", query="up", start="1", end="2") == []
    assert data(api, "alertmanagers") == {
        "activeAlertmanagers": [{"url": "http://alertmanager:9093/api/v2/alerts"}],
        "droppedAlertmanagers": [],
    }
    assert data(api, "alerts") == {"alerts": []}
    assert ask(api, "/-/healthy") == (200, "Prometheus Server is Healthy.\n")
    assert ask(api, "/-/ready") == (200, "Prometheus Server is Ready.\n")
    assert ask(api, "/api/v1/nothing")[0] == 404


def test_federation_gives_the_latest_samples_as_text(api: PrometheusApi) -> None:
    _, text = ask(api, "/federate", match='{job="web"}')
    assert "# TYPE up gauge" in text.splitlines()
    assert f'up{{instance="w:80",job="web"}} 0 {round(NOW * 1000)}' in text


def test_a_store_that_is_full_says_so_in_every_answer() -> None:
    store = MetricStore(max_series=1)
    store.block([{"__name__": "a"}, {"__name__": "b"}])
    _, body = ask(PrometheusApi(store, Clock()), "/api/v1/query", query="1")
    assert body["warnings"] == ["1 series were refused: the store holds at most 1 series"]


def test_a_query_that_would_load_too_much_is_refused(api: PrometheusApi) -> None:
    small = PrometheusApi(api.store, Clock())
    small.engine.max_samples = 1000
    status, body = ask(small, "/api/v1/query", query="http_requests_total[1h]")
    assert (status, body["errorType"]) == (422, "execution")
    assert "too many samples" in body["error"]


def test_a_query_that_would_take_too_long_is_refused_before_it_begins() -> None:
    store = MetricStore()
    block = store.block([{"__name__": "m", "i": str(i)} for i in range(1000)])
    for at in range(1000):
        block.append(at, [float(at)] * 1000)
    window = {"start": "0", "end": "1000", "step": "1"}
    status, body = ask(PrometheusApi(store, Clock()), "/api/v1/query_range", query="deriv(m[1000s])", **window)
    assert (status, body["errorType"]) == (503, "timeout")
    assert body["error"] == "query timed out in expression evaluation"


def test_nobody_can_hold_it_up_with_a_regular_expression(api: PrometheusApi) -> None:
    evil = 'lonely{b=~"(x+x+)+y", c=~"(.*)*z"} or label_replace(lonely, "d", "$1", "b", "((x*)*)*z")'
    assert len(data(api, "query", query=evil, time=str(START / 1000 + 600))["result"]) == 1


@pytest.mark.parametrize(
    "query",
    [
        "(" * 5000 + "1" + ")" * 5000,
        "1" + " + 1" * 4000,
        "1" + " ^ 1" * 4000,
        "-" * 3000 + "1",
        "abs(" * 150 + "up" + ")" * 150,
        "(" * 150 + "up +" + ")" * 150,
        "up offset " * 1500,
        "sum(" * 4000,
        "up @ -1",
        "[" * 5000,
        "\x00",
        'up{a="\ud83d"}'.encode("utf-8", "replace").decode(),
    ],
    ids=range(12),
)
def test_monstrous_queries_are_refused_and_harm_nothing(api: PrometheusApi, query: str) -> None:
    status, body = ask(api, "/api/v1/query", query=query)
    assert status in (200, 400) and body["status"] in ("success", "error")
