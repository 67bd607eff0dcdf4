"""Tolerations instead of removing a taint."""

from __future__ import annotations

from srearena.conductor.validity.scene import Scene
from srearena.conductor.validity.scripts import Honest, Play


class Tolerated(Honest):
    """Every workload tolerates the new taints."""

    name = "tolerations on every workload"

    def _taints(self, scene: Scene) -> list[tuple[str, str, str]]:
        found: dict[tuple[str, str, str], None] = {}
        for node in scene.broken.of("nodes"):
            before = scene.healthy.get("nodes", node["metadata"]["name"])
            old = (before or {}).get("spec", {}).get("taints") or ()
            for taint in node["spec"].get("taints") or ():
                if taint not in old and not taint["key"].startswith("node.kubernetes.io/"):
                    found[taint["key"], taint.get("value", ""), taint["effect"]] = None
        return list(found)

    def applies(self, scene: Scene) -> bool:
        """Where nothing else is at fault."""
        return super().applies(scene) and len(scene.problem.origins) == 1 and bool(self._taints(scene))

    def play(self, scene: Scene) -> Play:
        tolerations = [
            {"key": key, "operator": "Equal", "value": value, "effect": effect}
            for key, value, effect in self._taints(scene)
        ]
        lines = []
        for resource, obj in scene.workloads():
            own = obj["spec"]["template"]["spec"].get("tolerations") or []
            patch = {"spec": {"template": {"spec": {"tolerations": [*own, *tolerations]}}}}
            lines.append(scene.patch(resource, obj["metadata"]["name"], patch, kind="merge"))
        return Play("\n".join(lines), wait=90)


SCRIPTS = (Tolerated(),)
