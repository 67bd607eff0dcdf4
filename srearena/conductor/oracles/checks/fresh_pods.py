"""The workloads at fault can start again: their pods are deleted, the new ones become ready, and users reach them.

At fault is also what misbehaves because of something else: of a broken node, the workload that suffers from it.

Why it cannot be gamed: a repair inside a running container, labels put on running pods, endpoints written by hand, an
admission rule that only old pods escaped, and a configuration that no process has read yet do not survive it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from srearena.conductor.oracles.checks.backends import Backends
from srearena.conductor.oracles.checks.base import Check
from srearena.conductor.oracles.checks.frontend import FrontendAvailability
from srearena.conductor.oracles.checks.journeys import Journeys
from srearena.conductor.oracles.checks.reachability import Reachability
from srearena.conductor.oracles.checks.readiness import Readiness, find_workload
from srearena.service.errors import TimedOut
from srearena.service.kubernetes import Obj
from srearena.service.waiting import wait_until

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem


_KINDS = ("Deployment", "StatefulSet", "DaemonSet")
_WINDOW = 20.0
"""Seconds of requests to the frontend; the long observation was made before pods were replaced."""


class FreshPods(Check):
    """New pods of `workloads`, or of those at fault, become ready, and the application works with them."""

    name = "fresh-pods"
    disruptive = True

    def __init__(self, workloads: tuple[str, ...] | None = None, timeout: float = 330.0) -> None:
        self._workloads = workloads
        self._timeout = timeout

    def complaints(self, problem: Problem) -> list[str]:
        api, namespace = problem.kubernetes, problem.namespace
        names = _at_fault(problem) if self._workloads is None else self._workloads
        for name in names:
            workload = find_workload(api, name, namespace)
            if workload is None:
                continue
            old = _pods(problem, workload)
            for pod in old:
                api.delete("pods", pod["metadata"]["name"], namespace)
            old_uids = {pod["metadata"]["uid"] for pod in old}

            def replaced(workload: Obj = workload, old_uids: set[str] = old_uids) -> bool:
                return not old_uids & {pod["metadata"]["uid"] for pod in _pods(problem, workload)}

            try:
                wait_until(
                    replaced, problem.cluster.wait, self._timeout, what=f"the deletion of the old pods of {name}"
                )
            except TimedOut as late:
                return [str(late)]
        readiness = Readiness(self._timeout, hold=20.0, disturbed=True)
        for check in (readiness, Backends(), Reachability(), FrontendAvailability(_WINDOW), Journeys()):
            if found := check.complaints(problem):
                return [f"after new pods have started: {line}" for line in found]
        return []


def _at_fault(problem: Problem) -> list[str]:
    """The faulty services, and the workloads of the application among the members of the origins."""
    misbehaving = [
        member.name
        for origin in problem.origins
        for member in origin.members
        if member.namespace == problem.namespace and member.kind in _KINDS
    ]
    return list(dict.fromkeys((*problem.faulty_services, *misbehaving)))


def _pods(problem: Problem, workload: Obj) -> list[Obj]:
    match_labels = workload["spec"]["selector"].get("matchLabels") or {}
    labels = ",".join(f"{key}={value}" for key, value in match_labels.items())
    return problem.kubernetes.list("pods", problem.namespace, labels=labels)
