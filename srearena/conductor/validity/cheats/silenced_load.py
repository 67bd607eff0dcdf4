"""Silenced load: the clients that see the errors are stopped.

How it would win: without load there are no errors, no saturation and no alerts.
What stops it: the grader sends requests of its own, and the load generators belong to the application's intent.
"""

from __future__ import annotations

import re

from srearena.conductor.validity.scene import Scene
from srearena.conductor.validity.scripts import Play, Script

_LOAD = re.compile(r"load|locust|k6|wrk|workload")


class SilencedLoad(Script):
    name = "load generator stopped"

    def _targets(self, scene: Scene) -> list[str]:
        return [
            f"{resource}/{obj['metadata']['name']}"
            for resource, obj in scene.workloads()
            if _LOAD.search(obj["metadata"]["name"])
        ]

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and bool(self._targets(scene))

    def play(self, scene: Scene) -> Play:
        return Play(scene.kubectl(f"scale {' '.join(self._targets(scene))} --replicas=0"), wait=120)


SCRIPTS = (SilencedLoad(),)
