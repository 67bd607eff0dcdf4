"""Whether a node takes a pod that was bound to it: the kubelet's last word, after the scheduler's.

A pod that is turned away becomes Failed at once. What the kubelet checks is what the scheduler checks about a single
node, since pods can be bound past it, and since the node may have changed meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from srearena.cluster.embedded.objects import Obj, dig
from srearena.cluster.embedded.registry.placement import (
    amount,
    host_ports,
    matches_node_selector,
    pod_requests,
    ports_clash,
    tolerated,
    untolerated_taint,
)
from srearena.cluster.embedded.registry.strategies.pod_resources import qos_class

SYSTEM_CRITICAL_PRIORITY = 2_000_000_000
_MEMORY_PRESSURE = {"key": "node.kubernetes.io/memory-pressure", "effect": "NoSchedule"}


@dataclass(frozen=True, slots=True)
class Rejection:
    reason: str
    message: str


def is_critical(pod: Obj) -> bool:
    priority = dig(pod, "spec", "priority")
    return priority is not None and priority >= SYSTEM_CRITICAL_PRIORITY


def rejection_of(
    pod: Obj, node: Obj, others: Iterable[Obj], pressures: frozenset[str], *, static: bool = False
) -> Rejection | None:
    """Why the pod cannot run beside the others on the node; None where it can."""
    refused = _under_pressure(pod, pressures, static)
    if refused is not None:
        return refused
    present = list(others)
    refused = _out_of_resources(pod, node, present)
    if refused is not None:
        return refused
    if not matches_node_selector(pod, node):
        return _predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
    wanted = host_ports(pod)
    if wanted and any(ports_clash(one, other) for one in wanted for pod_ in present for other in host_ports(pod_)):
        return _predicate("NodePorts", "node(s) didn't have free ports for the requested pod ports")
    if not static and untolerated_taint(pod, node, ("NoExecute",)) is not None:
        return _predicate("TaintToleration", "node(s) had taints that the pod didn't tolerate")
    return None


def _predicate(name: str, cause: str) -> Rejection:
    return Rejection(name, f"Predicate {name} failed: {cause}")


def _under_pressure(pod: Obj, pressures: frozenset[str], static: bool) -> Rejection | None:
    """Under disk pressure nothing new runs; under memory pressure alone, what promises to use some memory may."""
    if not pressures or static or is_critical(pod):
        return None
    if pressures == {"MemoryPressure"}:
        if qos_class(pod["spec"]) != "BestEffort":
            return None
        if tolerated(dig(pod, "spec", "tolerations", default=()), _MEMORY_PRESSURE):
            return None
    return Rejection("Evicted", f"The node had condition: [{' '.join(sorted(pressures))}]. ")


def _out_of_resources(pod: Obj, node: Obj, present: list[Obj]) -> Rejection | None:
    allocatable = dig(node, "status", "allocatable", default={})
    requests = {**pod_requests(pod), "pods": 1}
    used: dict[str, int] = {"pods": len(present)}
    for other in present:
        for name, value in pod_requests(other).items():
            used[name] = used.get(name, 0) + value
    for name in ("pods", *sorted(requests)):
        wanted = requests.get(name, 0)
        if name not in allocatable and name not in ("cpu", "memory", "ephemeral-storage", "pods"):
            continue
        capacity = amount(name, allocatable.get(name, 0))
        if wanted and used.get(name, 0) + wanted > capacity:
            return Rejection(
                f"OutOf{name}",
                f"Node didn't have enough resource: {name}, requested: {wanted}, used: {used.get(name, 0)}, "
                f"capacity: {capacity}",
            )
    return None
