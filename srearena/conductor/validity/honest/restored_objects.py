"""Restored objects: what the fault changed is made as it was, in three of the ways in which engineers do that."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from srearena.conductor.grading.baseline import WORKLOADS, Difference
from srearena.conductor.grading.known_objects import entity_of
from srearena.conductor.validity.scene import Scene, apply, as_manifest
from srearena.conductor.validity.scripts import Honest, Play
from srearena.service.kubernetes import Obj

SPEED = 5.0
"""Of the clock, since `kubectl delete` waits until the object is gone."""
_NETWORK_POLICIES = "networkpolicies.networking.k8s.io"
_RESTORABLE = frozenset(
    (
        *WORKLOADS,
        "services",
        "configmaps",
        "limitranges",
        "resourcequotas",
        _NETWORK_POLICIES,
        "ingresses.networking.k8s.io",
        "horizontalpodautoscalers.autoscaling",
    )
)
_DELETABLE = frozenset(
    (
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
    )
)
"""An engineer on call may delete these, and not write them."""
_PROXY = "kube-proxy"
_RECREATED = frozenset((*WORKLOADS, "services", "configmaps"))


def named_changes(scene: Scene) -> list[Difference]:
    """The changes that the answer key names; none where an origin is not among them, as a record in a queue."""
    by_entity = {entity_of(_object(scene, change)): change for change in scene.changes}
    origins = [{entity for entity in origin.changed if entity in by_entity} for origin in scene.problem.origins]
    named = set().union(*origins) if all(origins) else set()
    return [change for entity, change in by_entity.items() if entity in named]


def restorable(scene: Scene) -> list[Difference]:
    """The named changes, where kubectl alone can undo them; undoing all of them repairs."""
    changes = named_changes(scene)
    return changes if all(_can_be_undone(scene, change) for change in changes) else []


def _can_be_undone(scene: Scene, change: Difference) -> bool:
    """Whether the rights of an engineer on call suffice, which are narrow in the namespaces of other teams."""
    resource, namespace, _ = change.key
    if namespace and namespace not in scene.problem.app.namespaces:
        return resource == _NETWORK_POLICIES
    return resource in _RESTORABLE or (resource in _DELETABLE and change.how == "added")


def _object(scene: Scene, change: Difference) -> Obj:
    return scene.healthy.objects.get(change.key) or scene.broken.objects[change.key]


def restarts(scene: Scene) -> list[str]:
    """Restart what read the broken state when it started: culprits, what depends on them, users of config maps."""
    names = [*scene.culprits, *getattr(scene.problem, "victims", ())]
    names += [str(getattr(scene.problem, "options", {}).get("client", ""))]
    configuration = [change.key[2] for change in restorable(scene) if change.key[0] == "configmaps"]
    present = list(scene.healthy.of("deployments.apps", namespace=scene.namespace))
    names += [obj["metadata"]["name"] for obj in present if any(f'"{c}"' in json.dumps(obj) for c in configuration)]
    chosen = [f"deployment/{obj['metadata']['name']}" for obj in present if obj["metadata"]["name"] in names]
    lines = [scene.kubectl(f"rollout restart {' '.join(chosen)}")] if chosen else []
    if _PROXY in configuration:  # it reads its settings once, and its DaemonSet is beyond an engineer's rights
        lines.insert(0, scene.kubectl(f"delete pods -l k8s-app={_PROXY}", "kube-system"))
    return lines


def merge_patch(now: Any, former: Any) -> Any:
    """The JSON merge patch (RFC 7386) that turns one value into another."""
    if not isinstance(now, dict) or not isinstance(former, dict):
        return former
    patch: Obj = {key: None for key in now if key not in former}
    for key, value in former.items():
        if key not in now or now[key] != value:
            patch[key] = merge_patch(now[key], value) if key in now else value
    return patch


class Restored(Honest):
    """Changed objects are replaced by their former manifest, deleted ones created, added ones deleted."""

    name = "kubectl replace with the former manifest"

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and bool(restorable(scene))

    def play(self, scene: Scene) -> Play:
        lines = [line for change in restorable(scene) for line in self._undo(scene, change)]
        return Play("\n".join([*lines, *restarts(scene)]), wait=60, speed=SPEED)

    def _undo(self, scene: Scene, change: Difference) -> Iterable[str]:
        resource, namespace, name = change.key
        before, now = scene.healthy.objects.get(change.key), scene.broken.objects.get(change.key)
        scope = f"-n {namespace} " if namespace else ""
        if before is None:
            return [f"kubectl {scope}delete {resource} {name}"]
        if now is None:
            return [apply(as_manifest(before), verb="create")]
        return [self._restore(scope, resource, name, now, before)]

    def _restore(self, scope: str, resource: str, name: str, now: Obj, before: Obj) -> str:
        return apply(as_manifest(before), verb="replace")


class Patched(Restored):
    """Only the changed fields are patched."""

    name = "kubectl patch of the changed fields"

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and any(change.how == "changed" for change in restorable(scene))

    def _restore(self, scope: str, resource: str, name: str, now: Obj, before: Obj) -> str:
        patch = merge_patch(_fields(now), _fields(before))
        text = json.dumps(patch).replace("'", "'\\''")
        return f"kubectl {scope}patch {resource} {name} --type=merge -p '{text}'"


def _fields(obj: Obj) -> Obj:
    manifest = as_manifest(obj)
    metadata = {"labels": manifest["metadata"].get("labels") or {}}
    return {key: value for key, value in manifest.items() if key not in ("apiVersion", "kind", "metadata")} | {
        "metadata": metadata
    }


class Recreated(Restored):
    """Changed objects are deleted and created again."""

    name = "deleted and created again"

    def applies(self, scene: Scene) -> bool:
        changes = restorable(scene)
        return super().applies(scene) and all(
            change.key[0] in _RECREATED and change.key[1] in scene.problem.app.namespaces and change.how == "changed"
            for change in changes
        )

    def _restore(self, scope: str, resource: str, name: str, now: Obj, before: Obj) -> str:
        return f"kubectl {scope}delete {resource} {name}\n{apply(as_manifest(before), verb='create')}"


SCRIPTS = (Restored(), Patched(), Recreated())
