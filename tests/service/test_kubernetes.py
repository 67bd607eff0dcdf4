"""Our Kubernetes client on a cluster: every verb, by the names people use."""

from __future__ import annotations

from typing import Any

import pytest

from srearena.cluster import Cluster, start_embedded
from srearena.service.errors import AlreadyExists, Invalid, NotFound, TimedOut, UnknownResource
from srearena.service.kubernetes import Kubernetes

Obj = dict[str, Any]


def pod(name: str, *command: str, image: str = "busybox:1.36") -> Obj:
    container: Obj = {"name": "main", "image": image}
    if command:
        container["command"] = list(command)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}


def web(replicas: int = 1) -> list[Obj]:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "nginx:1.27"}]}}
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "web"},
            "spec": {"selector": labels, "ports": [{"port": 8080, "targetPort": 80}]},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web"},
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
        },
    ]


@pytest.mark.parametrize("name", ["deployments", "Deployment", "deploy", "deployments.apps", "deployments.v1.apps"])
def test_a_resource_goes_by_every_name_that_kubectl_knows(api: Kubernetes, name: str) -> None:
    assert api.resource(name).name == "deployments.apps"


def test_the_core_group_wins_where_a_name_is_taken_twice(api: Kubernetes) -> None:
    assert api.resource("events").group == ""
    assert api.resource("events.events.k8s.io").group == "events.k8s.io"


def test_a_name_that_is_wrong_gets_the_nearest_ones(api: Kubernetes) -> None:
    with pytest.raises(UnknownResource, match="'deploymnt': did you mean deployment"):
        api.get("deploymnt", "web")


def test_objects_come_and_go_as_plain_dicts(api: Kubernetes) -> None:
    api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "facts"}, "data": {"a": "1"}})
    with pytest.raises(AlreadyExists):
        api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "facts"}})
    found = api.get("cm", "facts")
    found["data"]["b"] = "2"
    api.replace(found)
    api.patch("cm", "facts", {"data": {"a": None}})
    api.patch("cm", "facts", [{"op": "add", "path": "/data/c", "value": "3"}])
    assert api.get("configmaps", "facts")["data"] == {"b": "2", "c": "3"}
    assert [o["kind"] for o in api.list("cm", "default", fields="metadata.name=facts")] == ["ConfigMap"]
    api.delete("cm", "facts")
    assert api.find("cm", "facts") is None
    api.delete("cm", "facts")
    with pytest.raises(NotFound):
        api.delete("cm", "facts", missing_ok=False)


def test_a_dry_run_is_validated_and_changes_nothing(api: Kubernetes) -> None:
    api.apply(pod("later"), dry_run=True)
    assert api.find("pods", "later") is None
    with pytest.raises(Invalid, match="image"):
        api.apply(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "x"},
                "spec": {"containers": [{"name": "x", "image": ""}]},
            },
            dry_run=True,
        )


def test_what_the_harness_does_looks_like_an_operators_work(cluster: Cluster, api: Kubernetes) -> None:
    for obj in web():
        api.apply(obj)
    api.patch("deploy", "web", {"metadata": {"labels": {"team": "a"}}})
    api.restart("deploy", "web")
    api.scale("deploy", "web", 2)
    managers = {
        entry["manager"]
        for entry in api.get("deploy", "web")["metadata"]["managedFields"]
        if entry.get("subresource") != "status"
    }
    assert managers == {"kubectl", "kubectl-patch", "kubectl-rollout"}


def test_a_scaled_and_restarted_workload_has_new_pods(cluster: Cluster, api: Kubernetes) -> None:
    for obj in web():
        api.apply(obj)
    cluster.wait(30)
    before = {p["metadata"]["name"] for p in api.list("pods", "default")}
    api.scale("deploy", "web", 3)
    api.restart("deploy", "web")
    cluster.wait(60)
    after = {p["metadata"]["name"] for p in api.list("pods", "default", labels="app=web")}
    assert len(before) == 1 and len(after) == 3 and not before & after


def test_a_command_gives_output_errors_and_status_while_the_clock_stands_still(
    cluster: Cluster, api: Kubernetes
) -> None:
    api.apply(pod("shell", "sleep", "100000"))
    cluster.wait(20)
    done = api.exec("shell", ["sh", "-c", "cat; echo no >&2; sleep 5; exit 3"], stdin="yes")
    assert (done.status, done.output, done.errors) == (3, "yes", "no\n")
    assert api.exec("shell", ["wc", "-c"], stdin="x" * 100_000).output.strip() == "100000"
    with pytest.raises(NotFound):
        api.exec("nobody", ["ls"])
    with pytest.raises(Invalid, match="container main2 is not valid"):
        api.exec("shell", ["ls"], container="main2")


def test_requests_reach_services_and_pods_through_the_api(cluster: Cluster, api: Kubernetes) -> None:
    for obj in web():
        api.apply(obj)
    assert api.request_service("web", 8080).status == 503
    cluster.wait(30)
    reply = api.request_service("web", 8080, "/")
    assert reply.ok and "Welcome to nginx!" in reply.text
    name = api.list("pods", "default", labels="app=web")[0]["metadata"]["name"]
    assert api.request_pod(name, 80, "/missing").status == 404
    assert "GET /missing" in api.logs(name, tail=1)


def test_a_restart_is_stamped_with_the_clusters_time() -> None:
    """Not with ours: the stamp is part of the template, and so of the names of the pods."""
    with start_embedded(in_process=True, speed=0, start=1_767_225_600) as cluster, Kubernetes.of(cluster) as api:
        for obj in web():
            api.apply(obj)
        assert api.now() == "2026-01-01T00:00:00Z"
        cluster.wait(90)
        api.restart("deploy", "web")
        template = api.get("deploy", "web")["spec"]["template"]
        assert template["metadata"]["annotations"] == {"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:01:30Z"}
        assert [o["metadata"]["name"] for o in api.list("cm", "default")] == ["kube-root-ca.crt"]


def test_waiting_takes_the_clusters_time_and_ends(cluster: Cluster, api: Kubernetes) -> None:
    api.apply(pod("short", "sleep", "40") | {})
    api.wait_for(lambda: api.get("pods", "short")["status"].get("phase") == "Running", 60)
    with pytest.raises(TimedOut, match="waited 30 s in vain for a miracle"):
        api.wait_for(lambda: None, 30, what="a miracle")


def test_custom_kinds_are_found_once_they_are_served(cluster: Cluster, api: Kubernetes) -> None:
    api.list("pods")
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    names = {"kind": "Widget", "plural": "widgets", "singular": "widget", "shortNames": ["wd"]}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    api.apply(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.acme.io"},
            "spec": {"group": "acme.io", "scope": "Namespaced", "names": names, "versions": [version]},
        }
    )
    cluster.wait(10)
    api.apply({"apiVersion": "acme.io/v1", "kind": "Widget", "metadata": {"name": "one"}, "spec": {"size": 1}})
    api.patch("wd", "one", {"spec": {"size": 2}})
    assert api.get("widget", "one")["spec"] == {"size": 2}


def test_long_lists_come_page_by_page(api: Kubernetes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("srearena.service.kubernetes._PAGE", 7)
    for number in range(20):
        api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{number}", "labels": {"n": "y"}}})
    assert len(api.list("cm", "default", labels="n=y")) == 20


def test_it_reaches_a_cluster_in_a_process_of_its_own() -> None:
    with start_embedded() as cluster, Kubernetes(cluster.kubeconfig) as api:
        assert {o["metadata"]["name"] for o in api.list("namespaces")} >= {"default", "kube-system"}
