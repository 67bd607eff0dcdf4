"""The control plane's programs log what their real counterparts log at the default verbosity."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from srearena.cluster import Cluster, start_embedded
from srearena.service.errors import ServiceError
from srearena.service.kubernetes import Kubernetes, Obj

POD: Obj = {"containers": [{"name": "c", "image": "busybox:1.36", "command": ["sleep", "infinity"]}]}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with start_embedded(in_process=True, speed=0) as cluster:
        cluster.wait(60)
        yield cluster


@pytest.fixture
def api(cluster: Cluster) -> Iterator[Kubernetes]:
    with Kubernetes.of(cluster) as api:
        yield api


def named(kind: str, name: str, group: str = "v1", **fields: Obj) -> Obj:
    return {"apiVersion": group, "kind": kind, "metadata": {"name": name}, **fields}


def deployment(name: str) -> Obj:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {**POD, "terminationGracePeriodSeconds": 0}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return named("Deployment", name, "apps/v1", spec=spec)


def log_of(api: Kubernetes, component: str) -> list[str]:
    """The lines without the head that has the time."""
    text = api.logs(f"{component}-control-plane", "kube-system")
    lines = [re.fullmatch(r"([IWE])\d{4} \d\d:\d\d:\d\d\.\d{6} {7}1 (.*)", line) for line in text.splitlines()]
    assert all(lines), text
    return [f"{line[1]} {line[2]}" for line in lines if line]


def test_pods_that_a_quota_refuses(cluster: Cluster, api: Kubernetes) -> None:
    api.create(named("Namespace", "tight"))
    api.create(named("ResourceQuota", "none", spec={"hard": {"pods": "0"}}), "tight")
    api.create(deployment("web"), "tight")
    cluster.wait(5)
    replica_set = api.list("replicasets", "tight")[0]["metadata"]["name"]
    lines = [line for line in log_of(api, "kube-controller-manager") if f"tight/{replica_set}" in line]
    text = rf'E replica_set\.go:587] "Unhandled Error" err="sync \\"tight/{replica_set}\\" failed with pods '
    text += rf'\\"{replica_set}-\w+\\" is forbidden: exceeded quota: none, .*" logger="UnhandledError"'
    assert len(lines) > 2 and all(re.fullmatch(text, line) for line in lines), lines


def test_addresses_of_services(cluster: Cluster, api: Kubernetes) -> None:
    created = api.create(named("Service", "front", spec={"ports": [{"port": 80}]}), "default")
    api.create(named("Service", "bare", spec={"clusterIP": "None", "ports": [{"port": 80}]}), "default")
    cluster.wait(5)
    lines = [line for line in log_of(api, "kube-apiserver") if "allocated clusterIPs" in line]
    address = created["spec"]["clusterIP"]
    assert f'I alloc.go:328] "allocated clusterIPs" service="default/front" clusterIPs={{"IPv4":"{address}"}}' in lines
    assert not [line for line in lines if "default/bare" in line]


@pytest.mark.parametrize(
    ("kind", "policy", "severities", "way"),
    [
        ("ValidatingWebhookConfiguration", "Fail", ["W dispatcher.go:217"], "closed"),
        ("MutatingWebhookConfiguration", "Ignore", ["W dispatcher.go:210", "E dispatcher.go:214"], "open"),
    ],
)
def test_a_webhook_that_does_not_answer(
    cluster: Cluster, api: Kubernetes, kind: str, policy: str, severities: list[str], way: str
) -> None:
    hook = {
        "name": f"{way}.example.com",
        "clientConfig": {"service": {"name": "nobody", "namespace": "default"}},
        "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": policy,
    }
    body: Obj = {**named(kind, way, "admissionregistration.k8s.io/v1"), "webhooks": [hook]}
    api.create(body)
    try:
        api.create(named("ConfigMap", f"asked-{way}"), "default")
    except ServiceError as refused:
        assert way == "closed" and "failed calling webhook" in str(refused)
    finally:
        api.delete(f"{kind.lower()}s", way)
    lines = [line for line in log_of(api, "kube-apiserver") if f"{way}.example.com" in line]
    assert [line.partition("]")[0] for line in lines] == severities
    failure = f'failed calling webhook "{way}.example.com": failed to call webhook: '
    assert lines[0].startswith(f"{severities[0]}] Failed calling webhook, failing {way} {way}.example.com: {failure}")


def test_evictions_and_deleted_namespaces(cluster: Cluster, api: Kubernetes) -> None:
    api.create(named("Namespace", "leaving"))
    api.create(deployment("web"), "leaving")
    cluster.wait(10)
    pod = api.list("pods", "leaving")[0]
    node = pod["spec"]["nodeName"]
    api.patch("nodes", node, {"spec": {"taints": [{"key": "broken", "effect": "NoExecute"}]}})
    cluster.wait(5)
    api.patch("nodes", node, {"spec": {"taints": None}})
    api.delete("namespaces", "leaving")
    cluster.wait(30)
    lines = log_of(api, "kube-controller-manager")
    name = "taint-eviction-controller"
    key = f"leaving/{pod['metadata']['name']}"
    assert f'I taint_eviction.go:111] "Deleting pod" logger="{name}" controller="{name}" pod="{key}"' in lines
    text = '"Namespace has been deleted" logger="namespace-controller" namespace="leaving"'
    assert f"I namespace_controller.go:187] {text}" in lines


def test_etcd_logs_its_compactions(cluster: Cluster, api: Kubernetes) -> None:
    cluster.wait(610)
    lines = [json.loads(line) for line in api.logs("etcd-control-plane", "kube-system").splitlines()]
    finished = [line for line in lines if line["msg"] == "finished scheduled compaction"]
    revisions = [line["compact-revision"] for line in finished]
    assert len(revisions) >= 2 and revisions == sorted(revisions)
    last = finished[-1]
    assert last["number-of-keys-compacted"] == revisions[-1] - revisions[-2] > 0
    assert last["current-db-size-bytes"] >= last["current-db-size-in-use-bytes"] > 0
    assert last["caller"].startswith("mvcc/kvstore_compaction.go:")
