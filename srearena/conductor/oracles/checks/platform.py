"""The platform still runs: the workloads of kube-system that were ready before the fault are ready.

Why it cannot be gamed: it asks what the controllers report, not what the specs say, so a component that was stopped by
a wrong argument, a missing setting or a selector that matches no node is found like one that was scaled to zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from srearena.conductor.grading.baseline import WORKLOADS
from srearena.conductor.oracles.checks.base import Check
from srearena.service.errors import TimedOut
from srearena.service.kubernetes import Obj
from srearena.service.waiting import wait_until

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem

_NAMESPACE = "kube-system"
_TIMEOUT = 90.0
"""Seconds; covers the restart of a component by the repair itself."""


class Platform(Check):
    """The components of kube-system run, on as many nodes as before."""

    name = "platform"

    def complaints(self, problem: Problem) -> list[str]:
        if problem.baseline is None:
            return []
        stopped: list[str] = []

        def runs() -> bool:
            stopped[:] = self._stopped(problem)
            return not stopped

        try:
            wait_until(runs, problem.cluster.wait, _TIMEOUT, what="the platform")
        except TimedOut:
            return stopped
        return []

    def _stopped(self, problem: Problem) -> list[str]:
        assert problem.baseline is not None
        found = []
        for resource in WORKLOADS:
            before = list(problem.baseline.of(resource, namespace=_NAMESPACE))
            current = problem.kubernetes.list(resource, _NAMESPACE) if before else []
            now = {obj["metadata"]["name"]: obj for obj in current}
            for obj in before:
                name = obj["metadata"]["name"]
                if name not in now:
                    found.append(f"{obj['kind']} {name} of the platform is deleted")
                elif _ready(now[name]) < min(_ready(obj), 1) or _desired_nodes(now[name]) < _desired_nodes(obj):
                    found.append(f"{obj['kind']} {name} of the platform does not run as before")
        return found


def _ready(workload: Obj) -> int:
    status = workload.get("status") or {}
    return int(status.get("numberReady" if workload["kind"] == "DaemonSet" else "readyReplicas") or 0)


def _desired_nodes(workload: Obj) -> int:
    """The nodes that a DaemonSet runs on; other workloads may be scaled, and are compared as collateral."""
    return int((workload.get("status") or {}).get("desiredNumberScheduled") or 0)
