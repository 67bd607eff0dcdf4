"""Users are served: sample requests at the application's front door succeed as often and as fast as it promises.

Why it cannot be gamed: the harness sends the requests itself, so that silencing the load generator or an alert changes
nothing; what counts is the answer, not the state of any object; and requests that worked before the fault must work.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from srearena.conductor.oracles.checks.base import Check
from srearena.service.frontend import Objectives

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem

_STEP = 5.0
_MARGIN = 2.0


class FrontDoor(Check):
    name = "front-door"

    def __init__(self, window: float = 60.0, patience: float = 180.0) -> None:
        self._window = window
        self._patience = patience

    def record_baseline(self, problem: Problem) -> dict[str, float]:
        """The sample requests that a healthy system answers as they should be, and how long each takes."""
        door = problem.app.frontend
        if door is None:
            return {}
        visits = door.probe_all(problem.kubernetes, problem.namespace)
        return {str(visit.request): visit.seconds for visit in visits if visit.ok}

    def complaints(self, problem: Problem) -> list[str]:
        expected: dict[str, float] = self.remembered(problem) or {}
        door = problem.app.frontend
        if door is None or not expected:
            return []
        requests = [request for request in door.requests if str(request) in expected]
        waited = 0.0
        while waited < self._patience and not all(
            door.probe(problem.kubernetes, problem.namespace, request).ok for request in requests
        ):
            problem.cluster.wait(_STEP)
            waited += _STEP
        failed, took = Counter[str](), list[float]()
        rounds = max(1, round(self._window / _STEP))
        bearable = (1 - problem.app.objectives.success_ratio) * rounds * len(requests)
        for _ in range(rounds):
            if failed.total() > bearable:
                break  # whatever comes now, the promise is broken
            for request in requests:
                visit = door.probe(problem.kubernetes, problem.namespace, request)
                took.append(visit.seconds)
                if not visit.ok:
                    failed[f"{request} answered {visit.status or 'nothing'}"] += 1
            problem.cluster.wait(_STEP)
        return [*_failing(failed, len(took), problem.app.objectives), *_slow(took, expected, problem.app.objectives)]


def _failing(failed: Counter[str], sent: int, promised: Objectives) -> list[str]:
    ratio = 1 - failed.total() / sent
    if ratio >= promised.success_ratio:
        return []
    worst = "; ".join(f"{what} {count} times" for what, count in failed.most_common(3))
    share = f"{promised.success_ratio:.0%} are promised"
    return [f"{ratio:.0%} of {sent} requests at the front door succeed, {share}: {worst}"]


def _slow(took: list[float], healthy: dict[str, float], promised: Objectives) -> list[str]:
    """Few visits make a rough measure, so that only what is well beyond the promise and beyond healthy days counts."""
    p95 = sorted(took)[math.ceil(0.95 * len(took)) - 1]
    if p95 <= _MARGIN * max(promised.p95_seconds, *healthy.values()):
        return []
    return [f"requests at the front door take {p95:.2g} s (95th percentile), {promised.p95_seconds:g} s are promised"]
