"""Every workload of the application is up to date, ready, and stays so for a while.

A workload may have been replaced by one of another kind with the same name (a StatefulSet for a Deployment), and may be
scaled or rolled out by others while it is watched, by an autoscaler for instance: then the watch starts again, a few
times. Pods that an agent left behind are not judged.

Why it cannot be gamed: it checks the workloads of the baseline, not the remaining ones; old pods of a stuck rollout do
not count; pods are counted themselves, since the status of a workload lags behind them; and a container in a crash loop
restarts within the window.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from srearena.conductor.grading.baseline import WORKLOADS
from srearena.conductor.oracles.checks.base import Check
from srearena.service.kubernetes import Kubernetes, Obj
from srearena.service.readiness import describe_unready, missing_replicas, pod_problem

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem

_STEP = 5.0
_LONGEST_STEP = 15.0
_WATCHES = 3
"""How often the watch may start again because a workload was scaled or rolled out, or the grader replaced pods."""


def find_workload(api: Kubernetes, name: str, namespace: str) -> Obj | None:
    """The workload of that name, of whatever kind."""
    return next((obj for kind in WORKLOADS if (obj := api.find(kind, name, namespace)) is not None), None)


class Readiness(Check):
    """All workloads become ready within `timeout` and stay ready for `hold` seconds."""

    name = "readiness"

    # The timeout exceeds the longest back-off of a crashed container, which is five minutes.
    def __init__(
        self,
        timeout: float = 330.0,
        hold: float = 60.0,
        *,
        disturbed: bool = False,
        resources: Sequence[str] = WORKLOADS,
    ) -> None:
        """`disturbed`: the grader has just replaced pods, and clients that lost a connection to them may restart."""
        self._timeout = timeout
        self._hold = hold
        self._disturbed = disturbed
        self._resources = resources

    def complaints(self, problem: Problem) -> list[str]:
        found: list[str] = []
        for _ in range(_WATCHES):
            if found := self._until_ready(problem):
                return found
            before = _Observation(problem, self._resources)
            found = self._watch(problem)
            after = _Observation(problem, self._resources)
            if not found:
                found = [
                    f"container {container} of pod {pod} restarted meanwhile"
                    for (pod, container), count in after.restarts.items()
                    if count > before.restarts.get((pod, container), 0)
                ]
                if not (found and self._disturbed):
                    return found
            if before.generations == after.generations and not self._disturbed:
                break
        return [f"{line}, after having been ready" for line in found]

    def _until_ready(self, problem: Problem) -> list[str]:
        waited, step = 0.0, _STEP
        while (found := self._unready(problem) or _missing_pods(problem, self._resources)) and waited < self._timeout:
            problem.cluster.wait(step)
            waited += step
            step = min(1.5 * step, _LONGEST_STEP)
        return found

    def _watch(self, problem: Problem) -> list[str]:
        elapsed = 0.0
        while elapsed < self._hold:
            problem.cluster.wait(_STEP)
            elapsed += _STEP
            if found := self._unready(problem):
                return found
        return _missing_pods(problem, self._resources)

    def _unready(self, problem: Problem) -> list[str]:
        """The workloads that are not ready by their status."""
        found = []
        for namespace in problem.app.namespaces:
            workloads, gone = _expected(problem, namespace, self._resources)
            found += [f"{name} is deleted" for name in gone]
            late = [workload for workload in workloads if missing_replicas(workload) is not None]
            pods = problem.kubernetes.list("pods", namespace) if late else []
            found += [describe_unready(obj, pods) for obj in late]
        return found


class _Observation:
    """The generations of the workloads and the restarts of their containers at one moment."""

    def __init__(self, problem: Problem, resources: Sequence[str]) -> None:
        self.generations: dict[str, int] = {}
        self.restarts: dict[tuple[str, str], int] = {}
        for namespace in problem.app.namespaces:
            workloads, _ = _expected(problem, namespace, resources)
            pods = problem.kubernetes.list("pods", namespace)
            for workload in workloads:
                self.generations[workload["metadata"]["uid"]] = workload["metadata"].get("generation", 0)
                for pod in selected_pods(workload, pods):
                    for status in (pod.get("status") or {}).get("containerStatuses") or ():
                        key = (pod["metadata"]["name"], status["name"])
                        self.restarts[key] = status.get("restartCount", 0)


def _expected(problem: Problem, namespace: str, resources: Sequence[str]) -> tuple[list[Obj], list[str]]:
    """The workloads of the baseline as they are now, and the names of those that are gone."""
    api, baseline = problem.kubernetes, problem.baseline
    if baseline is None:
        return [obj for resource in resources for obj in api.list(resource, namespace)], []
    found: list[Obj] = []
    gone: list[str] = []
    for resource in resources:
        names = [obj["metadata"]["name"] for obj in baseline.of(resource, namespace=namespace)]
        now = {obj["metadata"]["name"]: obj for obj in api.list(resource, namespace)} if names else {}
        for name in names:
            workload = now.get(name) or find_workload(api, name, namespace)
            if workload is None:
                gone.append(name)
            else:
                found.append(workload)
    return found, gone


def _missing_pods(problem: Problem, resources: Sequence[str]) -> list[str]:
    """The workloads with fewer ready pods than their status says."""
    found = []
    for namespace in problem.app.namespaces:
        workloads, _ = _expected(problem, namespace, resources)
        pods = problem.kubernetes.list("pods", namespace)
        for workload in workloads:
            ready = sum(1 for pod in selected_pods(workload, pods) if not pod_problem(pod))
            requested = _requested_replicas(workload)
            if ready < requested:
                label = f"{workload['kind'].lower()} {workload['metadata']['name']}"
                found.append(f"{label}: {ready} of {requested} pods ready")
    return found


def _requested_replicas(workload: Obj) -> int:
    if workload["kind"] == "DaemonSet":
        return int((workload.get("status") or {}).get("desiredNumberScheduled", 0))
    return int(workload["spec"].get("replicas", 1))


def selected_pods(workload: Obj, pods: list[Obj]) -> list[Obj]:
    """The pods that a workload selects, without those that are being deleted."""
    labels = ((workload["spec"].get("selector") or {}).get("matchLabels") or {}).items()
    return [
        pod
        for pod in pods
        if labels <= (pod["metadata"].get("labels") or {}).items() and not pod["metadata"].get("deletionTimestamp")
    ]
