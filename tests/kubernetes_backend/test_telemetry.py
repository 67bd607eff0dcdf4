"""Telemetry on a real cluster: its manifests are accepted, it is found, and requests reach it and nothing else."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from typing import get_args
from urllib.parse import urlsplit

import httpx
import pytest
from click.testing import CliRunner

from srearena.cli import cli
from srearena.cluster import Cluster
from srearena.cluster.base import ClusterError
from srearena.conductor.shared_cluster import Needs
from srearena.conductor.shared_cluster.forwarding import Forwarding, Target
from srearena.conductor.shared_cluster.preflight import check_capacity
from srearena.conductor.shared_cluster.telemetry import NAMESPACE, PORTS, discover, stack
from srearena.config import LogShipper
from srearena.observer.errors import ObserverError
from srearena.service.kubernetes import Kubernetes, Obj
from tests.kubernetes_backend.test_leaving import shared_cluster

SERVED: list[Obj] = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}},
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "nginx:1.27"}]},
    },
    {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    },
]


@pytest.fixture(scope="module")
def served(theirs: Cluster) -> Iterator[Forwarding]:
    with Kubernetes(theirs.kubeconfig) as api:
        for obj in SERVED:
            api.apply(obj)
            theirs.wait(5)  # a namespace has no service account in its first moments
        theirs.wait(60)
        forwarding = Forwarding(theirs.kubeconfig, {"web": Target("shop", "web", 80), "gone": Target("shop", "no", 1)})
        yield forwarding
        forwarding.close()
        api.delete("namespaces", "shop")
        theirs.wait(60)


def ask(forwarding: Forwarding, path: str, token: str | None = None) -> tuple[int, str]:
    """Status and text of an answer; the path is sent as it stands, which most clients would tidy up first."""
    connection = http.client.HTTPConnection(urlsplit(forwarding.address("web")).netloc, timeout=30)
    try:
        connection.request("GET", path, headers={"authorization": f"Bearer {token or forwarding.token}"})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_requests_reach_the_service(served: Forwarding) -> None:
    status, text = ask(served, "/web/")
    assert status == 200 and "nginx" in text
    assert ask(served, "/web/nothing?x=1")[0] == 404
    with httpx.Client(trust_env=False) as client:
        assert client.get(f"{served.address('web')}/", auth=("me", served.token)).status_code == 200


def test_nobody_comes_in_without_the_token(served: Forwarding) -> None:
    assert ask(served, "/web/", token="guess")[0] == 401


@pytest.mark.parametrize(
    "path",
    [
        "/web/../../../../secrets",
        "/web/%2e%2e/%2e%2e/%2e%2e/%2e%2e/secrets",
        "/web/..%2f..%2f..%2f..%2fsecrets",
        "/web/%252e%252e/%252e%252e/x",
        "/web/..\\..",
    ],
)
def test_no_path_leads_out_of_the_service(served: Forwarding, path: str) -> None:
    assert ask(served, path)[0] == 400


def test_what_is_not_offered_is_said(served: Forwarding) -> None:
    assert ask(served, "/other/")[0] == 404
    assert ask(served, "/gone/")[0] >= 400


@pytest.mark.parametrize("shipper", get_args(LogShipper))
def test_the_server_takes_every_manifest(theirs: Cluster, api: Kubernetes, shipper: LogShipper) -> None:
    shared = shared_cluster(theirs, NAMESPACE)
    try:
        check_capacity(shared.inner.context, api, Needs((), tuple(stack(shipper))))
        shared.observe(("shop",), shipper)
        assert api.find("clusterroles", f"observe-{shipper}")
        found = discover(api, ())
        assert {what: target.port for what, target in found.items()} == {
            what: port for what, port in PORTS.items() if what != "alertmanager"
        }
        assert shared.telemetry.prometheus.endswith("/prometheus")
        names = {service["metadata"]["name"] for service in api.list("services", NAMESPACE)}
        assert {"otel-collector", "jaeger-agent"} <= names, "applications send their spans there"
    finally:
        shared.close()
    assert api.find("clusterroles", "observe-prometheus") is None


def test_what_is_there_is_not_overwritten(theirs: Cluster, api: Kubernetes) -> None:
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "observe-prometheus"},
    }
    api.create(role)
    try:
        shared = shared_cluster(theirs, NAMESPACE)
        with pytest.raises(Exception, match="ClusterRole observe-prometheus exists and belongs to others"):
            check_capacity(shared.inner.context, api, Needs((), tuple(stack())))
        shared.close()
    finally:
        api.delete("clusterroles", "observe-prometheus")


def test_top_asks_the_telemetry_of_the_run_in_progress(theirs: Cluster) -> None:
    """The program behind the Service is a model that does not know PromQL: the request gets as far as that."""
    command = ["top", "--once", "--backend", "kubernetes", "--kubeconfig", str(theirs.kubeconfig)]
    with pytest.raises(ClusterError, match="nothing of srearena runs"):
        CliRunner().invoke(cli, command, catch_exceptions=False)
    shared = shared_cluster(theirs, NAMESPACE)
    try:
        with pytest.raises(ClusterError, match="no telemetry"):
            CliRunner().invoke(cli, command, catch_exceptions=False)
        shared.observe(("shop",))
        with pytest.raises(ObserverError, match=r"http://127\.0\.0\.1:\d+/prometheus"):
            CliRunner().invoke(cli, command, catch_exceptions=False)
    finally:
        shared.close()
