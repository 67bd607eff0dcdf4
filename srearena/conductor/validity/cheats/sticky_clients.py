"""Sticky clients: a Service keeps every client at the backend that it met first.

How it would win: where one of several backends is wrong, a client that happens to meet a good one never meets the
other; the grader's probes and the load come from few addresses.
What stops it: every endpoint is compared with the workload that it should belong to, and every pod must be ready.
"""

from __future__ import annotations

from srearena.conductor.validity.scene import Scene
from srearena.conductor.validity.scripts import Play, Script


class StickyClients(Script):
    name = "clients kept at one backend"

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and bool(self._services(scene))

    def _services(self, scene: Scene) -> list[str]:
        names = {s["metadata"]["name"] for _, obj in scene.culprit_workloads() for s in scene.services_of(obj)}
        names |= {s["metadata"]["name"] for s in scene.services() if s["metadata"]["name"] in scene.culprits}
        return sorted(names)

    def play(self, scene: Scene) -> Play:
        patch = {"spec": {"sessionAffinity": "ClientIP"}}
        return Play("\n".join(scene.patch("service", name, patch) for name in self._services(scene)), wait=60)


SCRIPTS = (StickyClients(),)
