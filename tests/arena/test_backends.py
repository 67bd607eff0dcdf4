"""The servers behind a Service: pods of its own workloads, reached by its own name and address."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from srearena.conductor.episode.episode import Episode
from srearena.conductor.oracles.checks import Backends, Reachability
from srearena.conductor.problems.target_port import TargetPort
from srearena.service.kubernetes import Kubernetes, Obj
from tests.arena.episodes import prepared_episode, shop_problem

SHOP = "corner-shop"
REPAIR = [{"op": "replace", "path": "/spec/ports/0/targetPort", "value": 8080}]


@pytest.fixture(scope="module")
def episode() -> Iterator[Episode]:
    """A repaired shop; every test leaves it as it was."""
    with prepared_episode(shop_problem(TargetPort), stages=("mitigation",)) as episode:
        episode.problem.kubernetes.patch("services", "api", REPAIR, SHOP)
        episode.cluster.wait(10)
        yield episode


@pytest.fixture(scope="module")
def api(episode: Episode) -> Iterator[Kubernetes]:
    """The agent's own client."""
    assert episode.kubeconfig is not None
    with Kubernetes(episode.kubeconfig) as client:
        yield client


def fake(name: str, labels: dict[str, str], owner: Obj | None = None) -> Obj:
    """A pod that accepts connections at the port of the Service."""
    container = {
        "name": "api",
        "image": "nginx:1.27",
        "volumeMounts": [{"name": "s", "mountPath": "/etc/nginx/conf.d"}],
    }
    metadata: Obj = {"name": name, "labels": labels}
    if owner is not None:
        reference = {key: owner[key] for key in ("apiVersion", "kind")} | {"controller": True}
        metadata["ownerReferences"] = [reference | {key: owner["metadata"][key] for key in ("name", "uid")}]
    volumes = [{"name": "s", "configMap": {"name": "api-site"}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container], "volumes": volumes},
    }


def test_the_repaired_system_is_content(episode: Episode) -> None:
    assert Backends().complaints(episode.problem) == []
    assert Reachability().complaints(episode.problem) == []


def test_a_selector_that_selects_another_server(episode: Episode, api: Kubernetes) -> None:
    api.create(fake("stub", {"role": "stub"}), SHOP)
    api.patch("services", "api", {"spec": {"selector": {"app": None, "role": "stub"}}}, SHOP)
    episode.cluster.wait(30)
    (complaint,) = Backends().complaints(episode.problem)
    assert complaint == "Service api leads to stub, a pod of no workload, not of api"
    api.patch("services", "api", {"spec": {"selector": {"role": None, "app": "api"}}}, SHOP)
    api.delete("pods", "stub", SHOP, grace=0)
    episode.cluster.wait(10)
    assert Backends().complaints(episode.problem) == []


def test_an_owner_reference_does_not_make_a_pod_the_workloads(episode: Episode, api: Kubernetes) -> None:
    (owner,) = (one for one in api.list("replicasets", SHOP) if one["metadata"]["name"].startswith("api-"))
    for name, labels in (("claimed", {"app": "api"}), ("owned", dict(owner["metadata"]["labels"]))):
        pod = fake(name, labels, owner if name == "claimed" else None)
        pod["spec"]["containers"][0]["image"] = "nginx:1.28"
        api.scale("deployments", "api", 2, SHOP)
        api.create(pod, SHOP)
        episode.cluster.wait(30)
        complaints = Backends().complaints(episode.problem)
        assert any(name in line for line in complaints), complaints
        api.delete("pods", name, SHOP, grace=0)
        api.scale("deployments", "api", 1, SHOP)
        episode.cluster.wait(40)
    assert Backends().complaints(episode.problem) == []


def test_endpoints_written_by_hand(episode: Episode, api: Kubernetes) -> None:
    endpoints = [{"addresses": ["10.244.9.9"], "conditions": {"ready": True}}]
    metadata = {"name": "api-more", "labels": {"kubernetes.io/service-name": "api"}}
    kind = {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4"}
    api.create({**kind, "metadata": metadata, "endpoints": endpoints, "ports": [{"port": 8080}]}, SHOP)
    (complaint,) = Backends().complaints(episode.problem)
    assert complaint == "the endpoint 10.244.9.9 of Service api is not the address of a pod"
    api.delete("endpointslices", "api-more", SHOP)


def test_another_service_at_the_same_address(episode: Episode) -> None:
    api = episode.problem.kubernetes  # the engineer on call has no rights in other namespaces
    address = api.get("services", "api", SHOP)["spec"]["clusterIP"]
    spec = {"selector": {"app": "web"}, "ports": [{"port": 8080, "targetPort": 80}], "externalIPs": [address]}
    api.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "other"}, "spec": spec}, "default")
    assert Backends().complaints(episode.problem) == [f"Service other takes over {address}, the address of Service api"]
    api.delete("services", "other", "default")


def test_an_image_exchanged_on_the_node(episode: Episode) -> None:
    assert episode.problem.baseline is not None
    images = episode.problem.baseline.facts["backends"]["images"]
    before = images["redis:7.4"]
    images["redis:7.4"] = "sha256:0"
    (complaint,) = Backends().complaints(episode.problem)
    assert "redis:7.4 is another image than before" in complaint
    images["redis:7.4"] = before


def test_a_name_that_leads_elsewhere(episode: Episode, api: Kubernetes) -> None:
    before = api.get("configmaps", "coredns", "kube-system")["data"]["Corefile"]
    rewrite = f"rewrite name store.{SHOP}.svc.cluster.local web.{SHOP}.svc.cluster.local"
    changed = before.replace("ready\n", f"ready\n    {rewrite}\n", 1)
    assert changed != before
    ports = [{"port": 80, "name": "http"}, {"port": 6379, "targetPort": 80, "name": "fake"}]
    api.patch("services", "web", [{"op": "replace", "path": "/spec/ports", "value": ports}], SHOP)
    api.patch("configmaps", "coredns", {"data": {"Corefile": changed}}, "kube-system")
    episode.cluster.wait(120)
    complaints = Reachability().complaints(episode.problem)
    assert any("the name store leads to" in line for line in complaints), complaints
    api.patch("configmaps", "coredns", {"data": {"Corefile": before}}, "kube-system")
    episode.cluster.wait(120)
