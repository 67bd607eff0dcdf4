"""Every workload of the application is up to date, ready, and stays so for a while.

A workload may have been replaced by one of another kind with the same name (a StatefulSet for a Deployment), and may be
scaled or rolled out by others while it is watched, by an autoscaler for instance: then the watch starts again, a few
times. Pods that an agent left behind are not judged.

Why it cannot be gamed: it checks the workloads of the baseline, not the remaining ones; old pods of a stuck rollout do
not count; pods are counted themselves, since the status of a workload lags behind them; and a container in a crash loop
restarts within the window, as a pod that is deleted again and again is replaced within it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
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
            found, before = self._until_ready(problem)
            if found:
                return found
            found, after = self._watch(problem)
            if not found:
                restarts = before.restarts
                found = [
                    f"container {container} of pod {pod} restarted meanwhile"
                    for (pod, container), count in after.restarts.items()
                    if count > restarts.get((pod, container), 0)
                ]
                found += after.replaced_since(before)
                if not (found and self._disturbed):
                    return found
            if before.generations == after.generations and not self._disturbed:
                break
        return [f"{line}, after having been ready" for line in found]

    def _until_ready(self, problem: Problem) -> tuple[list[str], _State]:
        waited, step = 0.0, _STEP
        state = _State(problem, self._resources)
        while (found := state.unready() or state.missing_pods()) and waited < self._timeout:
            problem.cluster.wait(step)
            waited += step
            step = min(1.5 * step, _LONGEST_STEP)
            state = _State(problem, self._resources)
        return found, state

    def _watch(self, problem: Problem) -> tuple[list[str], _State]:
        elapsed = 0.0
        while True:
            problem.cluster.wait(_STEP)
            elapsed += _STEP
            state = _State(problem, self._resources)
            if found := state.unready():
                return found, state
            if elapsed >= self._hold:
                return state.missing_pods(), state


class _State:
    """The workloads and their pods at one moment: each is listed once."""

    def __init__(self, problem: Problem, resources: Sequence[str]) -> None:
        self._api = problem.kubernetes
        self._workloads: dict[str, list[Obj]] = {}
        """By namespace."""
        self._gone: dict[str, list[str]] = {}
        for namespace in problem.app.namespaces:
            self._workloads[namespace], self._gone[namespace] = _expected(problem, namespace, resources)

    @cached_property
    def _pods(self) -> dict[str, list[Obj]]:
        return {namespace: self._api.list("pods", namespace) for namespace in self._workloads}

    def unready(self) -> list[str]:
        """The workloads that are not ready by their status."""
        found = []
        for namespace, workloads in self._workloads.items():
            found += [f"{name} is deleted" for name in self._gone[namespace]]
            late = [workload for workload in workloads if missing_replicas(workload) is not None]
            found += [describe_unready(obj, self._pods[namespace]) for obj in late]
        return found

    def missing_pods(self) -> list[str]:
        """The workloads with fewer ready pods than their status says."""
        found = []
        for namespace, workloads in self._workloads.items():
            for workload in workloads:
                selected = selected_pods(workload, self._pods[namespace])
                ready = sum(1 for pod in selected if not pod_problem(pod))
                requested = _requested_replicas(workload)
                if ready < requested:
                    label = f"{workload['kind'].lower()} {workload['metadata']['name']}"
                    found.append(f"{label}: {ready} of {requested} pods ready")
        return found

    @property
    def generations(self) -> dict[str, int]:
        return {
            workload["metadata"]["uid"]: workload["metadata"].get("generation", 0)
            for workloads in self._workloads.values()
            for workload in workloads
        }

    def replaced_since(self, before: _State) -> list[str]:
        """Pods that are gone although their workload is unchanged: something deletes them again and again.

        A fast program is ready before the next look, so the looks alone would not show it.
        """
        unchanged = {key for key, generation in self.generations.items() if before.generations.get(key) == generation}
        return sorted(
            f"pod {name} was replaced meanwhile"
            for (workload, pod), name in before._pod_names.items()
            if workload in unchanged and (workload, pod) not in self._pod_names
        )

    @cached_property
    def _pod_names(self) -> dict[tuple[str, str], str]:
        """By the UIDs of workload and pod."""
        return {
            (workload["metadata"]["uid"], pod["metadata"]["uid"]): pod["metadata"]["name"]
            for namespace, workloads in self._workloads.items()
            for workload in workloads
            for pod in selected_pods(workload, self._pods[namespace])
        }

    @property
    def restarts(self) -> dict[tuple[str, str], int]:
        """By pod and container."""
        return {
            (pod["metadata"]["name"], status["name"]): status.get("restartCount", 0)
            for namespace, workloads in self._workloads.items()
            for workload in workloads
            for pod in selected_pods(workload, self._pods[namespace])
            for status in (pod.get("status") or {}).get("containerStatuses") or ()
        }


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
