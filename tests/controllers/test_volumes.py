"""Claims and volumes: matching, waiting, provisioning, losing, reclaiming."""

from __future__ import annotations

from typing import Any

import pytest

from srearena.cluster.embedded.objects import Obj, annotations_of, meta, name_of, uid_of
from tests.controllers.stage import Stage, template

CLAIMS = "persistentvolumeclaims"
VOLUMES = "persistentvolumes"
CLASSES = "storageclasses.storage.k8s.io"
SELECTED = "volume.kubernetes.io/selected-node"


def claim(
    stage: Stage, name: str = "data", size: str = "1Gi", modes: tuple[str, ...] = ("ReadWriteOnce",), **spec: Any
) -> Obj:
    body = {"accessModes": list(modes), "resources": {"requests": {"storage": size}}, **spec}
    return stage.create(CLAIMS, {"metadata": {"name": name}, "spec": body})


def volume(stage: Stage, name: str, size: str = "1Gi", labels: dict[str, str] | None = None, **spec: Any) -> Obj:
    body = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": f"/disks/{name}"},
        **spec,
    }
    return stage.create(VOLUMES, {"metadata": {"name": name, "labels": labels or {}}, "spec": body})


def storage_class(stage: Stage, name: str = "standard", *, default: bool = False, **more: Any) -> None:
    notes = {"storageclass.kubernetes.io/is-default-class": "true"} if default else {}
    body = {
        "metadata": {"name": name, "annotations": notes},
        "provisioner": "rancher.io/local-path",
        "volumeBindingMode": "WaitForFirstConsumer",
        "reclaimPolicy": "Delete",
        **more,
    }
    stage.create(CLASSES, body)


def phase(stage: Stage, name: str = "data") -> str:
    return str(stage.the(CLAIMS, name)["status"]["phase"])


def select_node(stage: Stage, node: str, name: str = "data") -> None:
    """What the scheduler does once it has found a place for the pod."""
    stage.edit(CLAIMS, name, lambda obj: obj["metadata"].setdefault("annotations", {}).update({SELECTED: node}))


def test_the_smallest_volume_that_fits_is_taken(stage: Stage) -> None:
    for name, size in (("small", "512Mi"), ("large", "10Gi"), ("right", "2Gi")):
        volume(stage, name, size, storageClassName="disks")
    volume(stage, "other", "1Gi", storageClassName="else")
    claim(stage, storageClassName="disks")
    stage.advance(2)
    bound = stage.the(CLAIMS, "data")
    assert bound["spec"]["volumeName"] == "right"
    assert bound["status"] == {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "2Gi"}}
    assert annotations_of(bound) == {
        "pv.kubernetes.io/bind-completed": "yes",
        "pv.kubernetes.io/bound-by-controller": "yes",
    }
    taken = stage.the(VOLUMES, "right")
    assert taken["spec"]["claimRef"]["uid"] == uid_of(bound)
    assert taken["status"]["phase"] == "Bound"
    assert {name_of(v): v["status"]["phase"] for v in stage.list(VOLUMES)} == {
        "large": "Available",
        "other": "Available",
        "right": "Bound",
        "small": "Available",
    }


def test_a_selector_and_modes_narrow_the_choice(stage: Stage) -> None:
    volume(stage, "plain", storageClassName="")
    volume(stage, "ssd", labels={"disk": "ssd"}, storageClassName="")
    claim(stage, storageClassName="", selector={"matchLabels": {"disk": "ssd"}})
    claim(stage, "shared", modes=("ReadWriteMany",), storageClassName="")
    stage.advance(2)
    assert stage.the(CLAIMS, "data")["spec"]["volumeName"] == "ssd"
    assert phase(stage, "shared") == "Pending"


def test_without_class_and_volume_a_claim_complains_every_fifteen_seconds(stage: Stage) -> None:
    claim(stage, storageClassName="")
    stage.advance(50)
    text = "no persistent volumes available for this claim and no storage class is set"
    assert stage.events(CLAIMS, "data") == [("Normal", "FailedBinding", text)]
    (event,) = [e for e in stage.list("events") if e["reason"] == "FailedBinding"]
    assert event["count"] == 4
    assert event["source"] == {"component": "persistentvolume-controller"}
    volume(stage, "late", storageClassName="")
    stage.advance(2)
    assert phase(stage) == "Bound"


def test_a_class_that_does_not_exist_is_named(stage: Stage) -> None:
    claim(stage, storageClassName="gone")
    stage.advance(2)
    text = 'storageclass.storage.k8s.io "gone" not found'
    assert stage.events(CLAIMS, "data") == [("Warning", "ProvisioningFailed", text)]


def test_a_claim_without_a_class_gets_the_default_one_also_later(stage: Stage) -> None:
    claim(stage)
    stage.advance(2)
    assert phase(stage) == "Pending"
    storage_class(stage, default=True)
    stage.advance(2)
    assert stage.the(CLAIMS, "data")["spec"]["storageClassName"] == "standard"


def test_a_volume_is_made_where_its_first_consumer_is_placed(stage: Stage) -> None:
    storage_class(stage)
    made = claim(stage, storageClassName="standard")
    stage.advance(2)
    text = "waiting for first consumer to be created before binding"
    assert stage.events(CLAIMS, "data") == [("Normal", "WaitForFirstConsumer", text)]
    stage.kubelets.idle = lambda pod: True
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    stage.create("pods", {"metadata": {"name": "user"}, "spec": template(volumes=volumes)["spec"]})
    stage.advance(2)
    assert ("Normal", "WaitForPodScheduled", "waiting for pod user to be scheduled") in stage.events(CLAIMS, "data")
    select_node(stage, "node-2")
    stage.advance(5)
    assert phase(stage) == "Bound"
    name = f"pvc-{uid_of(made)}"
    provisioned = stage.the(VOLUMES, name)
    term = provisioned["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]["matchExpressions"][0]
    assert (term["key"], term["values"]) == ("kubernetes.io/hostname", ["node-2"])
    assert annotations_of(provisioned)["pv.kubernetes.io/provisioned-by"] == "rancher.io/local-path"
    assert provisioned["spec"]["hostPath"]["path"] == f"/var/local-path-provisioner/{name}_default_data"
    told = [(reason, text) for _, reason, text in stage.events(CLAIMS, "data")]
    assert told[2][0] == "ExternalProvisioning"
    assert told[2][1].startswith(
        "Waiting for a volume to be created either by the external provisioner 'rancher.io/local-path' or manually"
    )
    assert told[3:] == [
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
    stage: Stage, modes: tuple[str, ...], mode: str, why: str
) -> None:
    storage_class(stage, volumeBindingMode=mode)
    claim(stage, storageClassName="standard", modes=modes)
    if mode == "WaitForFirstConsumer":
        select_node(stage, "node-1")
    stage.advance(5)
    text = f'failed to provision volume with StorageClass "standard": {why}'
    assert ("Warning", "ProvisioningFailed", text) in stage.events(CLAIMS, "data")
    assert phase(stage) == "Pending"
    assert stage.list(VOLUMES) == []


def test_a_provisioner_nobody_runs_is_waited_for(stage: Stage) -> None:
    storage_class(stage, "cloud", provisioner="disk.example.com", volumeBindingMode="Immediate")
    claim(stage, storageClassName="cloud")
    stage.advance(60)
    assert phase(stage) == "Pending"
    assert {reason for _, reason, _ in stage.events(CLAIMS, "data")} == {"ExternalProvisioning"}


def test_a_class_without_a_provisioner_makes_nothing(stage: Stage) -> None:
    storage_class(stage, "manual", provisioner="kubernetes.io/no-provisioner", volumeBindingMode="Immediate")
    claim(stage, storageClassName="manual")
    stage.advance(2)
    text = "no volume plugin matched name: kubernetes.io/no-provisioner"
    assert stage.events(CLAIMS, "data") == [("Warning", "ProvisioningFailed", text)]


def test_volumes_of_a_waiting_class_are_left_to_the_scheduler(stage: Stage) -> None:
    storage_class(stage, "local", provisioner="kubernetes.io/no-provisioner")
    volume(stage, "disk", storageClassName="local")
    claim(stage, storageClassName="local")
    select_node(stage, "node-1")
    stage.advance(2)
    assert phase(stage) == "Pending"
    reference = {"namespace": "default", "name": "data"}
    stage.edit(VOLUMES, "disk", lambda obj: obj["spec"].update(claimRef=reference))
    stage.advance(2)
    assert phase(stage) == "Bound"


def test_a_provisioned_volume_goes_with_its_claim(stage: Stage) -> None:
    storage_class(stage)
    claim(stage, storageClassName="standard")
    select_node(stage, "node-1")
    stage.advance(5)
    stage.delete(CLAIMS, "data")
    stage.advance(3)
    assert stage.get(CLAIMS, "data") is None
    assert stage.list(VOLUMES) == []


def test_a_retained_volume_is_released_and_not_taken_again(stage: Stage) -> None:
    volume(stage, "disk", storageClassName="", persistentVolumeReclaimPolicy="Retain")
    claim(stage, storageClassName="")
    stage.advance(2)
    stage.delete(CLAIMS, "data")
    stage.advance(2)
    assert stage.the(VOLUMES, "disk")["status"]["phase"] == "Released"
    claim(stage, storageClassName="")
    stage.advance(20)
    assert phase(stage) == "Pending"
    stage.edit(VOLUMES, "disk", lambda obj: obj["spec"].pop("claimRef"))
    stage.advance(2)
    assert phase(stage) == "Bound"


def test_a_volume_nobody_can_delete_fails(stage: Stage) -> None:
    volume(stage, "disk", storageClassName="", persistentVolumeReclaimPolicy="Delete")
    claim(stage, storageClassName="")
    stage.advance(2)
    stage.delete(CLAIMS, "data")
    stage.advance(2)
    text = "host_path deleter only supports /tmp/.+ but received provided /disks/disk"
    assert stage.the(VOLUMES, "disk")["status"]["phase"] == "Failed"
    assert stage.the(VOLUMES, "disk")["status"]["message"] == text
    assert ("Warning", "VolumeFailedDelete", text) in stage.events(VOLUMES, "disk")


def test_a_claim_whose_volume_was_torn_away_is_lost(stage: Stage) -> None:
    volume(stage, "disk", storageClassName="")
    claim(stage, storageClassName="")
    stage.advance(2)
    stage.delete(VOLUMES, "disk")
    stage.advance(2)
    assert meta(stage.the(VOLUMES, "disk"))["finalizers"] == ["kubernetes.io/pv-protection"]  # it is in use
    stage.edit(VOLUMES, "disk", lambda obj: obj["metadata"].update(finalizers=[]))
    stage.advance(2)
    assert phase(stage) == "Lost"
    text = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
    assert ("Warning", "ClaimLost", text) in stage.events(CLAIMS, "data")


def test_asking_for_a_certain_volume_can_be_refused(stage: Stage) -> None:
    volume(stage, "tiny", "100Mi", storageClassName="")
    volume(stage, "taken", storageClassName="", claimRef={"namespace": "default", "name": "somebody"})
    claim(stage, "one", storageClassName="", volumeName="tiny")
    claim(stage, "two", storageClassName="", volumeName="taken")
    claim(stage, "three", storageClassName="", volumeName="ghost")
    stage.advance(2)
    assert stage.events(CLAIMS, "one") == [
        ("Warning", "VolumeMismatch", 'Cannot bind to requested volume "tiny": requested PV is too small')
    ]
    assert stage.events(CLAIMS, "two") == [
        ("Warning", "FailedBinding", 'volume "taken" already bound to a different claim.')
    ]
    assert stage.events(CLAIMS, "three") == []
    assert {phase(stage, name) for name in ("one", "two", "three")} == {"Pending"}


def test_growing_a_claim_waits_for_somebody_who_can(stage: Stage) -> None:
    storage_class(stage, allowVolumeExpansion=True)
    claim(stage, storageClassName="standard")
    select_node(stage, "node-1")
    stage.advance(5)
    stage.edit(CLAIMS, "data", lambda obj: obj["spec"]["resources"]["requests"].update(storage="5Gi"))
    stage.advance(2)
    assert stage.the(CLAIMS, "data")["status"]["capacity"] == {"storage": "1Gi"}
    kind, reason, text = stage.events(CLAIMS, "data")[-1]
    assert (kind, reason) == ("Normal", "ExternalExpanding")
    assert text.startswith("Ignoring the PVC: didn't find a plugin capable of expanding the volume; waiting for an")
    assert stage.sources("ExternalExpanding") == {"volume_expand"}
