"""Volumes of storage drivers: attached where a pod wants them, one node at a time."""

from __future__ import annotations

from typing import Any

from srearena.cluster.embedded.objects import Obj, dig, name_of
from tests.controllers.bench import Bench, template

ATTACHMENTS = "volumeattachments.storage.k8s.io"


def make_volume(bench: Bench, modes: list[str]) -> None:
    volume = {
        "capacity": {"storage": "1Gi"},
        "accessModes": modes,
        "storageClassName": "fast",
        "csi": {"driver": "disk.example.com", "volumeHandle": "disk-1"},
        "claimRef": {"namespace": "default", "name": "data"},
    }
    bench.create("csidrivers.storage.k8s.io", {"metadata": {"name": "disk.example.com"}, "spec": {}})
    bench.create("persistentvolumes", {"metadata": {"name": "pv-1"}, "spec": volume})
    claim = {"accessModes": modes, "storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}}
    bench.create("persistentvolumeclaims", {"metadata": {"name": "data"}, "spec": {**claim, "volumeName": "pv-1"}})
    bench.advance(2)


def user(bench: Bench, name: str, node: str, **spec: Any) -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    body = template(volumes=volumes, nodeName=node, **spec)["spec"]
    bench.create("pods", {"metadata": {"name": name}, "spec": body})


def places(bench: Bench) -> dict[str, Any]:
    return {dig(a, "spec", "nodeName"): dig(a, "status", "attached") for a in bench.list(ATTACHMENTS)}


def test_a_volume_is_attached_to_the_node_of_its_pod_and_detached_after_it() -> None:
    bench = Bench()
    bench.kubelets.start_seconds = 5
    make_volume(bench, ["ReadWriteOnce"])
    user(bench, "one", "node-1")
    bench.advance(0.5)
    assert places(bench) == {"node-1": False} or places(bench) == {"node-1": None}
    bench.advance(2)
    assert places(bench) == {"node-1": True}
    (attachment,) = bench.list(ATTACHMENTS)
    assert name_of(attachment).startswith("csi-")
    assert attachment["spec"]["attacher"] == "disk.example.com"
    assert bench.the("nodes", "node-1")["status"]["volumesAttached"] == [
        {"name": "kubernetes.io/csi/disk.example.com^disk-1", "devicePath": ""}
    ]
    text = 'AttachVolume.Attach succeeded for volume "pv-1" '
    assert ("Normal", "SuccessfulAttachVolume", text) in bench.events("pods", "one")
    assert bench.sources("SuccessfulAttachVolume") == {"attachdetach-controller"}
    bench.delete("pods", "one")
    bench.advance(5)
    assert places(bench) == {}
    assert "volumesAttached" not in bench.the("nodes", "node-1")["status"]


def test_a_second_node_must_wait_for_an_exclusive_volume() -> None:
    bench = Bench()
    make_volume(bench, ["ReadWriteOnce"])
    user(bench, "one", "node-1")
    bench.advance(5)
    bench.kubelets.start_seconds = 60
    user(bench, "two", "node-2")
    bench.advance(5)
    assert places(bench) == {"node-1": True}
    text = 'Multi-Attach error for volume "pv-1" Volume is already used by pod(s) one'
    assert bench.events("pods", "two") == [("Warning", "FailedAttachVolume", text)]
    bench.delete("pods", "one")
    bench.advance(10)
    assert places(bench) == {"node-2": True}


def test_a_shared_volume_goes_everywhere(bench: Bench) -> None:
    make_volume(bench, ["ReadWriteMany"])
    user(bench, "one", "node-1")
    user(bench, "two", "node-2")
    bench.advance(5)
    assert places(bench) == {"node-1": True, "node-2": True}


def test_a_node_that_cannot_confirm_keeps_the_volume_for_six_minutes() -> None:
    bench = Bench()
    make_volume(bench, ["ReadWriteOnce"])
    user(bench, "one", "node-1")
    bench.advance(5)
    bench.silent_nodes.add("node-1")
    bench.advance(60)
    gone: Obj = bench.the("pods", "one")
    bench.client.delete("pods", gone, grace_seconds=0)
    bench.advance(300)
    assert places(bench) == {"node-1": True}
    bench.advance(70)
    assert places(bench) == {}


def test_volumes_of_the_node_itself_need_no_attaching(bench: Bench) -> None:
    volume = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "local",
        "hostPath": {"path": "/data"},
    }
    bench.create("persistentvolumes", {"metadata": {"name": "pv-1"}, "spec": volume})
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "local",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    bench.create("persistentvolumeclaims", {"metadata": {"name": "data"}, "spec": claim})
    user(bench, "one", "node-1")
    bench.advance(5)
    assert places(bench) == {}


def test_an_attachment_of_another_client_is_left_alone() -> None:
    bench = Bench()
    make_volume(bench, ["ReadWriteOnce"])
    spec = {"attacher": "disk.example.com", "nodeName": "node-1", "source": {"persistentVolumeName": "pv-1"}}
    bench.create(ATTACHMENTS, {"metadata": {"name": "mine"}, "spec": spec})
    bench.advance(600)
    assert [name_of(found) for found in bench.list(ATTACHMENTS)] == ["mine"]


def test_a_volume_of_a_driver_that_is_not_installed_waits_for_it() -> None:
    bench = Bench()
    make_volume(bench, ["ReadWriteOnce"])
    bench.delete("csidrivers.storage.k8s.io", "disk.example.com")
    user(bench, "one", "node-1")
    bench.advance(130)
    assert places(bench) == {"node-1": False}
    ((_, reason, text),) = bench.events("pods", "one")
    assert reason == "FailedAttachVolume" and "timed out waiting for external-attacher of disk.example.com" in text
    bench.create("csidrivers.storage.k8s.io", {"metadata": {"name": "disk.example.com"}, "spec": {}})
    bench.advance(5)
    assert places(bench) == {"node-1": True}
