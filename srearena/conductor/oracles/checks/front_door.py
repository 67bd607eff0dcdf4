"""Users are served: sample requests at the application's front door succeed as often as it promises, over a window.

Why it cannot be gamed: the harness sends the requests itself, so that silencing the load generator or an alert changes
nothing; what counts is the answer, not the state of any object; and requests that worked before the fault must work.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from srearena.conductor.oracles.checks.base import Check

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem

_STEP = 5.0


class FrontDoor(Check):
    name = "front-door"

    def __init__(self, window: float = 60.0, patience: float = 180.0) -> None:
        self._window = window
        self._patience = patience

    def remember(self, problem: Problem) -> list[str]:
        """The sample requests that a healthy system answers as they should be."""
        door = problem.app.front_door
        if door is None:
            return []
        return [str(visit.request) for visit in door.visits(problem.kubernetes, problem.namespace) if visit.ok]

    def complaints(self, problem: Problem) -> list[str]:
        expected = set(self.remembered(problem) or ())
        door = problem.app.front_door
        if door is None or not expected:
            return []
        requests = [request for request in door.requests if str(request) in expected]
        waited = 0.0
        while waited < self._patience and not all(
            door.visit(problem.kubernetes, problem.namespace, request).ok for request in requests
        ):
            problem.cluster.wait(_STEP)
            waited += _STEP
        sent, failed = 0, Counter[str]()
        for _ in range(max(1, round(self._window / _STEP))):
            for request in requests:
                visit = door.visit(problem.kubernetes, problem.namespace, request)
                sent += 1
                if not visit.ok:
                    failed[f"{request} answered {visit.status or 'nothing'}"] += 1
            problem.cluster.wait(_STEP)
        ratio = 1 - failed.total() / sent
        promised = problem.app.objectives.success_ratio
        if ratio >= promised:
            return []
        worst = "; ".join(f"{what} {count} times" for what, count in failed.most_common(3))
        return [f"{ratio:.0%} of {sent} requests at the front door succeed, {promised:.0%} are promised: {worst}"]
