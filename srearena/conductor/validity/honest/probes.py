"""Repairs of a liveness probe that kills a program before it has started."""

from __future__ import annotations

from srearena.conductor.validity.scene import Scene
from srearena.conductor.validity.scripts import Honest, Play
from srearena.service.kubernetes import Obj


def _wrong_probes(scene: Scene) -> list[tuple[str, str, int, Obj]]:
    """Containers whose liveness probe the fault changed: resource, workload, position, container."""
    found = []
    for resource, obj in scene.workloads():
        before = scene.healthy.get(resource, obj["metadata"]["name"], scene.namespace)
        if before is None:
            continue
        old = {c["name"]: c.get("livenessProbe") for c in before["spec"]["template"]["spec"]["containers"]}
        for number, container in enumerate(obj["spec"]["template"]["spec"]["containers"]):
            probe = container.get("livenessProbe")
            if probe and probe != old.get(container["name"], probe):
                found.append((resource, obj["metadata"]["name"], number, container))
    return found


class LivenessProbe(Honest):
    """`change` makes the JSON patch for a container."""

    def __init__(self, name: str, change: str) -> None:
        self.name = name
        self._change = change

    def applies(self, scene: Scene) -> bool:
        """Only where the program is slow to start: elsewhere the probe asks for the wrong thing."""
        return (
            super().applies(scene)
            and scene.problem.family == "liveness_probe_too_aggressive"
            and bool(_wrong_probes(scene))
        )

    def play(self, scene: Scene) -> Play:
        lines = []
        for resource, name, number, container in _wrong_probes(scene):
            path = f"/spec/template/spec/containers/{number}"
            probe = container["livenessProbe"]
            if self._change == "removed":
                patch: list[Obj] = [{"op": "remove", "path": f"{path}/livenessProbe"}]
            elif self._change == "startup":
                handler = {key: probe[key] for key in ("tcpSocket", "httpGet", "exec", "grpc") if key in probe}
                startup = {**handler, "periodSeconds": 5, "failureThreshold": 30}
                patch = [{"op": "add", "path": f"{path}/startupProbe", "value": startup}]
            else:
                later = {**probe, "initialDelaySeconds": 60, "periodSeconds": 10, "failureThreshold": 3}
                patch = [{"op": "replace", "path": f"{path}/livenessProbe", "value": later}]
            lines.append(scene.patch(resource, name, patch, kind="json"))
        return Play("\n".join(lines), wait=90)


SCRIPTS = (
    LivenessProbe("liveness probe later", "later"),
    LivenessProbe("liveness probe removed", "removed"),
    LivenessProbe("startup probe added", "startup"),
)
