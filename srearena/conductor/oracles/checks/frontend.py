"""Users are served: sample requests to the frontend meet the application's objectives for success and latency.

Why it cannot be gamed: the harness sends the requests itself, so stopping the load generator or an alert changes
nothing; the responses count, not the state of any object; and requests that worked before the fault must work. A
response counts only with the shape that it had before: a server that answers "ok" to everything has another.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, TypedDict

from srearena.conductor.oracles.checks.base import Check
from srearena.conductor.oracles.checks.response_shape import common, features, lacking
from srearena.service.frontend import Objectives, ProbeResult

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem

_STEP = 5.0
_SAMPLES = 3
_MARGIN = 2.0
"""Factor on the latency objective: a window of a few dozen requests estimates the 95th percentile roughly."""


class _Expected(TypedDict):
    """What is expected of the response to a request."""

    seconds: float
    shape: list[str]


class FrontendAvailability(Check):
    """The sample requests that worked on the healthy system work again."""

    name = "frontend"

    def __init__(self, window: float = 60.0, timeout: float = 180.0) -> None:
        self._window = window
        self._timeout = timeout

    def record_baseline(self, problem: Problem) -> dict[str, _Expected]:
        """The sample requests that succeed on the healthy system, with their latency and the shape of the response."""
        frontend = problem.app.frontend
        if frontend is None:
            return {}
        probes: dict[str, list[ProbeResult]] = {}
        for _ in range(_SAMPLES):
            for probe in frontend.probe_all(problem.kubernetes, problem.namespace):
                probes.setdefault(str(probe.request), []).append(probe)
        return {
            request: {
                "seconds": samples[0].seconds,
                "shape": common(features(sample.text, sample.content_type) for sample in samples if sample.ok),
            }
            for request, samples in probes.items()
            if samples[0].ok
        }

    def complaints(self, problem: Problem) -> list[str]:
        expected: dict[str, _Expected] = self.baseline_value(problem) or {}
        frontend = problem.app.frontend
        if frontend is None or not expected:
            return []
        requests = [request for request in frontend.requests if str(request) in expected]
        waited = 0.0
        while waited < self._timeout and any(
            _failure(frontend.probe(problem.kubernetes, problem.namespace, request), expected) for request in requests
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
                if failure := _failure(probe, expected):
                    failed[failure] += 1
            problem.cluster.wait(_STEP)
        return [
            *_failing(failed, len(latencies), problem.app.objectives),
            *_slow(latencies, [value["seconds"] for value in expected.values()], problem.app.objectives),
        ]


def _failure(probe: ProbeResult, expected: dict[str, _Expected]) -> str:
    """Why a response does not count; empty where it does."""
    if not probe.ok:
        return f"{probe.request} answered {probe.status or 'nothing'}"
    missing = lacking(expected[str(probe.request)]["shape"], probe.text, probe.content_type)
    return f"{probe.request} answered without {missing[0]}" if missing else ""


def _failing(failed: Counter[str], sent: int, objectives: Objectives) -> list[str]:
    ratio = 1 - failed.total() / sent
    if ratio >= objectives.success_ratio:
        return []
    worst = "; ".join(f"{failure} {count} times" for failure, count in failed.most_common(3))
    share = f"the objective is {objectives.success_ratio:.0%}"
    return [f"{ratio:.0%} of {sent} requests to the frontend succeed, {share}: {worst}"]


def _slow(latencies: list[float], healthy: list[float], objectives: Objectives) -> list[str]:
    """Complain only where the latency is well above the objective and above the healthy system's."""
    p95 = sorted(latencies)[math.ceil(0.95 * len(latencies)) - 1]
    if p95 <= _MARGIN * max(objectives.p95_seconds, *healthy):
        return []
    return [
        f"requests to the frontend take {p95:.2g} s (95th percentile), the objective is {objectives.p95_seconds:g} s"
    ]
