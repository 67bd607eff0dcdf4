"""Claims and volumes: matching, waiting, provisioning, losing, reclaiming."""

from __future__ import annotations

from typing import Any

import pytest

from srearena.cluster.embedded.objects import Obj, annotations_of, meta, name_of, uid_of
from tests.controllers.bench import Bench, template

CLAIMS = "persistentvolumeclaims"
VOLUMES = "persistentvolumes"
CLASSES = "storageclasses.storage.k8s.io"
SELECTED = "volume.kubernetes.io/selected-node"


def claim(
    bench: Bench, name: str = "data", size: str = "1Gi", modes: tuple[str, ...] = ("ReadWriteOnce",), **spec: Any
) -> Obj:
    body = {"accessModes": list(modes), "resources": {"requests": {"storage": size}}, **spec}
    return bench.create(CLAIMS, {"metadata": {"name": name}, "spec": body})


def volume(bench: Bench, name: str, size: str = "1Gi", labels: dict[str, str] | None = None, **spec: Any) -> Obj:
    body = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": f"/disks/{name}"},
        **spec,
    }
    return bench.create(VOLUMES, {"metadata": {"name": name, "labels": labels or {}}, "spec": body})


def storage_class(bench: Bench, name: str = "standard", *, default: bool = False, **more: Any) -> None:
    notes = {"storageclass.kubernetes.io/is-default-class": "true"} if default else {}
    body = {
        "metadata": {"name": name, "annotations": notes},
        "provisioner": "rancher.io/local-path",
        "volumeBindingMode": "WaitForFirstConsumer",
        "reclaimPolicy": "Delete",
        **more,
    }
    bench.create(CLASSES, body)


def phase(bench: Bench, name: str = "data") -> str:
    return str(bench.the(CLAIMS, name)["status"]["phase"])


def select_node(bench: Bench, node: str, name: str = "data") -> None:
    """What the scheduler does once it has found a place for the pod."""
    bench.edit(CLAIMS, name, lambda obj: obj["metadata"].setdefault("annotations", {}).update({SELECTED: node}))


def test_the_smallest_volume_that_fits_is_taken(bench: Bench) -> None:
    for name, size in (("small", "512Mi"), ("large", "10Gi"), ("right", "2Gi")):
        volume(bench, name, size, storageClassName="disks")
    volume(bench, "other", "1Gi", storageClassName="else")
    claim(bench, storageClassName="disks")
    bench.advance(2)
    bound = bench.the(CLAIMS, "data")
    assert bound["spec"]["volumeName"] == "right"
    assert bound["status"] == {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "2Gi"}}
    assert annotations_of(bound) == {
        "pv.kubernetes.io/bind-completed": "yes",
        "pv.kubernetes.io/bound-by-controller": "yes",
    }
    taken = bench.the(VOLUMES, "right")
    assert taken["spec"]["claimRef"]["uid"] == uid_of(bound)
    assert taken["status"]["phase"] == "Bound"
    assert {name_of(v): v["status"]["phase"] for v in bench.list(VOLUMES)} == {
        "large": "Available",
        "other": "Available",
        "right": "Bound",
        "small": "Available",
    }


def test_a_selector_and_modes_narrow_the_choice(bench: Bench) -> None:
    volume(bench, "plain", storageClassName="")
    volume(bench, "ssd", labels={"disk": "ssd"}, storageClassName="")
    claim(bench, storageClassName="", selector={"matchLabels": {"disk": "ssd"}})
    claim(bench, "shared", modes=("ReadWriteMany",), storageClassName="")
    bench.advance(2)
    assert bench.the(CLAIMS, "data")["spec"]["volumeName"] == "ssd"
    assert phase(bench, "shared") == "Pending"


def test_without_class_and_volume_a_claim_complains_every_fifteen_seconds(bench: Bench) -> None:
    claim(bench, storageClassName="")
    bench.advance(50)
    text = "no persistent volumes available for this claim and no storage class is set"
    assert bench.events(CLAIMS, "data") == [("Normal", "FailedBinding", text)]
    (event,) = [e for e in bench.list("events") if e["reason"] == "FailedBinding"]
    assert event["count"] == 4
    assert event["source"] == {"component": "persistentvolume-controller"}
    volume(bench, "late", storageClassName="")
    bench.advance(2)
    assert phase(bench) == "Bound"


def test_a_class_that_does_not_exist_is_named(bench: Bench) -> None:
    claim(bench, storageClassName="gone")
    bench.advance(2)
    text = 'storageclass.storage.k8s.io "gone" not found'
    assert bench.events(CLAIMS, "data") == [("Warning", "ProvisioningFailed", text)]


def test_a_claim_without_a_class_gets_the_default_one_also_later(bench: Bench) -> None:
    claim(bench)
    bench.advance(2)
    assert phase(bench) == "Pending"
    storage_class(bench, default=True)
    bench.advance(2)
    assert bench.the(CLAIMS, "data")["spec"]["storageClassName"] == "standard"


def test_a_volume_is_made_where_its_first_consumer_is_placed(bench: Bench) -> None:
    storage_class(bench)
    bound_claim = claim(bench, storageClassName="standard")
    bench.advance(2)
    text = "waiting for first consumer to be created before binding"
    assert bench.events(CLAIMS, "data") == [("Normal", "WaitForFirstConsumer", text)]
    bench.kubelets.idle = lambda pod: True
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    bench.create("pods", {"metadata": {"name": "user"}, "spec": template(volumes=volumes)["spec"]})
    bench.advance(2)
    assert ("Normal", "WaitForPodScheduled", "waiting for pod user to be scheduled") in bench.events(CLAIMS, "data")
    select_node(bench, "node-2")
    bench.advance(5)
    assert phase(bench) == "Bound"
    name = f"pvc-{uid_of(bound_claim)}"
    provisioned = bench.the(VOLUMES, name)
    term = provisioned["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]["matchExpressions"][0]
    assert (term["key"], term["values"]) == ("kubernetes.io/hostname", ["node-2"])
    assert annotations_of(provisioned)["pv.kubernetes.io/provisioned-by"] == "rancher.io/local-path"
    assert provisioned["spec"]["hostPath"]["path"] == f"/var/local-path-provisioner/{name}_default_data"
    events = [(reason, text) for _, reason, text in bench.events(CLAIMS, "data")]
    assert events[2][0] == "ExternalProvisioning"
    assert events[2][1].startswith(
        "Waiting for a volume to be created either by the external provisioner 'rancher.io/local-path' or manually"
    )
    assert events[3:] == [
        ("Provisioning", 'External provisioner is provisioning volume for claim "default/data"'),
        ("ProvisioningSucceeded", f"Successfully provisioned volume {name}"),
    ]


@pytest.mark.parametrize(
    ("modes", "mode", "why"),
    [
        (
            ("ReadWriteMany",),
            "WaitForFirstConsumer",
            "NodePath only supports ReadWriteOnce and ReadWriteOncePod (1.22+) access modes",
        ),
        (("ReadWriteOnce",), "Immediate", "configuration error, no node was specified"),
    ],
)
def test_the_local_provisioner_says_what_it_cannot_do(
    bench: Bench, modes: tuple[str, ...], mode: str, why: str
) -> None:
    storage_class(bench, volumeBindingMode=mode)
    claim(bench, storageClassName="standard", modes=modes)
    if mode == "WaitForFirstConsumer":
        select_node(bench, "node-1")
    bench.advance(5)
    text = f'failed to provision volume with StorageClass "standard": {why}'
    assert ("Warning", "ProvisioningFailed", text) in bench.events(CLAIMS, "data")
    assert phase(bench) == "Pending"
    assert bench.list(VOLUMES) == []


def test_a_provisioner_nobody_runs_is_waited_for(bench: Bench) -> None:
    storage_class(bench, "cloud", provisioner="disk.example.com", volumeBindingMode="Immediate")
    claim(bench, storageClassName="cloud")
    bench.advance(60)
    assert phase(bench) == "Pending"
    assert {reason for _, reason, _ in bench.events(CLAIMS, "data")} == {"ExternalProvisioning"}


def test_a_class_without_a_provisioner_makes_nothing(bench: Bench) -> None:
    storage_class(bench, "manual", provisioner="kubernetes.io/no-provisioner", volumeBindingMode="Immediate")
    claim(bench, storageClassName="manual")
    bench.advance(2)
    text = "no volume plugin matched name: kubernetes.io/no-provisioner"
    assert bench.events(CLAIMS, "data") == [("Warning", "ProvisioningFailed", text)]


def test_volumes_of_a_waiting_class_are_left_to_the_scheduler(bench: Bench) -> None:
    storage_class(bench, "local", provisioner="kubernetes.io/no-provisioner")
    volume(bench, "disk", storageClassName="local")
    claim(bench, storageClassName="local")
    select_node(bench, "node-1")
    bench.advance(2)
    assert phase(bench) == "Pending"
    reference = {"namespace": "default", "name": "data"}
    bench.edit(VOLUMES, "disk", lambda obj: obj["spec"].update(claimRef=reference))
    bench.advance(2)
    assert phase(bench) == "Bound"


def test_a_provisioned_volume_goes_with_its_claim(bench: Bench) -> None:
    storage_class(bench)
    claim(bench, storageClassName="standard")
    select_node(bench, "node-1")
    bench.advance(5)
    bench.delete(CLAIMS, "data")
    bench.advance(3)
    assert bench.get(CLAIMS, "data") is None
    assert bench.list(VOLUMES) == []


def test_a_retained_volume_is_released_and_not_taken_again(bench: Bench) -> None:
    volume(bench, "disk", storageClassName="", persistentVolumeReclaimPolicy="Retain")
    claim(bench, storageClassName="")
    bench.advance(2)
    bench.delete(CLAIMS, "data")
    bench.advance(2)
    assert bench.the(VOLUMES, "disk")["status"]["phase"] == "Released"
    claim(bench, storageClassName="")
    bench.advance(20)
    assert phase(bench) == "Pending"
    bench.edit(VOLUMES, "disk", lambda obj: obj["spec"].pop("claimRef"))
    bench.advance(2)
    assert phase(bench) == "Bound"


def test_a_volume_nobody_can_delete_fails(bench: Bench) -> None:
    volume(bench, "disk", storageClassName="", persistentVolumeReclaimPolicy="Delete")
    claim(bench, storageClassName="")
    bench.advance(2)
    bench.delete(CLAIMS, "data")
    bench.advance(2)
    text = "host_path deleter only supports /tmp/.+ but received provided /disks/disk"
    assert bench.the(VOLUMES, "disk")["status"]["phase"] == "Failed"
    assert bench.the(VOLUMES, "disk")["status"]["message"] == text
    assert ("Warning", "VolumeFailedDelete", text) in bench.events(VOLUMES, "disk")


def test_a_claim_whose_volume_was_torn_away_is_lost(bench: Bench) -> None:
    volume(bench, "disk", storageClassName="")
    claim(bench, storageClassName="")
    bench.advance(2)
    bench.delete(VOLUMES, "disk")
    bench.advance(2)
    assert meta(bench.the(VOLUMES, "disk"))["finalizers"] == ["kubernetes.io/pv-protection"]  # it is in use
    bench.edit(VOLUMES, "disk", lambda obj: obj["metadata"].update(finalizers=[]))
    bench.advance(2)
    assert phase(bench) == "Lost"
    text = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
    assert ("Warning", "ClaimLost", text) in bench.events(CLAIMS, "data")


def test_asking_for_a_certain_volume_can_be_refused(bench: Bench) -> None:
    volume(bench, "tiny", "100Mi", storageClassName="")
    volume(bench, "taken", storageClassName="", claimRef={"namespace": "default", "name": "somebody"})
    claim(bench, "one", storageClassName="", volumeName="tiny")
    claim(bench, "two", storageClassName="", volumeName="taken")
    claim(bench, "three", storageClassName="", volumeName="ghost")
    bench.advance(2)
    assert bench.events(CLAIMS, "one") == [
        ("Warning", "VolumeMismatch", 'Cannot bind to requested volume "tiny": requested PV is too small')
    ]
    assert bench.events(CLAIMS, "two") == [
        ("Warning", "FailedBinding", 'volume "taken" already bound to a different claim.')
    ]
    assert bench.events(CLAIMS, "three") == []
    assert {phase(bench, name) for name in ("one", "two", "three")} == {"Pending"}


def test_growing_a_claim_waits_for_somebody_who_can(bench: Bench) -> None:
    storage_class(bench, allowVolumeExpansion=True)
    claim(bench, storageClassName="standard")
    select_node(bench, "node-1")
    bench.advance(5)
    bench.edit(CLAIMS, "data", lambda obj: obj["spec"]["resources"]["requests"].update(storage="5Gi"))
    bench.advance(2)
    assert bench.the(CLAIMS, "data")["status"]["capacity"] == {"storage": "1Gi"}
    kind, reason, text = bench.events(CLAIMS, "data")[-1]
    assert (kind, reason) == ("Normal", "ExternalExpanding")
    assert text == "waiting for an external controller to expand this PVC"
    assert bench.sources("ExternalExpanding") == {"volume_expand"}
