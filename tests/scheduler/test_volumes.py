"""A volume that waits for its first consumer: one node is chosen for it, and the consumer's place there is kept."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj, annotations_of
from srearena.cluster.embedded.scheduler.volumes import SELECTED_NODE
from tests.scheduler.conftest import Bench

CLAIMS, VOLUMES, CLASSES = "persistentvolumeclaims", "persistentvolumes", "storageclasses.storage.k8s.io"
SIZE = {"storage": "1Gi"}
MOUNT = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
APART = {"labelSelector": {"matchLabels": {"app": "twin"}}, "topologyKey": "kubernetes.io/hostname"}
ALONE = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [APART]}}


def stage(bench: Bench, *nodes: str) -> None:
    """Nodes, and a claim that is provisioned where its first consumer goes."""
    for name in nodes:
        bench.node(name, cpu="1")
    later = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "later"}}
    bench.client.create(
        CLASSES, {**later, "provisioner": "example.com/disk", "volumeBindingMode": "WaitForFirstConsumer"}
    )
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": SIZE}, "storageClassName": "later"}
    metadata = {"name": "data", "namespace": "default"}
    bench.client.create(
        CLAIMS, {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
    )


def claim(bench: Bench) -> Obj:
    found = bench.client.get(CLAIMS, "default", "data")
    assert found is not None
    return found


def provision(bench: Bench, node: str) -> None:
    """What a provisioner does: a volume that one node can use, bound to the claim."""
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    spec = {
        "capacity": SIZE,
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/data"},
        "storageClassName": "later",
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
    }
    bench.client.create(
        VOLUMES, {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"}, "spec": spec}
    )
    bench.client.modify(CLAIMS, "default", "data", lambda obj: obj["spec"].update(volumeName="disk"))
    bench.client.set_status(CLAIMS, claim(bench), {"phase": "Bound"})
    bench.settle(5)


def test_two_that_start_together_do_not_part_from_their_volume(bench: Bench) -> None:
    stage(bench, "a", "b")
    for name in ("first", "second"):
        bench.pod(name, labels={"app": "twin"}, volumes=MOUNT, affinity=ALONE)
    bench.settle(3)
    chosen = annotations_of(claim(bench))[SELECTED_NODE]
    assert bench.why_not("second").startswith(
        "0/2 nodes are available: 1 node(s) didn't find available persistent volumes to bind, "
        "1 node(s) didn't match pod anti-affinity rules."
    )
    provision(bench, chosen)
    assert bench.node_of("first") == chosen
    assert bench.node_of("second") is None
    assert "1 node(s) didn't match PersistentVolume's node affinity" in bench.why_not("second")


def test_the_place_is_kept_while_a_volume_is_made(bench: Bench) -> None:
    stage(bench, "a")
    bench.pod("first", volumes=MOUNT, cpu="800m")
    bench.settle()
    bench.pod("second", cpu="800m")
    bench.settle()
    assert "Insufficient cpu" in bench.why_not("second")
    bench.client.delete("pods", bench.get("first"))
    bench.settle(60)
    assert bench.node_of("second") == "a", "the place of a pod that is gone is free again"


def test_a_volume_that_came_up_elsewhere_is_noticed_before_the_pod_is_bound(bench: Bench) -> None:
    stage(bench, "a", "b")
    bench.pod("first", volumes=MOUNT)
    bench.settle()
    chosen = annotations_of(claim(bench))[SELECTED_NODE]
    other = "b" if chosen == "a" else "a"
    provision(bench, other)
    bench.settle(60)
    assert bench.node_of("first") == other
    assert any("node affinity doesn't match node" in event["message"] for event in bench.events("FailedScheduling"))
