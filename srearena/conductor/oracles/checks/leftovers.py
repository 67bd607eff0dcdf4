"""The application works without what the agent left behind: pods, jobs and workloads of its own are removed first.

A pod of the agent could do the work of a program that is still broken: read from the queue, publish the results, take
off finalizers, restart what hangs. It is not declared and would not come back after a failure. So the grader
removes it, and the checks that follow see the application alone.

Why it cannot be gamed: everything goes that was not there when the agent started, unless a controller made it for an
owner that was there, or it has the name of a declared workload, which `intent` and `backends` compare. An owner
reference counts only to a kind that makes such objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from srearena.conductor.grading.baseline import WORKLOADS, capture
from srearena.conductor.oracles.checks.base import Check
from srearena.service.errors import ApiRefused
from srearena.service.kubernetes import Obj

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem

_RESOURCES = (*WORKLOADS, "cronjobs.batch", "replicasets.apps", "replicationcontrollers", "jobs.batch", "pods")
_MADE_BY = {
    "Pod": ("ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job", "Node"),
    "ReplicaSet": ("Deployment",),
    "Job": ("CronJob",),
}
_SETTLE = 40.0
"""Seconds; longer than the usual 30 s that a pod has for its end."""


class Leftovers(Check):
    """Removes what the agent added to the application's namespaces."""

    name = "leftovers"

    def complaints(self, problem: Problem) -> list[str]:
        if problem.baseline is None or problem.handed_over is None:
            return []
        namespaces = problem.app.namespaces
        now = capture(problem.kubernetes, namespaces, _RESOURCES)
        declared = {obj["metadata"]["name"] for obj in problem.baseline.of(*WORKLOADS)}
        uids = {obj["metadata"]["uid"]: obj["kind"] for obj in now.objects.values()}
        removed = False
        for key, obj in now.objects.items():
            resource, namespace, name = key
            known = key in problem.baseline.objects or key in problem.handed_over.objects
            if namespace not in namespaces or known or (resource in WORKLOADS and name in declared):
                continue
            if _is_made(obj, uids):
                continue
            try:
                problem.kubernetes.delete(resource, name, namespace)
                removed = True
            except ApiRefused as refused:
                return [f"{obj['kind']} {name}, which the agent left behind, cannot be removed: {refused}"]
        if removed:
            problem.cluster.wait(_SETTLE)
        return []


def _is_made(obj: Obj, uids: dict[str, str]) -> bool:
    """Whether a controller made the object: built-in ones by kind, operators for their own resources."""
    for owner in obj["metadata"].get("ownerReferences") or ():
        if not owner.get("controller"):
            continue
        if "." in str(owner.get("apiVersion", "")).partition("/")[0] and owner.get("uid") not in uids:
            return True  # an operator's resource; its definition is beyond the agent's rights
        kinds = _MADE_BY.get(obj["kind"], ())
        return owner.get("kind") in kinds and (owner["kind"] == "Node" or uids.get(owner.get("uid")) == owner["kind"])
    return False
