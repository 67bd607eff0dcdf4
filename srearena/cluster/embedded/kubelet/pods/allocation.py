"""Resources that a node has allocated to a pod: what its containers run with while a resize waits.

A resize that the node can never satisfy is Infeasible, one that other pods leave no room for now is Deferred. Either
way the containers keep what they have, and the pod says so in a condition.
"""

from __future__ import annotations

from dataclasses import dataclass

from srearena.cluster.embedded.kubelet.pods.admission import Commitments, out_of_resources
from srearena.cluster.embedded.objects import Obj, dig, meta
from srearena.cluster.embedded.registry.placement import amount, pod_requests

PENDING_CONDITION = "PodResizePending"
DEFERRED, INFEASIBLE = "Deferred", "Infeasible"
_LISTS = ("containers", "initContainers")


@dataclass(frozen=True, slots=True)
class PendingResize:
    """Why the resources that a pod asks for are not allocated."""

    reason: str
    message: str

    def condition(self, pod: Obj, now: str) -> Obj:
        row: Obj = {
            "type": PENDING_CONDITION,
            "status": "True",
            "lastProbeTime": now,
            "reason": self.reason,
            "message": self.message,
        }
        generation = meta(pod).get("generation")
        return {**row, "observedGeneration": generation} if generation else row


def resources_of(pod: Obj) -> dict[str, Obj]:
    """The resources of a pod's containers, by name."""
    spec = pod["spec"]
    return {row["name"]: row.get("resources") or {} for key in _LISTS for row in spec.get(key) or ()}


def with_resources(pod: Obj, resources: dict[str, Obj]) -> Obj:
    """The pod with other resources for its containers."""
    spec = pod["spec"]
    lists = {
        key: [{**row, "resources": resources.get(row["name"], row.get("resources") or {})} for row in spec[key]]
        for key in _LISTS
        if spec.get(key)
    }
    return {**pod, "spec": {**spec, **lists}}


def pending_resize(pod: Obj, node: Obj, others: Commitments) -> PendingResize | None:
    """Why the node cannot allocate what the pod asks for now; None where it can."""
    allocatable, requests = dig(node, "status", "allocatable", default={}), pod_requests(pod)
    for name in ("memory", "cpu"):
        capacity, requested = amount(name, allocatable.get(name, 0)), requests.get(name, 0)
        if requested > capacity:
            why = f"Node didn't have enough capacity: {name}, requested: {requested}, capacity: {capacity}"
            return PendingResize(INFEASIBLE, why)
    refused = out_of_resources(pod, node, others)
    return PendingResize(DEFERRED, refused.message) if refused is not None else None
