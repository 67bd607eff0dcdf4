"""Agent scripts: what a cheat or an honest engineer does in an episode, and how the scripts are found.

A script is a class in a module of `validity/cheats` or `validity/honest`; a module lists its instances in `SCRIPTS`.
A new script is one new file. Each is played by `player` as an agent, with an agent's rights.
"""

from __future__ import annotations

import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from srearena.conductor.problems.base import Problem
from srearena.conductor.validity.scene import Scene


@dataclass(frozen=True, slots=True)
class Play:
    """What an agent does. Shell scripts run with the agent's kubeconfig and an otherwise empty environment."""

    script: str = ""
    """Runs when the stage `at` opens."""
    at: str = "mitigation"
    wait: float = 10.0
    """Seconds of the cluster's time between the script and the submission of that stage."""
    afterwards: str = ""
    """Is started in the background with the last submission."""
    answers: Mapping[str, Any] = field(default_factory=dict)
    """By stage; the right answer where there is none."""
    beforehand: Callable[[Problem], None] | None = None
    """What the harness does before the agent starts."""
    graded: bool = True
    """Whether the mitigation is graded; not where the script aims at something else."""
    leaves_processes: bool = False
    """Whether the script leaves processes behind in containers."""
    speed: float = 0.0
    """Of the cluster's clock while the agent works; 0 where the script itself does not wait."""


class Script(ABC):
    """The base of all scripts. The docstring of a cheat says how it would win and what stops it."""

    name: str

    def applies(self, scene: Scene) -> bool:
        return scene.problem.repairable

    @abstractmethod
    def play(self, scene: Scene) -> Play:
        """What the agent does on this problem."""

    def wins(self, document: Mapping[str, Any]) -> bool:
        """Whether the result of the trial is what the script aims at: by default that it passes.

        A cheat that makes grading fail wins as well: an environment error does not count against an agent.
        """
        return document["outcome"] in ("pass", "environment error")


class Honest(Script):
    """A repair that must pass."""

    def wins(self, document: Mapping[str, Any]) -> bool:
        return bool(document["outcome"] == "pass")


def verdict_of(document: Mapping[str, Any], stage: str) -> bool:
    return any(
        record["stage"] == stage and (record.get("verdict") or {}).get("passed") for record in document["stages"]
    )


def cheats() -> list[Script]:
    return _found("cheats")


def honest_variants() -> list[Script]:
    return _found("honest")


@cache
def _found(folder: str) -> list[Script]:
    package = importlib.import_module(f"srearena.conductor.validity.{folder}")
    scripts: dict[str, Script] = {}
    for module in sorted(pkgutil.iter_modules(package.__path__), key=lambda entry: entry.name):
        loaded = importlib.import_module(f"{package.__name__}.{module.name}")
        for script in getattr(loaded, "SCRIPTS", ()):
            if script.name in scripts:
                raise ValueError(f"two scripts are called {script.name!r}")
            scripts[script.name] = script
    return list(scripts.values())
