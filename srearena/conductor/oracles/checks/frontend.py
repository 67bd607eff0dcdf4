"""Users are served: sample requests to the frontend meet the application's objectives for success and latency.

Why it cannot be gamed: the harness sends the requests itself, so stopping the load generator or an alert changes
nothing; the responses count, not the state of any object; and requests that worked before the fault must work.
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
"""Factor on the latency objective: a window of a few dozen requests estimates the 95th percentile roughly."""


class FrontendAvailability(Check):
    """The sample requests that worked on the healthy system work again."""

    name = "front-door"

    def __init__(self, window: float = 60.0, timeout: float = 180.0) -> None:
        self._window = window
        self._timeout = timeout

    def record_baseline(self, problem: Problem) -> dict[str, float]:
        """The sample requests that succeed on the healthy system, with their latency."""
        frontend = problem.app.frontend
        if frontend is None:
            return {}
        probes = frontend.probe_all(problem.kubernetes, problem.namespace)
        return {str(probe.request): probe.seconds for probe in probes if probe.ok}

    def complaints(self, problem: Problem) -> list[str]:
        expected: dict[str, float] = self.baseline_value(problem) or {}
        frontend = problem.app.frontend
        if frontend is None or not expected:
            return []
        requests = [request for request in frontend.requests if str(request) in expected]
        waited = 0.0
        while waited < self._timeout and not all(
            frontend.probe(problem.kubernetes, problem.namespace, request).ok for request in requests
        ):
            problem.cluster.wait(_STEP)
            waited += _STEP
        failed, latencies = Counter[str](), list[float]()
        rounds = max(1, round(self._window / _STEP))
        allowed = (1 - problem.app.objectives.success_ratio) * rounds * len(requests)
        for _ in range(rounds):
            if failed.total() > allowed:
                break  # the objective can no longer be met
            for request in requests:
                probe = frontend.probe(problem.kubernetes, problem.namespace, request)
                latencies.append(probe.seconds)
                if not probe.ok:
                    failed[f"{request} answered {probe.status or 'nothing'}"] += 1
            problem.cluster.wait(_STEP)
        return [
            *_failing(failed, len(latencies), problem.app.objectives),
            *_slow(latencies, expected, problem.app.objectives),
        ]


def _failing(failed: Counter[str], sent: int, objectives: Objectives) -> list[str]:
    ratio = 1 - failed.total() / sent
    if ratio >= objectives.success_ratio:
        return []
    worst = "; ".join(f"{failure} {count} times" for failure, count in failed.most_common(3))
    share = f"the objective is {objectives.success_ratio:.0%}"
    return [f"{ratio:.0%} of {sent} requests to the frontend succeed, {share}: {worst}"]


def _slow(latencies: list[float], healthy: dict[str, float], objectives: Objectives) -> list[str]:
    """Complain only where the latency is well above the objective and above the healthy system's."""
    p95 = sorted(latencies)[math.ceil(0.95 * len(latencies)) - 1]
    if p95 <= _MARGIN * max(objectives.p95_seconds, *healthy.values()):
        return []
    return [
        f"requests to the frontend take {p95:.2g} s (95th percentile), the objective is {objectives.p95_seconds:g} s"
    ]
