"""A check looks at the cluster and complains. It may look once before the fault, to know what healthy means here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem


class Check(ABC):
    name: ClassVar[str]
    disruptive: ClassVar[bool] = False
    """Whether the check itself changes the system; such checks come last, and only if the others are content."""

    def record_baseline(self, problem: Problem) -> Any:
        """What to keep from the healthy system; it comes back as `problem.baseline.facts[name]`."""
        return None

    def remembered(self, problem: Problem) -> Any:
        return problem.baseline.facts.get(self.name) if problem.baseline is not None else None

    @abstractmethod
    def complaints(self, problem: Problem) -> list[str]:
        """What is wrong, in words; nothing if the check is content. May let the cluster's time pass."""
