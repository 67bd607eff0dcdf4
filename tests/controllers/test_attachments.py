"""Volumes of storage drivers: attached where a pod wants them, one node at a time."""

from __future__ import annotations

from typing import Any

from srearena.cluster.embedded.objects import Obj, dig, name_of
from tests.controllers.stage import Stage, template

ATTACHMENTS = "volumeattachments.storage.k8s.io"


def make_volume(stage: Stage, modes: list[str]) -> None:
    volume = {
        "capacity": {"storage": "1Gi"},
        "accessModes": modes,
        "storageClassName": "fast",
        "csi": {"driver": "disk.example.com", "volumeHandle": "disk-1"},
        "claimRef": {"namespace": "default", "name": "data"},
    }
    stage.create("persistentvolumes", {"metadata": {"name": "pv-1"}, "spec": volume})
    claim = {"accessModes": modes, "storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}}
    stage.create("persistentvolumeclaims", {"metadata": {"name": "data"}, "spec": {**claim, "volumeName": "pv-1"}})
    stage.advance(2)


def user(stage: Stage, name: str, node: str, **spec: Any) -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    body = template(volumes=volumes, nodeName=node, **spec)["spec"]
    stage.create("pods", {"metadata": {"name": name}, "spec": body})


def places(stage: Stage) -> dict[str, Any]:
    return {dig(a, "spec", "nodeName"): dig(a, "status", "attached") for a in stage.list(ATTACHMENTS)}


def test_a_volume_is_attached_to_the_node_of_its_pod_and_detached_after_it() -> None:
    stage = Stage()
    stage.kubelets.start_seconds = 5
    make_volume(stage, ["ReadWriteOnce"])
    user(stage, "one", "node-1")
    stage.advance(0.5)
    assert places(stage) == {"node-1": False} or places(stage) == {"node-1": None}
    stage.advance(2)
    assert places(stage) == {"node-1": True}
    (attachment,) = stage.list(ATTACHMENTS)
    assert name_of(attachment).startswith("csi-")
    assert attachment["spec"]["attacher"] == "disk.example.com"
    assert stage.the("nodes", "node-1")["status"]["volumesAttached"] == [
        {"name": "kubernetes.io/csi/disk.example.com^disk-1", "devicePath": ""}
    ]
    text = 'AttachVolume.Attach succeeded for volume "pv-1" '
    assert ("Normal", "SuccessfulAttachVolume", text) in stage.events("pods", "one")
    assert stage.sources("SuccessfulAttachVolume") == {"attachdetach-controller"}
    stage.delete("pods", "one")
    stage.advance(5)
    assert places(stage) == {}
    assert "volumesAttached" not in stage.the("nodes", "node-1")["status"]


def test_a_second_node_must_wait_for_an_exclusive_volume() -> None:
    stage = Stage()
    make_volume(stage, ["ReadWriteOnce"])
    user(stage, "one", "node-1")
    stage.advance(5)
    stage.kubelets.start_seconds = 60
    user(stage, "two", "node-2")
    stage.advance(5)
    assert places(stage) == {"node-1": True}
    text = 'Multi-Attach error for volume "pv-1" Volume is already used by pod(s) one'
    assert stage.events("pods", "two") == [("Warning", "FailedAttachVolume", text)]
    stage.delete("pods", "one")
    stage.advance(10)
    assert places(stage) == {"node-2": True}


def test_a_shared_volume_goes_everywhere(stage: Stage) -> None:
    make_volume(stage, ["ReadWriteMany"])
    user(stage, "one", "node-1")
    user(stage, "two", "node-2")
    stage.advance(5)
    assert places(stage) == {"node-1": True, "node-2": True}


def test_a_node_that_cannot_confirm_keeps_the_volume_for_six_minutes() -> None:
    stage = Stage()
    make_volume(stage, ["ReadWriteOnce"])
    user(stage, "one", "node-1")
    stage.advance(5)
    stage.silent_nodes.add("node-1")
    stage.advance(60)
    gone: Obj = stage.the("pods", "one")
    stage.client.delete("pods", gone, grace_seconds=0)
    stage.advance(300)
    assert places(stage) == {"node-1": True}
    stage.advance(70)
    assert places(stage) == {}


def test_volumes_of_the_node_itself_need_no_attaching(stage: Stage) -> None:
    volume = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "local",
        "hostPath": {"path": "/data"},
    }
    stage.create("persistentvolumes", {"metadata": {"name": "pv-1"}, "spec": volume})
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "local",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    stage.create("persistentvolumeclaims", {"metadata": {"name": "data"}, "spec": claim})
    user(stage, "one", "node-1")
    stage.advance(5)
    assert places(stage) == {}
