"""What keeps us from using a cluster is said in a line each, before anything is changed."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
import yaml

from srearena.cluster import Cluster, ClusterError
from srearena.cluster.kubernetes import KubernetesCluster, read_context
from srearena.cluster.kubernetes.quantities import parse_quantity
from srearena.conductor.shared_cluster import Needs, PreflightFailed
from srearena.conductor.shared_cluster.preflight import OLDEST, check_access, check_capacity
from srearena.service.kubernetes import Kubernetes, Obj
from srearena.service.manifests import Manifest

NOTHING = Needs(())


def complaints(kubeconfig: Path, needs: Needs = NOTHING, context: str = "", *, trusted: bool = False) -> list[str]:
    """The lines of a refusal; none where the cluster can be used."""
    with (
        KubernetesCluster(kubeconfig, context=context) as cluster,
        Kubernetes(cluster.kubeconfig, timeout=5) as client,
    ):
        try:
            check_access(cluster.context, client, trusted=trusted)
            check_capacity(cluster.context, client, needs)
        except PreflightFailed as refused:
            return refused.complaints
    return []


def changed(theirs: Cluster, path: Path, **values: str) -> Path:
    """The kubeconfig with other names or addresses in it."""
    document = yaml.safe_load(theirs.kubeconfig.read_text())
    context = document["contexts"][0]
    if "server" in values:
        document["clusters"][0]["cluster"]["server"] = values["server"]
    if "token" in values:
        document["users"][0]["user"] = {"token": values["token"]}
    if "context" in values:
        context["name"] = document["current-context"] = values["context"]
    if "cluster" in values:
        document["clusters"][0]["name"] = context["context"]["cluster"] = values["cluster"]
    path.write_text(yaml.safe_dump(document))
    return path


def manifest(kind: str, spec: Obj) -> Manifest:
    api_version = "apps/v1" if kind in ("Deployment", "StatefulSet", "DaemonSet") else "v1"
    return Manifest(
        Path("shop.yaml"), 1, {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": spec}
    )


def pods(replicas: int, **requests: str) -> Manifest:
    container = {"name": "c", "image": "busybox", "resources": {"requests": requests}}
    return manifest("Deployment", {"replicas": replicas, "template": {"spec": {"containers": [container]}}})


def test_a_healthy_cluster_has_no_complaint(theirs: Cluster) -> None:
    needs = Needs(("shop", "platform"), (pods(3, cpu="100m", memory="64Mi"), manifest("PersistentVolumeClaim", {})))
    assert complaints(theirs.kubeconfig, needs) == []


def test_a_cluster_that_is_not_there(theirs: Cluster, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        nobody = changed(theirs, tmp_path / "k", server=f"https://127.0.0.1:{taken.getsockname()[1]}")
        [line] = complaints(nobody)
    assert "does not answer" in line and "kubectl get nodes" in line


def test_credentials_that_do_not_fit(theirs: Cluster, tmp_path: Path) -> None:
    [line] = complaints(changed(theirs, tmp_path / "k", token="wrong"))
    assert "does not accept the credentials" in line


def test_rights_that_are_missing_are_named(theirs: Cluster, api: Kubernetes, tmp_path: Path) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "guest", "namespace": "default"}}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "guest-edits"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"kind": "ServiceAccount", "name": "guest", "namespace": "default"}],
    }
    for obj in (account, binding):
        api.apply(obj)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    path = "/api/v1/namespaces/default/serviceaccounts/guest/token"
    token = api.raw(path, method="POST", body=request)["status"]["token"]
    found = complaints(changed(theirs, tmp_path / "k", token=token))
    assert any("no right to create namespaces:" in line for line in found)
    assert any("clusterroles.rbac.authorization.k8s.io" in line for line in found)
    assert not any("deployments" in line for line in found), "that right is there"


def test_a_version_that_is_too_old(theirs: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("srearena.conductor.shared_cluster.preflight.OLDEST", (1, 99))
    [line] = complaints(theirs.kubeconfig)
    assert "v1.34" in line and "too old: 1.99 or newer" in line
    assert OLDEST < (1, 34)


def test_no_default_storage_class(theirs: Cluster, api: Kubernetes) -> None:
    needs = Needs((), (manifest("StatefulSet", {"volumeClaimTemplates": [{"spec": {}}]}),))
    named = Needs((), (manifest("PersistentVolumeClaim", {"storageClassName": "slow"}),))
    note = "storageclass.kubernetes.io/is-default-class"
    classes = [obj["metadata"]["name"] for obj in api.list("storageclasses")]
    for name in classes:
        api.patch("storageclasses", name, {"metadata": {"annotations": {note: "false"}}})
    try:
        [line] = complaints(theirs.kubeconfig, needs)
        assert "no default storage class" in line and "StatefulSet x" in line
        assert complaints(theirs.kubeconfig, named) == []
    finally:
        for name in classes:
            api.patch("storageclasses", name, {"metadata": {"annotations": {note: "true"}}})


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (pods(2, cpu="900"), "not enough allocatable cpu"),
        (pods(1, memory="9Ti"), "not enough allocatable memory"),
        (pods(2000), "not enough room for pods"),
    ],
)
def test_not_enough_room(theirs: Cluster, wanted: Manifest, words: str) -> None:
    [line] = complaints(theirs.kubeconfig, Needs((), (wanted,)))
    assert words in line


def test_nodes_that_take_no_pods_are_no_room(theirs: Cluster, api: Kubernetes) -> None:
    workers = [n["metadata"]["name"] for n in api.list("nodes") if "worker" in n["metadata"]["name"]]
    for name in workers:
        api.patch("nodes", name, {"spec": {"unschedulable": True}})
    try:
        [line] = complaints(theirs.kubeconfig)
        assert "no node accepts ordinary pods" in line
    finally:
        for name in workers:
            api.patch("nodes", name, {"spec": {"unschedulable": False}})


def test_a_namespace_of_somebody_else_is_not_used(theirs: Cluster) -> None:
    [line] = complaints(theirs.kubeconfig, Needs(("default",)))
    assert "the namespace default exists and belongs to others" in line


@pytest.mark.parametrize(
    "names",
    [
        {"context": "prod"},
        {"context": "eu-production-3"},
        {"cluster": "gke_acme_PRD"},
        {"context": "live.example.com"},
        {"server": "https://api.prod.example.com:6443"},
    ],
)
def test_what_looks_like_production_is_not_even_asked(theirs: Cluster, tmp_path: Path, names: dict[str, str]) -> None:
    path = changed(theirs, tmp_path / "k", **names)
    [line] = complaints(path)
    assert "looks like production" in line and "--yes-this-cluster" in line
    if "server" not in names:
        assert complaints(path, trusted=True) == []


@pytest.mark.parametrize("name", ["kind-shop", "reproduction", "product-team", "deliver", "staging", "olive"])
def test_other_names_are_fine(theirs: Cluster, tmp_path: Path, name: str) -> None:
    assert read_context(changed(theirs, tmp_path / "k", context=name)).production_name == ""


def test_a_context_that_is_not_there_is_named(theirs: Cluster) -> None:
    with pytest.raises(ClusterError, match="no context 'elsewhere': there are"):
        KubernetesCluster(theirs.kubeconfig, context="elsewhere")


def test_only_the_chosen_context_is_handed_on(theirs: Cluster, tmp_path: Path) -> None:
    document = yaml.safe_load(theirs.kubeconfig.read_text())
    document["clusters"].append(
        {"name": "other", "cluster": {"server": "https://other", "certificate-authority": "ca"}}
    )
    document["users"].append({"name": "me", "user": {"token": "secret"}})
    document["contexts"].append({"name": "second", "context": {"cluster": "other", "user": "me", "namespace": "mine"}})
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(document))
    with KubernetesCluster(path, context="second") as cluster:
        narrowed = yaml.safe_load(cluster.kubeconfig.read_text())
        assert cluster.kubeconfig.stat().st_mode & 0o77 == 0
        assert narrowed["current-context"] == "second"
        assert [entry["name"] for entry in narrowed["users"]] == ["me"]
        assert narrowed["contexts"][0]["context"] == {"cluster": "other", "user": "me"}
        assert narrowed["clusters"][0]["cluster"]["certificate-authority"] == str(tmp_path / "ca")
        place = cluster.kubeconfig
    assert not place.exists()


@pytest.mark.parametrize(
    ("text", "number"),
    [("250m", 0.25), ("2", 2), ("1Gi", 2**30), ("1k", 1000), ("1e3", 1000), ("5E", 5e18), (None, 0), ("much", 0)],
)
def test_amounts(text: object, number: float) -> None:
    assert parse_quantity(text) == pytest.approx(number)
