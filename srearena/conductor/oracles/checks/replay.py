"""The trigger is replayed: after a disturbance like the first one the system recovers without help.

Why it cannot be gamed: a restart ends a retry storm, and so does a pause in the load, but the next spike starts a new
one. Only a system that no longer sustains its own overload is healthy a few minutes after the disturbance.
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
    """A problem whose trigger can be replayed."""

    def trigger(self) -> None:
        """Disturb the system for a while, and stop."""


class Replay(Check):
    name = "replay"
    disruptive = True
    """Uses the baseline of `Traffic`, so an oracle that replays needs both checks."""

    def __init__(self, recovery: float = 240.0) -> None:
        self._recovery = recovery

    def complaints(self, problem: Problem) -> list[str]:
        if not isinstance(problem, Triggered):
            return []
        problem.trigger()
        problem.cluster.wait(self._recovery)
        return [f"after another disturbance: {line}" for line in Traffic(timeout=60.0).complaints(problem)]
