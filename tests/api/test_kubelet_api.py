"""The kubelet's own API behind `nodes/X/proxy`, and `/metrics` of the control plane, as monitoring reads them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from srearena.cluster import Cluster, start_embedded
from srearena.cluster.embedded.telemetry.collectors.exposition import samples_of
from srearena.service.kubernetes import Kubernetes

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "talker"},
    "spec": {
        "nodeName": "worker-1",
        "containers": [
            {
                "name": "main",
                "image": "busybox:1.36",
                "command": ["sh", "-c", "echo hello; echo trouble >&2; while :; do :; done"],
                "resources": {"limits": {"cpu": "200m", "memory": "64Mi"}},
                "readinessProbe": {"exec": {"command": ["true"]}},
            }
        ],
    },
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with start_embedded(in_process=True, nodes=1, speed=0) as started:
        with Kubernetes.of(started) as api:
            api.create(POD, "default")
        started.wait(90)
        yield started


@pytest.fixture(scope="module")
def api(cluster: Cluster) -> Iterator[Kubernetes]:
    with Kubernetes.of(cluster) as client:
        yield client


def text(api: Kubernetes, path: str, root: str = "/api/v1/nodes/worker-1/proxy") -> str:
    reply = api._transport.send("GET", f"{root}{path}", headers={"accept": "*/*"})
    assert reply.status == 200, reply.text
    return reply.text


def document(api: Kubernetes, path: str) -> Any:
    return json.loads(text(api, path))


def values(page: str, metric: str, **labels: str) -> list[float]:
    found = [(got, value) for name, got, value in samples_of(page) if name == metric]
    return [value for got, value in found if labels.items() <= got.items()]


def test_the_summary_measures_what_a_busy_container_uses(api: Kubernetes) -> None:
    summary = document(api, "/stats/summary")
    assert summary["node"]["nodeName"] == "worker-1"
    assert summary["node"]["fs"]["capacityBytes"] > summary["node"]["fs"]["usedBytes"] > 0
    pod = next(pod for pod in summary["pods"] if pod["podRef"]["name"] == "talker")
    (container,) = pod["containers"]
    assert 0.19e9 < container["cpu"]["usageNanoCores"] < 0.21e9
    assert pod["cpu"]["usageCoreNanoSeconds"] == container["cpu"]["usageCoreNanoSeconds"] > 10e9
    memory = container["memory"]
    assert memory["availableBytes"] + memory["workingSetBytes"] == 64 * 2**20
    assert container["logs"]["usedBytes"] == len("hello\ntrouble\n")
    assert summary["node"]["cpu"]["usageCoreNanoSeconds"] > pod["cpu"]["usageCoreNanoSeconds"]


def test_metrics_of_the_kubelet(api: Kubernetes) -> None:
    of_talker = {"namespace": "default", "pod": "talker", "container": "main"}
    cadvisor = text(api, "/metrics/cadvisor")
    assert values(cadvisor, "container_cpu_usage_seconds_total", **of_talker)[0] > 10
    assert "metrics_path=" not in cadvisor and 'job="' not in cadvisor
    assert values(text(api, "/metrics/probes"), "prober_probe_total", **of_talker, result="successful")[0] > 2
    page = text(api, "/metrics")
    assert values(page, "kubelet_running_pods")[0] == len(document(api, "/runningpods/")["items"])
    resource = text(api, "/metrics/resource")
    assert 0 < values(resource, "pod_cpu_usage_seconds_total", pod="talker")[0] < 20
    assert values(resource, "resource_scrape_error") == [0]


def test_pods_configuration_and_logs_of_a_node(api: Kubernetes) -> None:
    listed = {pod["metadata"]["name"] for pod in document(api, "/pods")["items"]}
    running = {pod["metadata"]["name"] for pod in document(api, "/runningpods/")["items"]}
    assert "talker" in listed and listed == running
    assert document(api, "/configz")["kubeletconfig"]["maxPods"] == 110
    uid = api.get("pods", "talker", "default")["metadata"]["uid"]
    folder = f"/logs/pods/default_talker_{uid}"
    assert f'<a href="default_talker_{uid}/">' in text(api, "/logs/pods/")
    out, error = text(api, f"{folder}/main/0.log").splitlines()
    assert out.endswith(" stdout F hello") and error.endswith(" stderr F trouble")
    link = next(name for name in text(api, "/logs/containers/").split('"') if name.startswith("talker_default_main-"))
    assert text(api, f"/logs/containers/{link}") == f"{out}\n{error}\n"


def test_paths_outside_the_logs_and_checkpoints_are_refused(cluster: Cluster, api: Kubernetes) -> None:
    for path in ("/logs/../etc/hostname", "/logs/pods/..%2f..%2f..%2fetc%2fhostname", "/logs/nothing", "/spec"):
        assert api._transport.send("GET", f"/api/v1/nodes/worker-1/proxy{path}").status == 404, path
    answer = api._transport.send("POST", "/api/v1/nodes/worker-1/proxy/checkpoint/default/talker/main")
    assert answer.status == 500
    assert "code = Unimplemented" in answer.text


def test_metrics_of_the_control_plane(cluster: Cluster, api: Kubernetes) -> None:
    assert values(text(api, "/metrics", root=""), "apiserver_storage_objects", resource="nodes") == [2]
    pod = {**POD, "metadata": {"name": "prober"}}
    container = {"name": "main", "image": "curlimages/curl:8.9.1", "command": ["sleep", "9999"]}
    place = {"nodeName": "control-plane", "hostNetwork": True, "tolerations": [{"operator": "Exists"}]}
    api.create({**pod, "spec": {"containers": [container], **place}}, "default")
    reader = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "metrics-reader"}}
    rules = [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    account = {"kind": "ServiceAccount", "name": "default", "namespace": "default"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "metrics-reader"}
    cluster.wait(20)

    def page(port: int) -> str:
        token = "$(cat /var/run/secrets/kubernetes.io/serviceaccount/token)"
        script = f'curl -sk -H "Authorization: Bearer {token}" https://127.0.0.1:{port}/metrics'
        with cluster.fast_forward(30):
            return api.exec("prober", ["sh", "-c", script], "default").output

    assert 'cannot get path \\"/metrics\\"' in page(10257)
    api.create({**reader, "kind": "ClusterRole", "rules": rules})
    api.create({**reader, "kind": "ClusterRoleBinding", "roleRef": role, "subjects": [account]})
    assert values(page(10257), "workqueue_adds_total", name="deployment")[0] > 0
    assert values(page(10259), "scheduler_schedule_attempts_total", result="scheduled")[0] > 0
