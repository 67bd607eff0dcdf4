"""Additional requests, for faults that the application's sample requests do not exercise.

Why it cannot be gamed: the harness sends them itself, and only responses count. They are sent from a pod inside the
cluster, one after the other, each with its own timeout, so a slow response counts as a failure.
"""

from __future__ import annotations

import shlex
from collections import Counter
from typing import TYPE_CHECKING

from srearena.conductor.oracles.checks.base import Check
from srearena.conductor.oracles.checks.probing import ProbeFailed, run_probe
from srearena.service.frontend import Frontend, SampleRequest

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem

_WGET_METHODS = ("GET", "POST")
_SETTLE = 30.0


class Requests(Check):
    """Enough of `times` requests of each kind succeed within `seconds`."""

    name = "requests"

    def __init__(self, *requests: SampleRequest, times: int = 60, seconds: int = 5, at: Frontend | None = None) -> None:
        """`at` is the target, if not the application's frontend."""
        self._requests = requests
        self._at = at
        self._times = times
        self._seconds = seconds

    def complaints(self, problem: Problem) -> list[str]:
        frontend = self._at or problem.app.frontend
        if frontend is None:
            return []
        problem.cluster.wait(_SETTLE)
        failed: Counter[str] = Counter()
        try:
            for request in self._requests:
                failed[str(request)] = self._times - self._answered(problem, frontend, request)
        except ProbeFailed as problem_of_probe:
            return [str(problem_of_probe)]
        allowed = self._times * (1 - problem.app.objectives.success_ratio)
        return [
            f"{count} of {self._times} requests {request} did not succeed within {self._seconds} s"
            for request, count in failed.items()
            if count > allowed
        ]

    def _answered(self, problem: Problem, frontend: Frontend, request: SampleRequest) -> int:
        if request.method not in _WGET_METHODS:
            probes = (
                frontend.probe(problem.kubernetes, problem.namespace, request, self._seconds)
                for _ in range(self._times)
            )
            return sum(probe.ok for probe in probes)
        return run_probe(problem, self._script(frontend, request)).split().count("answered")

    def _script(self, frontend: Frontend, request: SampleRequest) -> str:
        """A script that prints one word per successful request; `wget -T` is the timeout."""
        words = ["wget", "-q", "-T", str(self._seconds), "-O", "/dev/null"]
        if request.method == "POST":
            words += ["--header", "content-type: application/json", "--post-data", request.body]
        host = f"{frontend.service}.{frontend.namespace}" if frontend.namespace else frontend.service
        words.append(f"http://{host}:{frontend.port}{request.path}")
        return f"for i in $(seq {self._times}); do {shlex.join(words)} && echo answered; done; true"
