"""Repairs of a workload other than restoring it: an earlier revision, an equal StatefulSet."""

from __future__ import annotations

from srearena.conductor.validity.honest.restored_objects import SPEED, restarts, restorable
from srearena.conductor.validity.scene import Scene, apply, as_manifest, template_of
from srearena.conductor.validity.scripts import Honest, Play
from srearena.service.kubernetes import Obj


def _changed_deployments(scene: Scene) -> list[tuple[Obj, Obj]]:
    """Deployments that the fault changed, healthy and broken, where it changed nothing else."""
    changes = restorable(scene)
    if not all(change.key[0] == "deployments.apps" and change.how == "changed" for change in changes):
        return []
    return [(scene.healthy.objects[change.key], scene.broken.objects[change.key]) for change in changes]


def _only_templates_differ(healthy: Obj, broken: Obj) -> bool:
    rest = [{key: value for key, value in obj["spec"].items() if key != "template"} for obj in (healthy, broken)]
    return bool(rest[0] == rest[1])


class Undone(Honest):
    """`rollout undo` to the revision with the healthy template."""

    name = "rollout undo to the healthy revision"

    def _targets(self, scene: Scene) -> list[tuple[str, int]]:
        found = []
        for healthy, broken in _changed_deployments(scene):
            name = healthy["metadata"]["name"]
            numbers = [n for n, template in scene.revisions(name) if template == template_of(healthy)]
            if not numbers or not _only_templates_differ(healthy, broken):
                return []
            found.append((name, numbers[0]))
        return found

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and bool(self._targets(scene))

    def play(self, scene: Scene) -> Play:
        lines = [scene.undo(name, number) for name, number in self._targets(scene)]
        return Play("\n".join([*lines, *restarts(scene)]), wait=60, speed=SPEED)


class EqualStatefulSet(Honest):
    """A StatefulSet with the healthy pod template takes the place of a Deployment."""

    name = "an equal StatefulSet"

    def applies(self, scene: Scene) -> bool:
        changed = _changed_deployments(scene)
        if not super().applies(scene) or len(changed) != 1 or not _only_templates_differ(*changed[0]):
            return False
        metadata = changed[0][0]["metadata"]
        return metadata["namespace"] == scene.namespace and not scene.is_autoscaled(metadata["name"])

    def play(self, scene: Scene) -> Play:
        healthy, _ = _changed_deployments(scene)[0]
        manifest = as_manifest(healthy)
        name = healthy["metadata"]["name"]
        manifest["kind"] = "StatefulSet"
        kept = ("replicas", "selector", "template")
        manifest["spec"] = {key: manifest["spec"][key] for key in kept if key in manifest["spec"]} | {
            "serviceName": name
        }
        script = f"{scene.kubectl(f'delete deployment {name}')}\n{apply(manifest)}"
        return Play("\n".join([script]), wait=90, speed=SPEED)


SCRIPTS = (Undone(), EqualStatefulSet())
