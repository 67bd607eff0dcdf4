"""Access to the telemetry: who may query, how, and that all four APIs ask for the token."""

from __future__ import annotations

import httpx
import pytest

from srearena.cluster import start_embedded
from srearena.cluster.base import TelemetryEndpoints
from srearena.cluster.in_process import InProcessCluster

PATHS = {
    "prometheus": "/api/v1/status/buildinfo",
    "loki": "/loki/api/v1/status/buildinfo",
    "jaeger": "/api/services",
    "alertmanager": "/api/v2/status",
}


def address(endpoints: TelemetryEndpoints, name: str) -> str:
    return f"{getattr(endpoints, name)}{PATHS[name]}"


@pytest.mark.parametrize("name", PATHS)
def test_a_bearer_token_or_any_user_with_it_as_password(cluster: InProcessCluster, name: str) -> None:
    endpoints = cluster.telemetry
    url = address(endpoints, name)
    assert httpx.get(url, headers={"authorization": f"Bearer {endpoints.token}"}).status_code == 200
    assert httpx.get(url, auth=("anybody", endpoints.token)).status_code == 200
    assert httpx.get(url.replace("http://", f"http://me:{endpoints.token}@")).status_code == 200


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("value", ["", "Bearer", "Bearer wrong", "Basic !!!", "Basic dXNlcjp3cm9uZw==", "Digest x"])
def test_nobody_else_gets_in(cluster: InProcessCluster, name: str, value: str) -> None:
    answer = httpx.get(address(cluster.telemetry, name), headers={"authorization": value} if value else {})
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Basic")
    assert "token" in answer.text


def test_queries_have_the_semantics_of_prometheus_3_unless_asked_otherwise(cluster: InProcessCluster) -> None:
    endpoints = cluster.telemetry
    auth = ("x", endpoints.token)
    answer = httpx.get(
        f"{endpoints.prometheus}/api/v1/query", params={"query": "rate(node_memory_MemFree_bytes[5m])"}, auth=auth
    ).json()
    assert "metric might not be a counter" in answer["infos"][0]
    far = httpx.get(f"{endpoints.prometheus}/api/v1/query", params={"query": "up @ 1e20"}, auth=auth)
    assert far.status_code == 400 and "timestamp out of bounds for @ modifier" in far.text


def test_questions_may_come_as_forms(cluster: InProcessCluster) -> None:
    endpoints = cluster.telemetry
    auth = ("x", endpoints.token)
    answer = httpx.post(f"{endpoints.prometheus}/api/v1/query", data={"query": "sum(up)"}, auth=auth).json()
    assert float(answer["data"]["result"][0]["value"][1]) > 0
    answer = httpx.post(
        f"{endpoints.loki}/loki/api/v1/query",
        data={"query": 'sum(count_over_time({namespace="kube-system"}[10m]))'},
        auth=auth,
    ).json()
    assert float(answer["data"]["result"][0]["value"][1]) > 0
    huge = httpx.post(f"{endpoints.loki}/loki/api/v1/query", data={"query": "x" * 2_000_000}, auth=auth)
    assert huge.status_code == 413


def test_head_has_no_body_and_unknown_paths_do_not_exist(cluster: InProcessCluster) -> None:
    endpoints = cluster.telemetry
    auth = ("x", endpoints.token)
    assert httpx.head(address(endpoints, "loki"), auth=auth).content == b""
    assert httpx.get(f"{endpoints.loki}/nothing", auth=auth).status_code == 404
    assert httpx.get(f"{endpoints.jaeger}/nothing", auth=auth).status_code == 404


def test_a_cluster_in_its_own_process_says_where_its_telemetry_is() -> None:
    with start_embedded(nodes=1, seed=2) as child:
        endpoints = child.telemetry
        for name in PATHS:
            assert httpx.get(address(endpoints, name), auth=("x", endpoints.token)).status_code == 200
            assert httpx.get(address(endpoints, name)).status_code == 401
