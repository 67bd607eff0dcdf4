"""Families about volumes and claims, and about the configuration that pods mount."""

from __future__ import annotations

from collections.abc import Iterable

from srearena.cluster.embedded.objects import Obj, annotations_of, dig
from srearena.cluster.embedded.telemetry.collectors.kube_state.families import (
    Family,
    Kind,
    Reading,
    amount,
    clusterwide,
    conditions,
    created,
    deleted,
    info,
    named,
    one_of,
    owners,
    text,
    truth,
    version,
)

_PV, _PVC, _SC, _VA = (
    "kube_persistentvolume",
    "kube_persistentvolumeclaim",
    "kube_storageclass",
    "kube_volumeattachment",
)
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"


def _claim_ref(volume: Obj) -> Iterable[Reading]:
    claim = dig(volume, "spec", "claimRef")
    return () if not claim else (({"name": claim.get("name", ""), "claim_namespace": claim.get("namespace", "")}, 1.0),)


def _capacity(volume: Obj) -> Iterable[Reading]:
    return (({}, amount(dig(volume, "spec", "capacity", "storage", default="0"))),)


def _volume_mode(volume: Obj) -> Iterable[Reading]:
    return (({"volumemode": dig(volume, "spec", "volumeMode", default="Filesystem")}, 1.0),)


def _claim_info(claim: Obj) -> Iterable[Reading]:
    spec = claim["spec"]
    labels = {
        "storageclass": annotations_of(claim).get(_BETA_CLASS) or text(spec.get("storageClassName")),
        "volumename": text(spec.get("volumeName")),
        "volumemode": text(spec.get("volumeMode")),
    }
    return ((labels, 1.0),)


def _requested(claim: Obj) -> Iterable[Reading]:
    requested = dig(claim, "spec", "resources", "requests", "storage")
    return () if requested is None else (({}, amount(requested)),)


def _access_modes(claim: Obj) -> Iterable[Reading]:
    return [({"access_mode": mode}, 1.0) for mode in claim["spec"].get("accessModes") or ()]


def _class_info(storage_class: Obj) -> Iterable[Reading]:
    labels = {
        "provisioner": storage_class.get("provisioner") or "",
        "reclaim_policy": storage_class.get("reclaimPolicy") or "Delete",
        "volume_binding_mode": storage_class.get("volumeBindingMode") or "Immediate",
    }
    return ((labels, 1.0),)


def _attached(attachment: Obj) -> Iterable[Reading]:
    return (({}, truth(dig(attachment, "status", "attached"))),)


def _attached_volume(attachment: Obj) -> Iterable[Reading]:
    name = dig(attachment, "spec", "source", "persistentVolumeName")
    return (({"volumename": name}, 1.0),) if name else ()


VOLUMES = Kind(
    "persistentvolumes",
    clusterwide("persistentvolume"),
    (
        Family(f"{_PV}_claim_ref", "The claim that has the volume.", _claim_ref),
        one_of(
            f"{_PV}_status_phase",
            "The volume's phase.",
            "phase",
            ("Pending", "Available", "Bound", "Released", "Failed"),
            "status",
            "phase",
        ),
        info(
            f"{_PV}_info",
            "Where the volume's data are.",
            storageclass=("spec", "storageClassName"),
            nfs_server=("spec", "nfs", "server"),
            nfs_path=("spec", "nfs", "path"),
            csi_driver=("spec", "csi", "driver"),
            csi_volume_handle=("spec", "csi", "volumeHandle"),
            local_path=("spec", "local", "path"),
            local_fs=("spec", "local", "fsType"),
            host_path=("spec", "hostPath", "path"),
            host_path_type=("spec", "hostPath", "type"),
        ),
        Family(f"{_PV}_capacity_bytes", "The volume's size.", _capacity),
        created(_PV),
        deleted(_PV),
        Family(f"{_PV}_volume_mode", "A file system or a block device.", _volume_mode),
    ),
)

CLAIMS = Kind(
    "persistentvolumeclaims",
    named("persistentvolumeclaim"),
    (
        Family(f"{_PVC}_info", "Class, volume and mode of the claim.", _claim_info),
        one_of(f"{_PVC}_status_phase", "The claim's phase.", "phase", ("Lost", "Bound", "Pending"), "status", "phase"),
        Family(f"{_PVC}_resource_requests_storage_bytes", "The requested size.", _requested),
        Family(f"{_PVC}_access_mode", "How the claim may be used.", _access_modes),
        conditions(f"{_PVC}_status_condition", "Conditions of the claim."),
        created(_PVC),
        deleted(_PVC),
    ),
)

STORAGE_CLASSES = Kind(
    "storageclasses.storage.k8s.io",
    clusterwide("storageclass"),
    (Family(f"{_SC}_info", "Provisioner and policies.", _class_info), created(_SC)),
)

ATTACHMENTS = Kind(
    "volumeattachments.storage.k8s.io",
    clusterwide("volumeattachment"),
    (
        info(f"{_VA}_info", "Attacher and node.", attacher=("spec", "attacher"), node=("spec", "nodeName")),
        created(_VA),
        Family(f"{_VA}_spec_source_persistentvolume", "The volume to attach.", _attached_volume),
        Family(f"{_VA}_status_attached", "Whether the volume is attached.", _attached),
    ),
)

CONFIG_MAPS = Kind(
    "configmaps",
    named("configmap"),
    (
        info("kube_configmap_info", "There is such a config map."),
        created("kube_configmap"),
        version("kube_configmap"),
    ),
)

SECRETS = Kind(
    "secrets",
    named("secret"),
    (
        info("kube_secret_info", "There is such a secret."),
        info("kube_secret_type", "What kind of secret it is.", type=("type",)),
        created("kube_secret"),
        version("kube_secret"),
        owners("kube_secret_owner"),
    ),
)

KINDS = (VOLUMES, CLAIMS, STORAGE_CLASSES, ATTACHMENTS, CONFIG_MAPS, SECRETS)
