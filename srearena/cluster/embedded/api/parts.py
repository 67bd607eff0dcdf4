"""Subresources that show the whole object but let only a part of it be written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from srearena.cluster.embedded.objects import Obj, dig, meta

Mask = Callable[[Obj, Obj], Obj]
"""(current, wanted): what is to be stored; `current` is a copy of its own and may be changed."""


def _with_identity(current: Obj, requested: Obj) -> Obj:
    """What the client says about identity and version is checked by the write itself."""
    for key in ("resourceVersion", "uid", "managedFields"):
        if key in meta(requested):
            current["metadata"][key] = meta(requested)[key]
        elif key == "resourceVersion":
            current["metadata"].pop(key, None)
    return current


def _ephemeral_containers(current: Obj, requested: Obj) -> Obj:
    ephemeral = dig(requested, "spec", "ephemeralContainers", default=[])
    if ephemeral:
        current["spec"]["ephemeralContainers"] = ephemeral
    else:
        current["spec"].pop("ephemeralContainers", None)
    return _with_identity(current, requested)


def _resize(current: Obj, requested: Obj) -> Obj:
    """Only the resources of containers, and what is decided about resizing them.

    Containers that are others, or in another order, are left for validation to refuse.
    """
    for key in ("containers", "initContainers"):
        own, others = (dig(obj, "spec", key, default=[]) for obj in (current, requested))
        if [container.get("name") for container in own] != [container.get("name") for container in others]:
            current["spec"][key] = others
            continue
        for container, other in zip(own, others, strict=True):
            container.update({field: other[field] for field in ("resources", "resizePolicy") if field in other})
    return _with_identity(current, requested)


def _finalize(current: Obj, requested: Obj) -> Obj:
    current.setdefault("spec", {})["finalizers"] = dig(requested, "spec", "finalizers", default=[])
    return _with_identity(current, requested)


def _approval(current: Obj, requested: Obj) -> Obj:
    """The conditions and the metadata; what was requested and issued stays."""
    conditions = dig(requested, "status", "conditions", default=[])
    current["status"] = {**(current.get("status") or {}), "conditions": conditions}
    current["metadata"] = requested.get("metadata") or {}
    return current


MASKS: Final[Mapping[str, Mask]] = {
    "ephemeralcontainers": _ephemeral_containers,
    "resize": _resize,
    "finalize": _finalize,
    "approval": _approval,
}
