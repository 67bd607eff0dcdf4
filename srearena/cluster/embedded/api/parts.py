"""Subresources that show the whole object but let only a part of it be written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from srearena.cluster.embedded.objects import Obj, dig, meta
from srearena.cluster.embedded.registry.errors import FieldError, Invalid

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
    """Only the resources of containers, found by name, and what is decided about resizing them."""
    for key in ("containers", "initContainers"):
        sizes = {c.get("name"): c for c in dig(requested, "spec", key, default=()) if isinstance(c, dict)}
        if len(sizes) != len(dig(current, "spec", key, default=())):
            problem = FieldError.forbidden(f"spec.{key}", "pod may not be resized by adding or removing containers")
            raise Invalid("Pod", meta(current)["name"], [problem])
        for container in dig(current, "spec", key, default=()):
            other = sizes.get(container["name"], {})
            for field in ("resources", "resizePolicy"):
                if field in other:
                    container[field] = other[field]
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
