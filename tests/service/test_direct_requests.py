"""The client of a cluster in this process needs no socket: everything else is as over HTTPS."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from srearena.cluster import Cluster, start_embedded
from srearena.service.errors import ServiceError, Unreachable
from srearena.service.kubernetes import Kubernetes

Clients = tuple[Kubernetes, Kubernetes]
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "shell"},
    "spec": {
        "containers": [
            {"name": "main", "image": "busybox:1.36", "command": ["sh", "-c", "while :; do sleep 5; done"]},
            {"name": "web", "image": "nginx:1.27"},
        ]
    },
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with start_embedded(in_process=True, speed=0) as running:
        with Kubernetes.of(running) as api:
            running.wait(10)
            api.create(POD)
            running.wait(60)
        yield running


@pytest.fixture
def both(cluster: Cluster) -> Iterator[Clients]:
    with (
        Kubernetes.of(cluster) as direct,
        Kubernetes(cluster.kubeconfig, pass_time=cluster.wait, fast_forward=cluster.fast_forward) as https,
    ):
        yield direct, https


def refusal(api: Kubernetes, pod: str, container: str, command: list[str]) -> tuple[str, str]:
    with pytest.raises(ServiceError) as caught:
        api.exec(pod, command, "default", container=container)
    return type(caught.value).__name__, re.sub(r"\b[0-9a-f]{64}\b", "ID", str(caught.value))


def test_requests_are_answered_alike(both: Clients) -> None:
    requests: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("GET", "/api/v1/namespaces/default/pods/shell", {}),
        ("GET", "/api/v1/pods", {"query": {"labelSelector": "a!=b,c", "limit": 2}}),
        ("GET", "/api/v1/namespaces/default/pods/n%C3%B6 one?x=%2F", {}),
        ("GET", "/apis/none/v1/things", {}),
        ("PUT", "/api/v1/namespaces/default/pods/shell", {"content": b"{not json"}),
        ("POST", "/api/v1/namespaces/default/configmaps", {"content": b"{}", "query": {"dryRun": "All"}}),
        ("GET", "/api/v1/namespaces/default/pods/shell:80/proxy/", {"headers": {"accept": "*/*"}}),
        ("GET", "/api/v1/namespaces/default/pods/shell:81/proxy/", {}),
        ("GET", "/version", {"headers": {"impersonate-user": "nobody"}}),
    )
    for method, path, options in requests:
        direct, https = (api._transport.send(method, path, **options) for api in both)
        assert (direct.status, direct.body) == (https.status, https.body), path
        own = {name: text for name, text in direct.headers.items() if name != "audit-id"}
        assert own == {name.lower(): text for name, text in https.headers.items() if name.lower() != "audit-id"}, path


def test_programs_behind_the_proxy_receive_the_same_headers(both: Clients) -> None:
    logs = []
    for api in both:
        for headers in ({"accept": "*/*"}, {"referer": "http://here"}):
            api.request_pod("shell", 80, "/", "default", headers=headers)
        logs.append(
            [line.split("] ")[1] for line in api.logs("shell", "default", container="web", tail=2).splitlines()]
        )
    assert logs[0] == logs[1] != []


@pytest.mark.parametrize("stdin", [None, "", "some text\n", "x" * 100_000])
def test_commands_have_the_same_output(both: Clients, stdin: str | None) -> None:
    script = "cat | wc -c; echo no >&2; sleep 3; exit 3"
    direct, https = (api.exec("shell", ["sh", "-c", script], "default", container="main", stdin=stdin) for api in both)
    assert direct == https and direct.status == 3 and direct.output.strip() == str(len(stdin or ""))


def test_refusals_of_commands_are_the_same(both: Clients) -> None:
    for pod, container, command in (
        ("nobody", "", ["ls"]),
        ("shell", "none", ["ls"]),
        ("shell", "main", ["no-such-program"]),
        ("shell", "main", []),
    ):
        direct, https = (refusal(api, pod, container, command) for api in both)
        assert direct == https, (pod, container, command)


def test_a_command_that_takes_too_long_is_given_up(both: Clients) -> None:
    for api in both:
        with pytest.raises(Unreachable):
            api.exec("shell", ["sleep", "100"], "default", container="main", timeout=5)


def test_a_cluster_that_does_not_serve_is_unreachable() -> None:
    with start_embedded(in_process=True, speed=0) as other, Kubernetes.of(other) as api:
        assert api.list("nodes")
        other.suspend()
        with pytest.raises(Unreachable, match="cannot be reached"):
            api.list("nodes")
        other.resume()
        with Kubernetes.of(other) as again:
            assert again.list("nodes")
