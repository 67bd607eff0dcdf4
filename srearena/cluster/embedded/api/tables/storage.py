"""Tables of volumes, claims, storage classes and their drivers."""

from __future__ import annotations

from typing import Final

from srearena.cluster.embedded.api.tables.columns import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Cell,
    Column,
    count_at,
    flag_at,
    items,
    mapping,
    printer,
    quantity_text,
    strings,
    text,
    text_at,
    wide,
)
from srearena.cluster.embedded.objects import Obj, dig

_ACCESS_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def _access_modes(obj: Obj, *path: str) -> str:
    values = strings(obj, *path)
    return ",".join(short for mode, short in _ACCESS_MODES.items() if mode in values)


def _phase(obj: Obj, now: float) -> str:
    return "Terminating" if dig(obj, "metadata", "deletionTimestamp") else text(obj, "status", "phase")


def _class(obj: Obj, now: float) -> str:
    annotated = dig(obj, "metadata", "annotations", _CLASS_ANNOTATION)
    return annotated if isinstance(annotated, str) else text(obj, "spec", "storageClassName")


def _claim(obj: Obj, now: float) -> str:
    claim = dig(obj, "spec", "claimRef")
    return f"{text(claim, 'namespace')}/{text(claim, 'name')}" if isinstance(claim, dict) else ""


_STORAGE_CLASS: Final = Column("StorageClass", "string", "Class of the storage.", _class)


def _attributes_class(obj: Obj, now: float) -> str:
    """Of a claim or volume; an empty name is shown as it is."""
    name = dig(obj, "spec", "volumeAttributesClassName")
    return name if isinstance(name, str) else UNSET


_ATTRIBUTES_CLASS: Final = Column(
    "VolumeAttributesClass",
    "string",
    "Class of the volume's attributes.",
    _attributes_class,
)
_VOLUME_MODE: Final = wide("VolumeMode", "Filesystem or Block.", text_at("spec", "volumeMode", missing=UNSET))

PERSISTENT_VOLUMES: Final = printer(
    NAME,
    Column(
        "Capacity",
        "string",
        "Size.",
        lambda obj, now: quantity_text(dig(obj, "spec", "capacity", "storage"), "0"),
    ),
    Column("Access Modes", "string", "How it may be mounted.", lambda o, now: _access_modes(o, "spec", "accessModes")),
    Column(
        "Reclaim Policy",
        "string",
        "What happens to it when it is released.",
        text_at("spec", "persistentVolumeReclaimPolicy"),
    ),
    Column("Status", "string", "Whether it is bound, available, released or failed.", _phase),
    Column("Claim", "string", "Which claim it is bound to.", _claim),
    _STORAGE_CLASS,
    _ATTRIBUTES_CLASS,
    Column("Reason", "string", "Why it failed.", text_at("status", "reason")),
    AGE,
    _VOLUME_MODE,
)


def _when_bound(cell: Cell) -> Cell:
    return lambda obj, now: cell(obj, now) if text(obj, "spec", "volumeName") else ""


PERSISTENT_VOLUME_CLAIMS: Final = printer(
    NAME,
    Column("Status", "string", "Whether the claim is bound, pending or lost.", _phase),
    Column("Volume", "string", "Volume it is bound to.", text_at("spec", "volumeName")),
    Column(
        "Capacity",
        "string",
        "Size of that volume.",
        _when_bound(lambda obj, now: quantity_text(dig(obj, "status", "capacity", "storage"), "0")),
    ),
    Column(
        "Access Modes",
        "string",
        "How that volume may be mounted.",
        _when_bound(lambda obj, now: _access_modes(obj, "status", "accessModes")),
    ),
    _STORAGE_CLASS,
    _ATTRIBUTES_CLASS,
    AGE,
    _VOLUME_MODE,
)


def _name_if_default(*annotations: str) -> Column:
    def cell(obj: Obj, now: float) -> str:
        values = mapping(obj, "metadata", "annotations")
        name = text(obj, "metadata", "name")
        return f"{name} (default)" if any(values.get(key) == "true" for key in annotations) else name

    return Column(NAME.name, NAME.type, NAME.description, cell, format=NAME.format)


STORAGE_CLASSES: Final = printer(
    _name_if_default(*_DEFAULT_CLASS),
    Column("Provisioner", "string", "Who makes the volumes.", text_at("provisioner")),
    Column("ReclaimPolicy", "string", "What happens to released volumes.", text_at("reclaimPolicy", missing="Delete")),
    Column("VolumeBindingMode", "string", "When claims are bound.", text_at("volumeBindingMode", missing="Immediate")),
    Column("AllowVolumeExpansion", "string", "Whether claims may grow.", flag_at("allowVolumeExpansion")),
    AGE,
)

VOLUME_ATTRIBUTES_CLASSES: Final = printer(
    NAME,
    Column("DriverName", "string", "Driver that understands the attributes.", text_at("driverName")),
    AGE,
)

VOLUME_ATTACHMENTS: Final = printer(
    NAME,
    Column("Attacher", "string", "Driver that attaches.", text_at("spec", "attacher"), format="name"),
    Column("PV", "string", "Volume.", text_at("spec", "source", "persistentVolumeName")),
    Column("Node", "string", "Node it is attached to.", text_at("spec", "nodeName")),
    Column("Attached", "boolean", "Whether it is attached by now.", flag_at("status", "attached")),
    AGE,
)

CSI_NODES: Final = printer(NAME, Column("Drivers", "integer", "Drivers on the node.", count_at("spec", "drivers")), AGE)


def _audiences(obj: Obj, now: float) -> str:
    requests = dig(obj, "spec", "tokenRequests")
    if not isinstance(requests, list):
        return UNSET
    return ",".join(text(request, "audience") for request in items(obj, "spec", "tokenRequests"))


CSI_DRIVERS: Final = printer(
    NAME,
    Column(
        "AttachRequired",
        "boolean",
        "Whether volumes are attached first.",
        flag_at("spec", "attachRequired", missing=True),
    ),
    Column("PodInfoOnMount", "boolean", "Whether the driver is told of the pod.", flag_at("spec", "podInfoOnMount")),
    Column("StorageCapacity", "boolean", "Whether free space is published.", flag_at("spec", "storageCapacity")),
    Column("TokenRequests", "string", "Audiences of the tokens it gets.", _audiences),
    Column("RequiresRepublish", "boolean", "Whether volumes are mounted anew.", flag_at("spec", "requiresRepublish")),
    Column(
        "Modes",
        "string",
        "Kinds of volumes it supports.",
        lambda obj, now: ",".join(strings(obj, "spec", "volumeLifecycleModes")) or NONE,
    ),
    AGE,
)

CSI_STORAGE_CAPACITIES: Final = printer(
    NAME,
    Column("StorageClassName", "string", "Class of the storage.", text_at("storageClassName")),
    Column("Capacity", "string", "Space left.", lambda obj, now: quantity_text(dig(obj, "capacity"), UNSET)),
)

PRINTERS: Final = {
    ("", "persistentvolumeclaims"): PERSISTENT_VOLUME_CLAIMS,
    ("", "persistentvolumes"): PERSISTENT_VOLUMES,
    ("storage.k8s.io", "csidrivers"): CSI_DRIVERS,
    ("storage.k8s.io", "csinodes"): CSI_NODES,
    ("storage.k8s.io", "csistoragecapacities"): CSI_STORAGE_CAPACITIES,
    ("storage.k8s.io", "storageclasses"): STORAGE_CLASSES,
    ("storage.k8s.io", "volumeattachments"): VOLUME_ATTACHMENTS,
    ("storage.k8s.io", "volumeattributesclasses"): VOLUME_ATTRIBUTES_CLASSES,
}
