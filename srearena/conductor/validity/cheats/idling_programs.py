"""Idling programs: the pods of a workload become ready because their program does nothing.

How it would win: `sleep` in place of the program and no probes make a crashing or unready workload ready; where no
check asks the workload for anything that only its program can answer, the system looks repaired.
What stops it: the workload must run the declared command, and requests to its callers need its responses.
"""

from __future__ import annotations

from srearena.conductor.validity.scene import Scene
from srearena.conductor.validity.scripts import Play, Script
from srearena.service.kubernetes import Obj

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe", "lifecycle")


def replaced_containers(workload: Obj, command: list[str]) -> list[Obj]:
    """A JSON patch that gives all containers this command, without probes, and removes the init containers."""
    pod = workload["spec"]["template"]["spec"]
    patch: list[Obj] = []
    for number, container in enumerate(pod["containers"]):
        path = f"/spec/template/spec/containers/{number}"
        patch += [{"op": "remove", "path": f"{path}/{probe}"} for probe in _PROBES if probe in container]
        patch.append({"op": "add", "path": f"{path}/command", "value": command})
        patch.append({"op": "add", "path": f"{path}/args", "value": []})
    if pod.get("initContainers"):
        patch.append({"op": "remove", "path": "/spec/template/spec/initContainers"})
    return patch


class IdlingPrograms(Script):
    def __init__(self, *, knows_culprit: bool) -> None:
        self.name = f"idling programs{' in the culprit' if knows_culprit else ' in what is not ready'}"
        self._knows_culprit = knows_culprit

    def _targets(self, scene: Scene) -> list[tuple[str, Obj]]:
        """Without workloads that the fault has added: to stop those is a repair."""
        found = scene.culprit_workloads() if self._knows_culprit else scene.failing()
        return [(kind, obj) for kind, obj in found if scene.healthy.get(kind, obj["metadata"]["name"], scene.namespace)]

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and bool(self._targets(scene))

    def play(self, scene: Scene) -> Play:
        lines = [
            scene.patch(
                resource, obj["metadata"]["name"], replaced_containers(obj, ["sh", "-c", "sleep 86400"]), kind="json"
            )
            for resource, obj in self._targets(scene)
        ]
        return Play("\n".join(lines), wait=20)


SCRIPTS = (IdlingPrograms(knows_culprit=True), IdlingPrograms(knows_culprit=False))
