"""Requests beyond the application's sample ones: for what a fault breaks and the front door's samples do not touch.

Why it cannot be gamed: as at the front door, the harness sends them itself, and only answers count. They are sent from
a pod inside the cluster, one after the other, each with its own limit of time, so that a slow answer is no answer.
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

_WGET_KNOWS = ("GET", "POST")
_SETTLE = 30.0


class Requests(Check):
    """Enough of `times` requests of each kind are answered within `seconds`."""

    name = "requests"

    def __init__(self, *requests: SampleRequest, times: int = 60, seconds: int = 5, at: Frontend | None = None) -> None:
        """`at` is where they are sent, if not to the application's front door."""
        self._requests = requests
        self._at = at
        self._times = times
        self._seconds = seconds

    def complaints(self, problem: Problem) -> list[str]:
        door = self._at or problem.app.frontend
        if door is None:
            return []
        problem.cluster.wait(_SETTLE)
        failed: Counter[str] = Counter()
        try:
            for request in self._requests:
                failed[str(request)] = self._times - self._answered(problem, door, request)
        except ProbeFailed as problem_of_probe:
            return [str(problem_of_probe)]
        allowed = self._times * (1 - problem.app.objectives.success_ratio)
        return [
            f"{count} of {self._times} requests {request} were not answered well within {self._seconds} s"
            for request, count in failed.items()
            if count > allowed
        ]

    def _answered(self, problem: Problem, door: Frontend, request: SampleRequest) -> int:
        if request.method not in _WGET_KNOWS:
            visits = (
                door.probe(problem.kubernetes, problem.namespace, request, self._seconds) for _ in range(self._times)
            )
            return sum(visit.ok for visit in visits)
        return run_probe(problem, self._script(door, request)).split().count("answered")

    def _script(self, door: Frontend, request: SampleRequest) -> str:
        """Silent but for one word per good answer; `wget -T` gives up on a server that stays silent for too long."""
        words = ["wget", "-q", "-T", str(self._seconds), "-O", "/dev/null"]
        if request.method == "POST":
            words += ["--header", "content-type: application/json", "--post-data", request.body]
        host = f"{door.service}.{door.namespace}" if door.namespace else door.service
        words.append(f"http://{host}:{door.port}{request.path}")
        return f"for i in $(seq {self._times}); do {shlex.join(words)} && echo answered; done; true"
