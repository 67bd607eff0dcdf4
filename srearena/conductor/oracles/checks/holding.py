"""The repair holds: what acts on the application every minute has acted again, and everything is still up.

Why it cannot be gamed: a repair that the next run of a scheduled actor undoes does not outlive the window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from srearena.conductor.oracles.checks.base import Check
from srearena.conductor.oracles.checks.readiness import Readiness

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem

__all__ = ["Holding"]


class Holding(Check):
    name = "holding"

    def __init__(self, seconds: float = 150.0) -> None:
        self._seconds = seconds

    def complaints(self, problem: Problem) -> list[str]:
        return Readiness(patience=60.0, hold=self._seconds).complaints(problem)
