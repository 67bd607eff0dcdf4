"""What goes with its owner, what stays, and what becomes of pods that nobody ends."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj, is_terminating, meta, name_of, owner_reference, uid_of
from tests.controllers.bench import Bench, template, workload

DEPLOYMENTS = "deployments.apps"
SETS = "replicasets.apps"


def config(
    bench: Bench, name: str, owners: list[Obj] | None = None, namespace: str = "default", **metadata: object
) -> Obj:
    references = [{**owner_reference(owner, controller=False)} for owner in owners or ()]
    body = {"metadata": {"name": name, "namespace": namespace, "ownerReferences": references, **metadata}}
    return bench.create("configmaps", body)


def test_in_the_background_the_owner_goes_first(bench: Bench) -> None:
    bench.kubelets.stop_seconds = 10
    bench.create(DEPLOYMENTS, workload(replicas=2))
    bench.advance(5)
    bench.delete(DEPLOYMENTS, "web")
    assert bench.get(DEPLOYMENTS, "web") is None
    bench.advance(1)
    assert bench.list(SETS) == []
    assert all(is_terminating(pod) for pod in bench.pods())
    bench.advance(12)
    assert bench.pods() == []


def test_in_the_foreground_the_owner_waits(bench: Bench) -> None:
    bench.kubelets.stop_seconds = 10
    bench.create(DEPLOYMENTS, workload(replicas=2))
    bench.advance(5)
    bench.delete(DEPLOYMENTS, "web", propagation="Foreground")
    bench.advance(5)
    assert meta(bench.the(DEPLOYMENTS, "web"))["finalizers"] == ["foregroundDeletion"]
    assert meta(bench.list(SETS)[0])["finalizers"] == ["foregroundDeletion"]
    assert not any(meta(pod).get("finalizers") for pod in bench.pods())
    bench.advance(10)
    assert bench.pods() == []
    assert bench.list(SETS) == []
    assert bench.get(DEPLOYMENTS, "web") is None


def test_orphans_stay_and_forget_their_owner(bench: Bench) -> None:
    bench.create(SETS, workload(replicas=2))
    bench.advance(5)
    bench.delete(SETS, "web", propagation="Orphan")
    bench.advance(2)
    assert bench.get(SETS, "web") is None
    assert len(bench.pods()) == 2
    assert not any(meta(pod).get("ownerReferences") for pod in bench.pods())


def test_with_two_owners_the_last_one_counts(bench: Bench) -> None:
    one, two = config(bench, "one"), config(bench, "two")
    config(bench, "child", [one, two])
    bench.delete("configmaps", "one")
    bench.advance(1)
    assert [r["name"] for r in meta(bench.the("configmaps", "child"))["ownerReferences"]] == ["two"]
    bench.delete("configmaps", "two")
    bench.advance(1)
    assert bench.get("configmaps", "child") is None


def test_an_owner_that_never_was_takes_its_dependents_along(bench: Bench) -> None:
    ghost = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ghost", "uid": "0000"}}
    config(bench, "child", [ghost])
    bench.advance(1)
    assert bench.get("configmaps", "child") is None


def test_owners_do_not_reach_across_namespaces(bench: Bench) -> None:
    owner = config(bench, "owner", namespace="kube-system")
    config(bench, "child", [owner])
    bench.advance(1)
    assert bench.get("configmaps", "child") is None
    ((kind, reason, text),) = bench.events("configmaps", "child")
    assert (kind, reason) == ("Warning", "OwnerRefInvalidNamespace")
    assert text == (
        f"ownerRef [v1/ConfigMap, namespace: default, name: owner, uid: {uid_of(owner)}] "
        'does not exist in namespace "default"'
    )


def test_a_finalizer_holds_a_dependent_and_its_waiting_owner(bench: Bench) -> None:
    owner = config(bench, "owner")
    config(bench, "child", [owner], finalizers=["example.com/hold"])
    bench.delete("configmaps", "owner", propagation="Foreground")
    bench.advance(60)
    assert bench.get("configmaps", "owner") is not None
    bench.edit("configmaps", "child", lambda obj: obj["metadata"].update(finalizers=[]))
    bench.advance(1)
    assert bench.get("configmaps", "child") is None
    assert bench.get("configmaps", "owner") is None


def test_pods_of_a_vanished_node_are_given_up(bench: Bench) -> None:
    bench.create(DEPLOYMENTS, workload(replicas=3))
    bench.advance(5)
    lost = next(pod for pod in bench.pods() if pod["spec"]["nodeName"] == "node-2")
    failed: list[Obj] = []
    bench.world.on_change(
        "pods", lambda change: failed.append(change.new) if name_of(change.new) == name_of(lost) else None
    )
    bench.delete("nodes", "node-2")
    bench.advance(30)
    assert bench.get("pods", name_of(lost)) is not None
    bench.advance(30)
    assert bench.get("pods", name_of(lost)) is None
    last = failed[-1]["status"]
    assert last["phase"] == "Failed"
    (target,) = [c for c in last["conditions"] if c["type"] == "DisruptionTarget"]
    assert (target["reason"], target["message"]) == ("DeletionByPodGC", "PodGC: node no longer exists")
    bench.advance(3)
    assert len(bench.pods()) == 3


def test_a_claim_in_use_is_not_taken_away(bench: Bench) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}}
    bench.create("persistentvolumeclaims", {"metadata": {"name": "data"}, "spec": claim})
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    spec = template(volumes=volumes)["spec"]
    bench.create("pods", {"metadata": {"name": "user"}, "spec": spec})
    bench.advance(3)
    assert meta(bench.the("persistentvolumeclaims", "data"))["finalizers"] == ["kubernetes.io/pvc-protection"]
    bench.delete("persistentvolumeclaims", "data")
    bench.advance(30)
    assert is_terminating(bench.the("persistentvolumeclaims", "data"))
    bench.delete("pods", "user")
    bench.advance(3)
    assert bench.get("persistentvolumeclaims", "data") is None


def test_a_circle_of_blocking_owners_does_not_wait_for_itself(bench: Bench) -> None:
    circle = [config(bench, name) for name in ("one", "two", "three")]
    for obj, owner in zip(circle, (circle[2], circle[0], circle[1]), strict=True):
        reference = {**owner_reference(owner, controller=False), "blockOwnerDeletion": True}
        bench.change("configmaps", name_of(obj), metadata__ownerReferences=[reference])
    bench.delete("configmaps", "one", propagation="Foreground")
    bench.advance(5)
    assert [bench.get("configmaps", name_of(obj)) for obj in circle] == [None, None, None]
