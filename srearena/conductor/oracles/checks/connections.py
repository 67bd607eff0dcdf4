"""All connections to a Service succeed, not only those that reach the right pod.

Why it cannot be gamed: a pod of the harness opens many new connections, so an endpoint that does not listen is reached
sooner or later; a Service without endpoints accepts none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from srearena.conductor.oracles.checks.base import Check
from srearena.conductor.oracles.checks.probing import ProbeFailed, run_probe

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem


class ConnectionSuccess(Check):
    """Each of `times` connections to a Service is accepted."""

    name = "steadiness"

    def __init__(self, service: str, times: int = 40) -> None:
        self._service = service
        self._times = times

    def complaints(self, problem: Problem) -> list[str]:
        service = problem.kubernetes.find("services", self._service, problem.namespace)
        if service is None:
            return [f"there is no Service {self._service}"]
        port = service["spec"]["ports"][0]["port"]
        script = f"for i in $(seq {self._times}); do nc -z -w 3 {self._service} {port} && echo taken; done; true"
        try:
            accepted = run_probe(problem, script).split().count("taken")
        except ProbeFailed as failed:
            return [str(failed)]
        if accepted == self._times:
            return []
        return [f"{self._times - accepted} of {self._times} connections to {self._service}:{port} are not accepted"]
