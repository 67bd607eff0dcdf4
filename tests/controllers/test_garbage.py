"""What goes with its owner, what stays, and what becomes of pods that nobody ends."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj, is_terminating, meta, name_of, owner_reference, uid_of
from tests.controllers.stage import Stage, template, workload

DEPLOYMENTS = "deployments.apps"
SETS = "replicasets.apps"


def config(
    stage: Stage, name: str, owners: list[Obj] | None = None, namespace: str = "default", **metadata: object
) -> Obj:
    references = [{**owner_reference(owner, controller=False)} for owner in owners or ()]
    body = {"metadata": {"name": name, "namespace": namespace, "ownerReferences": references, **metadata}}
    return stage.create("configmaps", body)


def test_in_the_background_the_owner_goes_first(stage: Stage) -> None:
    stage.kubelets.stop_seconds = 10
    stage.create(DEPLOYMENTS, workload(replicas=2))
    stage.advance(5)
    stage.delete(DEPLOYMENTS, "web")
    assert stage.get(DEPLOYMENTS, "web") is None
    stage.advance(1)
    assert stage.list(SETS) == []
    assert all(is_terminating(pod) for pod in stage.pods())
    stage.advance(12)
    assert stage.pods() == []


def test_in_the_foreground_the_owner_waits(stage: Stage) -> None:
    stage.kubelets.stop_seconds = 10
    stage.create(DEPLOYMENTS, workload(replicas=2))
    stage.advance(5)
    stage.delete(DEPLOYMENTS, "web", propagation="Foreground")
    stage.advance(5)
    assert meta(stage.the(DEPLOYMENTS, "web"))["finalizers"] == ["foregroundDeletion"]
    assert meta(stage.list(SETS)[0])["finalizers"] == ["foregroundDeletion"]
    assert not any(meta(pod).get("finalizers") for pod in stage.pods())
    stage.advance(10)
    assert stage.pods() == []
    assert stage.list(SETS) == []
    assert stage.get(DEPLOYMENTS, "web") is None


def test_orphans_stay_and_forget_their_owner(stage: Stage) -> None:
    stage.create(SETS, workload(replicas=2))
    stage.advance(5)
    stage.delete(SETS, "web", propagation="Orphan")
    stage.advance(2)
    assert stage.get(SETS, "web") is None
    assert len(stage.pods()) == 2
    assert not any(meta(pod).get("ownerReferences") for pod in stage.pods())


def test_with_two_owners_the_last_one_counts(stage: Stage) -> None:
    one, two = config(stage, "one"), config(stage, "two")
    config(stage, "child", [one, two])
    stage.delete("configmaps", "one")
    stage.advance(1)
    assert [r["name"] for r in meta(stage.the("configmaps", "child"))["ownerReferences"]] == ["two"]
    stage.delete("configmaps", "two")
    stage.advance(1)
    assert stage.get("configmaps", "child") is None


def test_an_owner_that_never_was_takes_its_dependents_along(stage: Stage) -> None:
    ghost = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ghost", "uid": "0000"}}
    config(stage, "child", [ghost])
    stage.advance(1)
    assert stage.get("configmaps", "child") is None


def test_owners_do_not_reach_across_namespaces(stage: Stage) -> None:
    owner = config(stage, "owner", namespace="kube-system")
    config(stage, "child", [owner])
    stage.advance(1)
    assert stage.get("configmaps", "child") is None
    ((kind, reason, text),) = stage.events("configmaps", "child")
    assert (kind, reason) == ("Warning", "OwnerRefInvalidNamespace")
    assert text == (
        f"ownerRef [v1/ConfigMap, namespace: default, name: owner, uid: {uid_of(owner)}] "
        'does not exist in namespace "default"'
    )


def test_a_finalizer_holds_a_dependent_and_its_waiting_owner(stage: Stage) -> None:
    owner = config(stage, "owner")
    config(stage, "child", [owner], finalizers=["example.com/hold"])
    stage.delete("configmaps", "owner", propagation="Foreground")
    stage.advance(60)
    assert stage.get("configmaps", "owner") is not None
    stage.edit("configmaps", "child", lambda obj: obj["metadata"].update(finalizers=[]))
    stage.advance(1)
    assert stage.get("configmaps", "child") is None
    assert stage.get("configmaps", "owner") is None


def test_pods_of_a_vanished_node_are_given_up(stage: Stage) -> None:
    stage.create(DEPLOYMENTS, workload(replicas=3))
    stage.advance(5)
    lost = next(pod for pod in stage.pods() if pod["spec"]["nodeName"] == "node-2")
    failed: list[Obj] = []
    stage.world.on_change(
        "pods", lambda change: failed.append(change.new) if name_of(change.new) == name_of(lost) else None
    )
    stage.delete("nodes", "node-2")
    stage.advance(30)
    assert stage.get("pods", name_of(lost)) is not None
    stage.advance(30)
    assert stage.get("pods", name_of(lost)) is None
    last = failed[-1]["status"]
    assert last["phase"] == "Failed"
    (target,) = [c for c in last["conditions"] if c["type"] == "DisruptionTarget"]
    assert (target["reason"], target["message"]) == ("DeletionByPodGC", "PodGC: node no longer exists")
    stage.advance(3)
    assert len(stage.pods()) == 3


def test_a_claim_in_use_is_not_taken_away(stage: Stage) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}}
    stage.create("persistentvolumeclaims", {"metadata": {"name": "data"}, "spec": claim})
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    spec = template(volumes=volumes)["spec"]
    stage.create("pods", {"metadata": {"name": "user"}, "spec": spec})
    stage.advance(3)
    assert meta(stage.the("persistentvolumeclaims", "data"))["finalizers"] == ["kubernetes.io/pvc-protection"]
    stage.delete("persistentvolumeclaims", "data")
    stage.advance(30)
    assert is_terminating(stage.the("persistentvolumeclaims", "data"))
    stage.delete("pods", "user")
    stage.advance(3)
    assert stage.get("persistentvolumeclaims", "data") is None
