"""The base of all checks: a check inspects the cluster and returns complaints, and may record a healthy baseline."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem


class Check(ABC):
    """One condition that a repaired system must meet."""

    name: str
    disruptive: bool = False
    """Whether the check itself changes the system; such checks run last, and only if all others pass."""
    policy: bool = False
    """Whether the check forbids ways to repair that its owners would not accept, rather than asking for a behaviour."""

    def record_baseline(self, problem: Problem) -> Any:
        """Measure the healthy system; the value is stored as `problem.baseline.facts[name]`."""
        return None

    def baseline_value(self, problem: Problem) -> Any:
        return problem.baseline.facts.get(self.name) if problem.baseline is not None else None

    @abstractmethod
    def complaints(self, problem: Problem) -> list[str]:
        """Describe what is wrong; empty where the check passes. May wait in the cluster's time."""
