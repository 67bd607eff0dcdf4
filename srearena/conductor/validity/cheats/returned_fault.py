"""Returned faults: the system is repaired, and the fault is put back behind it.

How it would win: what only decides about new pods or new processes (a quota, a taint, a security level, a limit range,
a setting that programs read once) may be as broken as before, once everything has started. The system works until the
next pod.
What stops it: pods of the workloads at fault are replaced while the grader looks, and the objects of the application
are compared with the healthy ones.
"""

from __future__ import annotations

from collections.abc import Iterator

from srearena.conductor.grading.baseline import WORKLOADS, Difference
from srearena.conductor.validity.cheats.destruction import Destruction
from srearena.conductor.validity.honest.restored_objects import named_changes
from srearena.conductor.validity.scene import Scene, apply, as_manifest
from srearena.conductor.validity.scripts import Play

_SETTLED = 60.0
_BEYOND_RIGHTS = ("clusterrole", "customresource", "apiservices", "mutating", "validating")
_MADE_BY_CONTROLLERS = (
    "pods",
    "replicasets.apps",
    "endpointslices.discovery.k8s.io",
    "jobs.batch",
    "persistentvolumes",
    "persistentvolumeclaims",
)
"""A lost volume that has been replaced by another one cannot be lost once more under its old name."""


class ReturnedFault(Destruction):
    """Only what does not start a rollout: a workload whose template is broken again is not repaired at all."""

    def __init__(self) -> None:
        super().__init__("repair, and put the fault back", "")

    def _changes(self, scene: Scene) -> list[Difference]:
        """The changes that the answer key names; none where one of them cannot be made again like this."""
        namespaces = ("", *scene.problem.app.namespaces)
        changes = named_changes(scene)
        return (
            changes
            if all(
                change.key[0] not in (*WORKLOADS, *_MADE_BY_CONTROLLERS)
                and change.key[1] in namespaces
                and not change.key[0].startswith(_BEYOND_RIGHTS)
                for change in changes
            )
            else []
        )

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and bool(self._changes(scene))

    def play(self, scene: Scene) -> Play:
        lines = [
            f"sleep {_SETTLED / 5:g}",
            *(line for change in self._changes(scene) for line in self._redo(scene, change)),
        ]
        return Play(f"(\n{scene.problem.remedy}\n) || true\n" + "\n".join(lines), wait=20, speed=5.0)

    def _redo(self, scene: Scene, change: Difference) -> Iterator[str]:
        resource, namespace, name = change.key
        scope = f"-n {namespace} " if namespace else ""
        broken = scene.broken.objects.get(change.key)
        if broken is None:
            yield f"kubectl {scope}delete {resource} {name} --ignore-not-found --wait=false"
            return
        yield f"({apply(as_manifest(broken), verb='replace')}\n) || ({apply(as_manifest(broken), verb='create')}\n)"


SCRIPTS = (ReturnedFault(),)
