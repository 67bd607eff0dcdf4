"""The frontend check grades the success and the latency of requests."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from srearena.conductor.oracles.checks.frontend import FrontendAvailability
from srearena.service.frontend import Objectives, ProbeResult, SampleRequest

HOME = SampleRequest("/")


class StubFrontend:
    """Responds with latencies from a repeating list; None for no response."""

    requests = (HOME,)

    def __init__(self, *times: float | None) -> None:
        self._times = times
        self._visits = 0

    def probe(self, api: object, namespace: str, request: SampleRequest) -> ProbeResult:
        took = self._times[self._visits % len(self._times)]
        self._visits += 1
        return ProbeResult(request, 0, "") if took is None else ProbeResult(request, 200, "", took)


def complaints(frontend: StubFrontend, healthy: float = 0.1) -> list[str]:
    problem: Any = SimpleNamespace(
        app=SimpleNamespace(frontend=frontend, objectives=Objectives(0.9, p95_seconds=0.5)),
        kubernetes=None,
        namespace="shop",
        cluster=SimpleNamespace(wait=lambda seconds: None),
        baseline=SimpleNamespace(facts={"front-door": {str(HOME): healthy}}),
    )
    return FrontendAvailability(window=100).complaints(problem)


@pytest.mark.parametrize("times", [(0.1,), (0.4, 0.6), (0.9,), (*[0.1] * 20, 4.0)])
def test_what_keeps_to_the_promise_is_fine(times: tuple[float, ...]) -> None:
    assert complaints(StubFrontend(*times)) == []


@pytest.mark.parametrize("times", [(1.5,), (0.1, 0.1, 0.1, 4.0)])
def test_answers_that_come_too_late_are_a_complaint(times: tuple[float, ...]) -> None:
    (complaint,) = complaints(StubFrontend(*times))
    assert "95th percentile" in complaint and "the objective is 0.5 s" in complaint


def test_what_was_slow_on_healthy_days_is_no_fault() -> None:
    assert complaints(StubFrontend(1.5), healthy=1.2) == []


def test_no_answer_is_a_complaint_of_its_own() -> None:
    (complaint,) = complaints(StubFrontend(None, 0.1))
    assert "GET / answered nothing" in complaint
