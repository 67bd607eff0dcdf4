"""The storage group: classes, drivers, attachments, capacities."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.strategies.amounts import reading, settle_one
from srearena.cluster.embedded.registry.strategies.parts import fill, part
from srearena.cluster.embedded.registry.strategy import Strategy

_CSI_DRIVER = {
    "attachRequired": True,
    "podInfoOnMount": False,
    "storageCapacity": False,
    "fsGroupPolicy": "ReadWriteOnceWithFSType",
    "requiresRepublish": False,
    "seLinuxMount": False,
}


def _default_class(obj: Obj) -> None:
    fill(obj, {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"})


def _default_driver(obj: Obj) -> None:
    spec = part(obj, "spec")
    fill(spec, _CSI_DRIVER)
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def _default_capacity(obj: Obj) -> None:
    settle_one(obj, "capacity")
    settle_one(obj, "maximumVolumeSize")


def _default_attachment(obj: Obj) -> None:
    fill(part(obj, "status"), {"attached": False})


def _default_node(obj: Obj) -> None:
    part(obj, "spec").setdefault("drivers", None)


STRATEGIES = {
    "storageclasses.storage.k8s.io": Strategy(default=_default_class),
    "csidrivers.storage.k8s.io": Strategy(default=_default_driver),
    "csinodes.storage.k8s.io": Strategy(default=_default_node),
    "csistoragecapacities.storage.k8s.io": Strategy(default=reading(_default_capacity)),
    "volumeattachments.storage.k8s.io": Strategy(default=_default_attachment),
}
