"""The platform still runs: kubelets report, and the workloads of kube-system that were ready before are ready.

Why it cannot be gamed: it asks what the controllers report, not what the specs say, so a component that was stopped by
a wrong argument, a missing setting or a selector that matches no node is found like one that was scaled to zero. A
kubelet that ran when the agent came in must renew its lease while the check waits: one that was stopped just now leaves
its node Ready and its pods as they were for 40 seconds more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from srearena.conductor.grading.baseline import WORKLOADS, Baseline
from srearena.conductor.oracles.checks.base import Check
from srearena.service.errors import TimedOut
from srearena.service.kubernetes import Obj
from srearena.service.waiting import wait_until

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem

_NAMESPACE = "kube-system"
_TIMEOUT = 90.0
"""Seconds; covers the restart of a component by the repair itself."""
_LEASES = "leases.coordination.k8s.io"
_LEASE_NAMESPACE = "kube-node-lease"


class Platform(Check):
    """The components of kube-system run, on as many nodes as before."""

    name = "platform"

    def complaints(self, problem: Problem) -> list[str]:
        if problem.baseline is None:
            return []
        stopped: list[str] = []
        renewed_before = _renewals(problem)

        def runs() -> bool:
            stopped[:] = [*self._stopped(problem), *self._silent_nodes(problem, renewed_before)]
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

    def _silent_nodes(self, problem: Problem, renewed_before: dict[str, str]) -> list[str]:
        """Nodes that were ready both before the fault and at hand-over, and whose kubelet reports nothing now."""
        captures = [capture for capture in (problem.baseline, problem.handed_over) if capture is not None]
        renewed = _renewals(problem)
        return [
            f"the kubelet of node {name} does not report any more"
            for name in sorted(set.intersection(*(set(_ready_nodes(capture)) for capture in captures)))
            if name in renewed and renewed[name] == renewed_before.get(name)
        ]


def _ready_nodes(capture: Baseline) -> list[str]:
    return [obj["metadata"]["name"] for obj in capture.of("nodes") if _is_ready(obj)]


def _is_ready(node: Obj) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(row["type"] == "Ready" and row["status"] == "True" for row in conditions)


def _renewals(problem: Problem) -> dict[str, str]:
    """The last renewal of each node's lease; a node that is gone has none."""
    leases = problem.kubernetes.list(_LEASES, _LEASE_NAMESPACE)
    return {lease["metadata"]["name"]: str(lease["spec"].get("renewTime")) for lease in leases}


def _ready(workload: Obj) -> int:
    status = workload.get("status") or {}
    return int(status.get("numberReady" if workload["kind"] == "DaemonSet" else "readyReplicas") or 0)


def _desired_nodes(workload: Obj) -> int:
    """The nodes that a DaemonSet runs on; other workloads may be scaled, and are compared as collateral."""
    return int((workload.get("status") or {}).get("desiredNumberScheduled") or 0)
