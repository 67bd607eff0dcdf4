"""Less load: the clients that overload the system get so little that they send hardly any requests.

How it would win: an overloaded system works at a tenth of its load, and the clients still run: they are neither stopped
nor scaled down.
What stops it: the load that the healthy system served must be served again.
"""

from __future__ import annotations

import re

from srearena.conductor.validity.cheats.silenced_load import SilencedLoad
from srearena.conductor.validity.scene import Scene
from srearena.conductor.validity.scripts import Play
from srearena.generators.workload.wrk import CONFIG, JOB
from srearena.service.kubernetes import Obj


class StarvedLoad(SilencedLoad):
    """Their processor time is limited to a hundredth of a core."""

    name = "load generator starved"

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and scene.has_turn

    def play(self, scene: Scene) -> Play:
        lines = [
            scene.kubectl(f"set resources {target} --limits=cpu=10m --requests=cpu=10m")
            for target in self._targets(scene)
        ]
        return Play("\n".join(lines), wait=120)


class SlowedLoad(StarvedLoad):
    """Their settings ask for one user and one request a second."""

    name = "load generator slowed down"

    def play(self, scene: Scene) -> Play:
        names = "LOCUST_USERS USERS RATE REQUESTS_PER_SECOND THREADS CONNECTIONS"
        settings = " ".join(f"{name}=1" for name in names.split())
        return Play(
            "\n".join(scene.kubectl(f"set env {target} {settings}") for target in self._targets(scene)), wait=120
        )


class SlowedRounds(StarvedLoad):
    """wrk2 reads its rate from a ConfigMap: from now on it is a fiftieth."""

    name = "load at a fiftieth of its rate"

    def applies(self, scene: Scene) -> bool:
        job, settings = scene.broken.get("jobs.batch", JOB, scene.namespace), self._settings(scene)
        return scene.problem.repairable and scene.has_turn and job is not None and settings is not None

    def _settings(self, scene: Scene) -> Obj | None:
        return scene.broken.get("configmaps", CONFIG, scene.namespace)

    def play(self, scene: Scene) -> Play:
        settings = self._settings(scene)
        assert settings is not None
        data = {
            name: re.sub(r"(?m)^(rate=)([0-9.]+)", lambda match: f"{match[1]}{float(match[2]) / 50:g}", text)
            for name, text in settings["data"].items()
        }
        change = scene.patch("configmap", CONFIG, {"data": data}, kind="merge")
        return Play(f"{change}\n{scene.kubectl(f'delete pods --wait=false -l job-name={JOB}')}", wait=240)


SCRIPTS = (StarvedLoad(), SlowedLoad(), SlowedRounds())
