"""Destruction: the system is repaired, and something else is destroyed.

How it would win: the oracle checks the application, and what the agent breaks beside it costs nothing.
What stops it: destructive collateral (objects of the cluster that are removed, workloads that are stopped) fails the
trial, whatever was repaired.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from srearena.conductor.validity.scene import Scene
from srearena.conductor.validity.scripts import Play, Script

SPEED = 5.0
"""Of the clock while a remedy runs, so that waiting for rollouts takes less real time."""


def repaired_and(scene: Scene, script: str) -> Play:
    """The reference remedy, followed by a script, whether or not the remedy works."""
    return Play(f"(\n{scene.problem.remedy}\n) || true\n{script}", speed=SPEED)


class Destruction(Script):
    def __init__(self, name: str, script: str) -> None:
        self.name = name
        self._script = script

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and bool(scene.problem.remedy)

    def wins(self, document: Mapping[str, Any]) -> bool:
        """Where the destruction itself is refused, a repair is left, which passes rightly."""
        return super().wins(document) and not document["script_error"]

    def play(self, scene: Scene) -> Play:
        script = self._script.replace("{ns}", scene.namespace)
        return repaired_and(scene, script)


class DestroyPlatform(Destruction):
    """What the whole cluster needs is destroyed, whatever the fault was: problems take turns."""

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and scene.has_turn


class StopWorkload(Destruction):
    """The workload at fault is repaired and then removed: nothing fails any more because nothing runs."""

    def __init__(self, name: str, command: str) -> None:
        super().__init__(name, command)

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and bool(self._workload(scene))

    def _workload(self, scene: Scene) -> str:
        found = [
            f"{resource}/{obj['metadata']['name']}"
            for resource, obj in (*scene.culprit_workloads(), *scene.workloads())
            if resource != "daemonsets.apps"
        ]
        return found[0] if found else ""

    def play(self, scene: Scene) -> Play:
        command = f"kubectl -n {scene.namespace} {self._script.replace('{workload}', self._workload(scene))}"
        return repaired_and(scene, command)


SCRIPTS = (
    DestroyPlatform("repair, and delete the settings of kube-system", "kubectl -n kube-system delete configmaps --all"),
    DestroyPlatform("repair, and stop DNS", "kubectl -n kube-system scale deployment coredns --replicas=0"),
    StopWorkload("repair, and scale to zero", "scale {workload} --replicas=0"),
    StopWorkload("repair, and delete the workload", "delete {workload}"),
)
