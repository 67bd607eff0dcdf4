"""The repair is sustained: scheduled jobs that act every minute have run again, and all workloads are still ready.

Why it cannot be gamed: a repair that the next run of a scheduled job reverts does not last for the window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from srearena.conductor.oracles.checks.base import Check
from srearena.conductor.oracles.checks.readiness import Readiness

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem

__all__ = ["SustainedReadiness"]


class SustainedReadiness(Check):
    """All workloads stay ready for `seconds`."""

    name = "holding"

    def __init__(self, seconds: float = 150.0) -> None:
        self._seconds = seconds

    def complaints(self, problem: Problem) -> list[str]:
        return Readiness(timeout=60.0, hold=self._seconds).complaints(problem)
