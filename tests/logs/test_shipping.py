"""Containers' logs and Kubernetes events on their way to Loki, on a whole cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from lightkube import Client, KubeConfig
from lightkube.resources.core_v1 import Pod

from srearena.cluster import start_embedded
from srearena.cluster.base import Cluster

SHELL = ["sh", "-c"]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with start_embedded(in_process=True, speed=0, nodes=2, seed=3) as running:
        yield running


@pytest.fixture(scope="module")
def client(cluster: Cluster) -> Iterator[Client]:
    kubernetes = Client(config=KubeConfig.from_file(cluster.kubeconfig), namespace="default", trust_env=False)
    yield kubernetes
    kubernetes.close()


def run(client: Client, name: str, command: str, **spec: Any) -> None:
    containers = [{"name": "main", "image": "busybox:1.36", "command": [*SHELL, command]}]
    labels = {"app": name, "app.kubernetes.io/component": "test"}
    client.create(
        Pod.from_dict({"metadata": {"name": name, "labels": labels}, "spec": {"containers": containers, **spec}})
    )


def loki(cluster: Cluster, query: str, **params: str) -> list[tuple[dict[str, str], list[str]]]:
    endpoints = cluster.telemetry
    answer = httpx.get(
        f"{endpoints.loki}/loki/api/v1/query_range",
        params={"query": query, "direction": "forward", "limit": "5000", **params},
        headers={"authorization": f"Bearer {endpoints.token}"},
    )
    assert answer.status_code == 200, answer.text
    return [(one["stream"], [line for _, line in one["values"]]) for one in answer.json()["data"]["result"]]


def test_lines_carry_the_labels_promtail_gives_them(cluster: Cluster, client: Client) -> None:
    run(client, "talker", "echo to stdout; echo to stderr >&2; sleep 3600")
    cluster.wait(30)
    (out, lines), (err, complaints) = sorted(loki(cluster, '{pod="talker"}'), key=lambda one: one[0]["stream"])[::-1]
    assert (lines, complaints) == (["to stdout"], ["to stderr"])
    assert {**out, "stream": "stderr"} == err
    uid = client.get(Pod, "talker").metadata.uid  # type: ignore[union-attr]
    node = client.get(Pod, "talker").spec.nodeName  # type: ignore[union-attr]
    assert out == {
        "app": "talker",
        "component": "test",
        "container": "main",
        "detected_level": "unknown",
        "filename": f"/var/log/pods/default_talker_{uid}/main/0.log",
        "job": "default/talker",
        "namespace": "default",
        "node_name": node,
        "pod": "talker",
        "service_name": "talker",
        "stream": "stdout",
    }


def test_lines_survive_their_pod(cluster: Cluster, client: Client) -> None:
    run(client, "gone", "echo last words; sleep 3600")
    cluster.wait(20)
    client.delete(Pod, "gone", grace_period=0)
    cluster.wait(60)
    assert [lines for _, lines in loki(cluster, '{pod="gone"}')] == [["last words"]]


def test_every_restart_is_a_stream_of_its_own(cluster: Cluster, client: Client) -> None:
    run(client, "crasher", "echo boom; exit 1")
    cluster.wait(120)
    found = loki(cluster, '{pod="crasher"} |= "boom"')
    files = sorted(labels["filename"].rpartition("/")[2] for labels, _ in found)
    assert len(files) >= 3
    assert files == [f"{number}.log" for number in range(len(files))]
    assert all(lines == ["boom"] for _, lines in found)


def test_a_line_of_this_very_instant_is_there(cluster: Cluster, client: Client) -> None:
    """A query reads lines written before it, without waiting for the shipper's next round."""
    run(client, "ticker", "while true; do date +%s; sleep 1; done")
    cluster.wait(20)
    before = len(loki(cluster, '{pod="ticker"}')[0][1])
    cluster.wait(1)
    assert len(loki(cluster, '{pod="ticker"}')[0][1]) == before + 1


def test_an_overlong_line_is_put_together_again(cluster: Cluster, client: Client) -> None:
    run(client, "wide", "yes 0123456789 | head -n 4000 | tr -d '\\n'; echo; sleep 3600")
    cluster.wait(30)
    ((_, lines),) = loki(cluster, '{pod="wide"}')
    assert lines == ["0123456789" * 4000]


def test_events_are_lines_too(cluster: Cluster, client: Client) -> None:
    client.create(
        Pod.from_dict(
            {
                "metadata": {"name": "no-image"},
                "spec": {"containers": [{"name": "main", "image": "nowhere.example/none:1"}]},
            }
        )
    )
    cluster.wait(60)
    query = '{job="kubernetes-events", namespace="default"} | logfmt | name="no-image" | type="Warning"'
    found = loki(cluster, query)
    assert {labels["reason"] for labels, _ in found} == {"Failed"}
    assert any("nowhere.example/none:1" in line for _, lines in found for line in lines)
    assert all(labels["kind"] == "Pod" for labels, _ in found)


def test_metric_queries_count_what_was_written(cluster: Cluster, client: Client) -> None:
    run(client, "steady", "while true; do echo beat; sleep 2; done")
    cluster.wait(130)
    endpoints = cluster.telemetry
    answer = httpx.get(
        f"{endpoints.loki}/loki/api/v1/query",
        params={"query": 'sum by (pod) (count_over_time({pod="steady"} |= "beat" [1m]))'},
        auth=("anybody", endpoints.token),
    ).json()
    ((metric, value),) = [(one["metric"], float(one["value"][1])) for one in answer["data"]["result"]]
    assert metric == {"pod": "steady"}
    assert 29 <= value <= 31


def test_a_flood_is_cut_and_said(cluster: Cluster, client: Client) -> None:
    run(
        client,
        "flood",
        "yes this line is written over and over again by a program gone mad | head -n 400000; sleep 3600",
    )
    cluster.wait(60)
    notices = loki(cluster, '{job="loki"} |= "oldest lines discarded" |= "flood"')
    assert notices
    assert len(loki(cluster, '{pod="flood"}', limit="5000")[0][1]) == 5000
    endpoints = cluster.telemetry
    answer = httpx.get(
        f"{endpoints.prometheus}/api/v1/query",
        params={"query": 'loki_discarded_samples_total{reason="stream_limit"}'},
        auth=("x", endpoints.token),
    ).json()
    assert float(answer["data"]["result"][0]["value"][1]) > 100_000
