"""The application works without what the agent left behind: pods, jobs and workloads of its own are removed first.

A pod of the agent could do the work of a program that is still broken: read from the queue, publish the results, take
off finalizers, restart what hangs. It is not declared and would not come back after a failure. So the grader
removes it, and the checks that follow see the application alone.

Why it cannot be gamed: everything goes that was not there when the agent started, unless the controller of an owner of
the right kind made it, or it is in the place of a declared workload that is gone, which `intent` and `backends`
compare. A pod's own grace period does not prolong its work: one that is being deleted has half a minute left at most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from srearena.conductor.grading.baseline import WORKLOADS, capture
from srearena.conductor.oracles.checks.base import Check
from srearena.service.errors import ApiRefused

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem

_RESOURCES = (*WORKLOADS, "cronjobs.batch", "replicasets.apps", "replicationcontrollers", "jobs.batch", "pods")
_SETTLE = 40.0
"""Seconds; longer than the usual 30 s that a pod has for its end."""
_STEP = 5.0
_GRACE = 30
"""Seconds that a pod has for its end by default."""


class Leftovers(Check):
    """Removes what the agent added to the application's namespaces."""

    name = "leftovers"

    def complaints(self, problem: Problem) -> list[str]:
        if problem.baseline is None or problem.handed_over is None:
            return []
        namespaces = problem.app.namespaces
        now = capture(problem.kubernetes, namespaces)
        replaced = {key[1:] for key in problem.baseline.objects.keys() - now.objects.keys() if key[0] in WORKLOADS}
        removed = False
        for key, obj in now.objects.items():
            resource, namespace, name = key
            known = key in problem.baseline.objects or key in problem.handed_over.objects
            if resource not in _RESOURCES or namespace not in namespaces or known:
                continue
            if resource in WORKLOADS and (namespace, name) in replaced:
                continue
            try:
                problem.kubernetes.delete(resource, name, namespace, grace=1 if resource == "pods" else None)
                removed = True
            except ApiRefused as refused:
                return [f"{obj['kind']} {name}, which the agent left behind, cannot be removed: {refused}"]
        waited = 0.0
        while _shorten_grace(problem) + removed and waited < _SETTLE:
            problem.cluster.wait(_STEP)
            waited += _STEP
        return []


def _shorten_grace(problem: Problem) -> int:
    """Have pods end that would take longer than usual for it; the number of these."""
    slow = [
        pod["metadata"]
        for namespace in problem.app.namespaces
        for pod in problem.kubernetes.list("pods", namespace)
        if pod["metadata"].get("deletionTimestamp") and pod["metadata"].get("deletionGracePeriodSeconds", 0) > _GRACE
    ]
    for metadata in slow:
        problem.kubernetes.delete("pods", metadata["name"], metadata["namespace"], grace=1)
    return len(slow)
