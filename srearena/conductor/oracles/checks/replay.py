"""The trigger is replayed: a disturbance like the one that began it passes, and the system comes back by itself.

Why it cannot be gamed: a restart ends a retry storm, and so does a pause in the load, but the next spike begins a new
one. Only a system that no longer feeds its own overload is healthy again a few minutes after the disturbance is over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from srearena.conductor.oracles.checks.base import Check
from srearena.conductor.oracles.checks.traffic import Traffic

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem

__all__ = ["Replay", "Triggered"]


@runtime_checkable
class Triggered(Protocol):
    def trigger(self) -> None:
        """Disturb the system for a while, and stop."""


class Replay(Check):
    name = "replay"
    disruptive = True
    """Needs what `Traffic` remembers, so that both belong to an oracle that replays."""

    def __init__(self, recovery: float = 240.0) -> None:
        self._recovery = recovery

    def complaints(self, problem: Problem) -> list[str]:
        if not isinstance(problem, Triggered):
            return []
        problem.trigger()
        problem.cluster.wait(self._recovery)
        return [f"after another disturbance: {line}" for line in Traffic(patience=60.0).complaints(problem)]
