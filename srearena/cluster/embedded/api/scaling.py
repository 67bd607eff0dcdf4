"""`scale`: the number of replicas of a workload, apart from everything else about it.

A Scale is a view: reading builds it from the object, writing changes one field of the object. Where the fields are
is fixed for built-in workloads and declared by the definition of custom ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from srearena.cluster.embedded.api import custom
from srearena.cluster.embedded.objects import Obj, dig, meta, name_of
from srearena.cluster.embedded.registry.errors import ApiError, BadRequest, Conflict, FieldError, Invalid
from srearena.cluster.embedded.registry.resources import Resource
from srearena.cluster.embedded.registry.selectors import label_selector_of, label_set_selector

if TYPE_CHECKING:
    from srearena.cluster.embedded.api.backend import Backend

KIND: Final = "Scale"
API_VERSION: Final = "autoscaling/v1"


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Where a workload keeps its numbers, and how its selector reads."""

    spec: tuple[str, ...] = ("spec", "replicas")
    status: tuple[str, ...] = ("status", "replicas")
    selector: Callable[[Obj], str] = lambda obj: _selector(dig(obj, "spec", "selector"))


def _selector(selector: Any) -> str:
    try:
        return str(label_selector_of(selector)) if isinstance(selector, dict) else ""
    except ApiError:
        return ""


def _label_set(obj: Obj) -> str:
    return str(label_set_selector(dig(obj, "spec", "selector", default={})))


_BUILT_IN: Final = ScalePaths()
_REPLICATION_CONTROLLER: Final = ScalePaths(selector=_label_set)


def paths_of(backend: Backend, row: Resource) -> ScalePaths:
    if not row.custom:
        return _REPLICATION_CONTROLLER if row.plural == "replicationcontrollers" else _BUILT_IN
    declared: Obj = dig(custom.version_of(backend.store, row), "subresources", "scale", default={})
    selector_path = _path(declared.get("labelSelectorPath", ""))
    return ScalePaths(
        _path(declared.get("specReplicasPath", "")) or _BUILT_IN.spec,
        _path(declared.get("statusReplicasPath", "")) or _BUILT_IN.status,
        lambda obj: str(dig(obj, *selector_path, default="")) if selector_path else "",
    )


def _path(text: str) -> tuple[str, ...]:
    return tuple(step for step in text.split(".") if step)


def scale_of(obj: Obj, paths: ScalePaths) -> Obj:
    """The Scale that shows this object."""
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    metadata = {key: meta(obj)[key] for key in kept if key in meta(obj)}
    wanted = dig(obj, *paths.spec)
    status: Obj = {"replicas": dig(obj, *paths.status, default=0)}
    selector = paths.selector(obj)
    if selector:
        status["selector"] = selector
    return {
        "kind": KIND,
        "apiVersion": API_VERSION,
        "metadata": metadata,
        "spec": {"replicas": wanted} if wanted else {},
        "status": status,
    }


def check_scale(scale: Obj, name: str) -> int:
    """The number of replicas that a Scale asks for."""
    replicas: int = dig(scale, "spec", "replicas", default=0)
    if replicas < 0:
        problem = FieldError.invalid("spec.replicas", replicas, "must be greater than or equal to 0")
        raise Invalid("Scale.autoscaling", name, [problem])
    return replicas


def scaled(obj: Obj, scale: Obj, paths: ScalePaths, row: Resource) -> Obj:
    """The object with the number of replicas the Scale asks for; `obj` may be changed."""
    name = name_of(obj)
    check_scale(scale, name)
    wanted = meta(scale)
    if wanted.get("name", name) != name:
        raise BadRequest(f"the name of the object ({wanted['name']}) does not match the name on the URL ({name})")
    if wanted.get("uid") and wanted["uid"] != meta(obj)["uid"]:
        why = f"Precondition failed: UID in precondition: {wanted['uid']}, UID in object meta: {meta(obj)['uid']}"
        raise Conflict(row.group_resource, name, why)
    if wanted.get("resourceVersion") and wanted["resourceVersion"] != meta(obj)["resourceVersion"]:
        raise Conflict(row.group_resource, name)
    return with_replicas(obj, scale, paths)


def with_replicas(obj: Obj, scale: Obj, paths: ScalePaths) -> Obj:
    """The object with the Scale's number put where this kind keeps it; the object is used up."""
    replicas = check_scale(scale, name_of(scale))
    here = obj
    for step in paths.spec[:-1]:
        inner = here.get(step)
        if not isinstance(inner, dict):
            inner = here[step] = {}
        here = inner
    here[paths.spec[-1]] = replicas
    return obj
