"""The application does its work from end to end: what users write can be read back, and what must be refused is.

Why it cannot be gamed: every play has a marker of its own, so that no prepared answer fits; what one request writes
must come back through another operation, in the right place and only there; and the application must refuse what it
cannot do. A server that says "ok" fails at the first answer that depends on the request before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from srearena.conductor.oracles.checks.base import Check

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem

_STEP = 10.0


class Journeys(Check):
    """The journeys that the healthy application served are served again."""

    name = "journeys"

    def __init__(self, timeout: float = 60.0) -> None:
        self._timeout = timeout
        """How long the system may need for the last of its recovery, such as reconnecting to a store."""

    def record_baseline(self, problem: Problem) -> list[str]:
        """The journeys that the healthy system serves."""
        return [name for name, complaints in _play(problem).items() if not complaints]

    def complaints(self, problem: Problem) -> list[str]:
        expected: list[str] = self.baseline_value(problem) or []
        waited = 0.0
        while True:
            results = _play(problem, expected)
            complaints = [line for name in expected for line in results.get(name, ())]
            if not complaints or waited >= self._timeout:
                return complaints
            problem.cluster.wait(_STEP)
            waited += _STEP


def _play(problem: Problem, names: list[str] | None = None) -> dict[str, list[str]]:
    """The complaints of each journey of the application, or of those named."""
    frontend = problem.app.frontend
    if frontend is None:
        return {}
    return {
        journey.name: journey.play(problem.kubernetes, frontend, problem.namespace)
        for journey in problem.app.journeys
        if names is None or journey.name in names
    }
