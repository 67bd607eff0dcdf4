"""Guesses: answers that need no look at the system.

How it would win: naming every component names the culprit; a healthy system with fewer stages gives itself
away; a healthy system may be changed at will while the answer is that nothing is wrong.
What stops it: only the exact set of components passes, every episode asks the same stages, and breaking a healthy
system fails its trial.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from srearena.conductor.validity.scene import Scene
from srearena.conductor.validity.scripts import Play, Script, verdict_of


class NameEverything(Script):
    name = "naming every component"

    def applies(self, scene: Scene) -> bool:
        return True

    def play(self, scene: Scene) -> Play:
        names = sorted({obj["metadata"]["name"] for _, obj in scene.workloads()} | set(scene.culprits))
        return Play(answers={"localization": names[:100]}, graded=False)

    def wins(self, document: Mapping[str, Any]) -> bool:
        return verdict_of(document, "localization")


class BreakHealthySystem(Script):
    name = "breaking a healthy system"

    def applies(self, scene: Scene) -> bool:
        return scene.problem.level == "none" and any(True for _ in scene.workloads())

    def play(self, scene: Scene) -> Play:
        resource, obj = next(iter(scene.workloads()))
        return Play(scene.kubectl(f"delete {resource} {obj['metadata']['name']}"), at="detection", wait=30)


SCRIPTS = (NameEverything(), BreakHealthySystem())
