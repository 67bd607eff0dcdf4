"""Every workload of the application is up to date, ready, and stays so for a while.

Why it cannot be gamed: it checks the workloads of the baseline, not the remaining ones; old pods of a stuck rollout do
not count; and a container in a crash loop restarts within the window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from srearena.conductor.grading.baseline import WORKLOADS
from srearena.conductor.oracles.checks.base import Check
from srearena.service.kubernetes import Kubernetes
from srearena.service.readiness import describe_unready, missing_replicas

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem

_STEP = 5.0
_LONGEST_STEP = 15.0


class Readiness(Check):
    """All workloads become ready within `timeout` and stay ready for `hold` seconds."""

    name = "readiness"

    # The timeout exceeds the longest back-off of a crashed container, which is five minutes.
    def __init__(self, timeout: float = 330.0, hold: float = 60.0) -> None:
        self._timeout = timeout
        self._hold = hold

    def complaints(self, problem: Problem) -> list[str]:
        waited, step = 0.0, _STEP
        while (found := _unready(problem)) and waited < self._timeout:
            problem.cluster.wait(step)
            waited += step
            step = min(1.5 * step, _LONGEST_STEP)
        if found:
            return found
        restarts = _restarts(problem.kubernetes, problem.app.namespaces)
        elapsed = 0.0
        while elapsed < self._hold:
            problem.cluster.wait(_STEP)
            elapsed += _STEP
            if found := _unready(problem):
                return [f"{line}, after having been ready" for line in found]
        return [
            f"container {container} of pod {pod} restarted meanwhile"
            for (pod, container), count in _restarts(problem.kubernetes, problem.app.namespaces).items()
            if count > restarts.get((pod, container), 0)
        ]


def _unready(problem: Problem) -> list[str]:
    if problem.baseline is None:
        return problem.app.not_ready(problem.kubernetes)
    found = []
    for namespace in problem.app.namespaces:
        late = []
        for resource in WORKLOADS:
            expected = [obj["metadata"]["name"] for obj in problem.baseline.of(resource, namespace=namespace)]
            if not expected:
                continue
            now = {obj["metadata"]["name"]: obj for obj in problem.kubernetes.list(resource, namespace)}
            found += [f"{name} is deleted" for name in expected if name not in now]
            late += [now[name] for name in expected if name in now and missing_replicas(now[name]) is not None]
        pods = problem.kubernetes.list("pods", namespace) if late else []
        found += [describe_unready(obj, pods) for obj in late]
    return found


def _restarts(kubernetes: Kubernetes, namespaces: tuple[str, ...]) -> dict[tuple[str, str], int]:
    return {
        (pod["metadata"]["name"], status["name"]): status.get("restartCount", 0)
        for namespace in namespaces
        for pod in kubernetes.list("pods", namespace)
        for status in (pod.get("status") or {}).get("containerStatuses") or ()
    }
