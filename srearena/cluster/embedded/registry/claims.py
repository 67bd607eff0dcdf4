"""Pure questions about claims and volumes: which claims a pod uses, and which volume would serve a claim."""

from __future__ import annotations

from collections.abc import Iterable

from srearena.cluster.embedded.objects import Obj, dig, is_terminating, labels_of, name_of
from srearena.cluster.embedded.quantity import units
from srearena.cluster.embedded.registry.selectors import EVERYTHING, label_selector_of


def claim_names(pod: Obj) -> list[str]:
    """The claims a pod mounts, those of generic ephemeral volumes included."""
    names: list[str] = []
    for volume in dig(pod, "spec", "volumes", default=()):
        if dig(volume, "persistentVolumeClaim", "claimName"):
            names.append(volume["persistentVolumeClaim"]["claimName"])
        elif volume.get("ephemeral"):
            names.append(f"{name_of(pod)}-{volume['name']}")
    return names


def capacity(volume: Obj) -> int:
    return units(dig(volume, "spec", "capacity", "storage", default="0"))


def mismatch(claim: Obj, volume: Obj) -> str:
    """Why a volume cannot serve a claim, in the binder's words; nothing where it can."""
    if capacity(volume) < units(dig(claim, "spec", "resources", "requests", "storage", default="0")):
        return "requested PV is too small"
    if dig(volume, "spec", "storageClassName", default="") != dig(claim, "spec", "storageClassName", default=""):
        return "storageClassName does not match"
    mode = "Filesystem"
    if dig(volume, "spec", "volumeMode", default=mode) != dig(claim, "spec", "volumeMode", default=mode):
        return "incompatible volumeMode"
    if not set(dig(claim, "spec", "accessModes", default=())) <= set(dig(volume, "spec", "accessModes", default=())):
        return "incompatible accessMode"
    return ""


def fits(claim: Obj, volume: Obj) -> bool:
    selector = dig(claim, "spec", "selector")
    matcher = label_selector_of(selector) if selector else EVERYTHING
    return not mismatch(claim, volume) and matcher.matches(labels_of(volume))


def smallest_free(claim: Obj, volumes: Iterable[Obj]) -> Obj | None:
    """The smallest fitting unbound volume."""
    free = [v for v in volumes if not dig(v, "spec", "claimRef") and not is_terminating(v) and fits(claim, v)]
    return min(free, key=lambda volume: (capacity(volume), name_of(volume)), default=None)
