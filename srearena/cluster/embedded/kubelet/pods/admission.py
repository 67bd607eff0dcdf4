"""Pod admission by the kubelet, after the scheduler has bound the pod to the node.

A rejected pod becomes Failed at once. What the kubelet checks is what the scheduler checks about a single
node, since pods can be bound past it, and since the node may have changed meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass

from srearena.cluster.embedded.go_text import quoted
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
_ALWAYS_COUNTED = ("cpu", "memory", "ephemeral-storage", "pods")
_OS = "linux"
# From pkg/kubelet/sysctl/safe_sysctls.go.
_SAFE_SYSCTLS = frozenset(
    (
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.tcp_wmem",
    )
)
_MEMORY_PRESSURE = {"key": "node.kubernetes.io/memory-pressure", "effect": "NoSchedule"}


@dataclass(frozen=True, slots=True)
class Rejection:
    reason: str
    message: str


def is_critical(pod: Obj) -> bool:
    priority = dig(pod, "spec", "priority")
    return priority is not None and priority >= SYSTEM_CRITICAL_PRIORITY


class Commitments:
    """The sum of the requests of the pods on a node."""

    def __init__(self) -> None:
        self._pods: dict[str, tuple[dict[str, int], list[tuple[str, str, int]]]] = {}
        self._used: dict[str, int] = {}

    def add(self, uid: str, pod: Obj) -> None:
        self.drop(uid)
        requests = {**pod_requests(pod), "pods": 1}
        self._pods[uid] = (requests, host_ports(pod))
        for name, value in requests.items():
            self._used[name] = self._used.get(name, 0) + value

    def without(self, uid: str) -> Commitments:
        """The commitments to all pods but one."""
        others = Commitments()
        others._pods = {key: row for key, row in self._pods.items() if key != uid}
        for requests, _ in others._pods.values():
            for name, value in requests.items():
                others._used[name] = others._used.get(name, 0) + value
        return others

    def drop(self, uid: str) -> None:
        requests, _ = self._pods.pop(uid, ({}, []))
        for name, value in requests.items():
            self._used[name] -= value

    def used(self, resource: str) -> int:
        return self._used.get(resource, 0)

    def has_port(self, requested: tuple[str, str, int]) -> bool:
        return any(ports_clash(requested, port) for _, ports in self._pods.values() for port in ports)


def rejection_of(
    pod: Obj, node: Obj, others: Commitments, pressures: frozenset[str], *, static: bool = False
) -> Rejection | None:
    """Why the pod cannot run beside the others on the node; None where it can."""
    refused = _under_pressure(pod, pressures, static) or _forbidden_sysctl(pod) or out_of_resources(pod, node, others)
    if refused is not None:
        return refused
    if not matches_node_selector(pod, node):
        return _predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
    if dig(pod, "spec", "os", "name", default=_OS) != _OS:
        return Rejection("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS")
    if any(others.has_port(port) for port in host_ports(pod)):
        return _predicate("NodePorts", "node(s) didn't have free ports for the requested pod ports")
    if not static and untolerated_taint(pod, node, ("NoExecute",)) is not None:
        return _predicate("TaintToleration", "node(s) had taints that the pod didn't tolerate")
    return None


def _predicate(name: str, cause: str) -> Rejection:
    return Rejection(name, f"Predicate {name} failed: {cause}")


def _under_pressure(pod: Obj, pressures: frozenset[str], static: bool) -> Rejection | None:
    """Disk pressure rejects every pod; memory pressure alone rejects pods of class BestEffort."""
    if not pressures or static or is_critical(pod):
        return None
    if pressures == {"MemoryPressure"}:
        if qos_class(pod["spec"]) != "BestEffort":
            return None
        if tolerated(dig(pod, "spec", "tolerations", default=()), _MEMORY_PRESSURE):
            return None
    return Rejection("Evicted", f"The node had condition: [{' '.join(sorted(pressures))}]. ")


def _forbidden_sysctl(pod: Obj) -> Rejection | None:
    """Only what is isolated between pods may be set; the kubelets here allow nothing beyond."""
    spec = pod["spec"]
    for row in dig(spec, "securityContext", "sysctls", default=()):
        name = row["name"].replace("/", ".")
        shared = "net" if name.startswith("net.") and spec.get("hostNetwork") else ""
        shared = "ipc" if name.startswith("kernel.") and spec.get("hostIPC") else shared
        if name not in _SAFE_SYSCTLS:
            return Rejection("SysctlForbidden", f"forbidden sysctl: {quoted(name)} not allowlisted")
        if shared:
            why = f"forbidden sysctl: {quoted(name)} not allowed with host {shared} enabled"
            return Rejection("SysctlForbidden", why)
    return None


def out_of_resources(pod: Obj, node: Obj, others: Commitments) -> Rejection | None:
    """Which of the resources that a pod requests the others leave too little of."""
    allocatable = dig(node, "status", "allocatable", default={})
    requests = {**pod_requests(pod), "pods": 1}
    for name in ("pods", *sorted(requests)):
        requested = requests.get(name, 0)
        if name not in allocatable and name not in _ALWAYS_COUNTED:
            continue
        capacity, used = amount(name, allocatable.get(name, 0)), others.used(name)
        if requested and used + requested > capacity:
            return Rejection(
                f"OutOf{name}",
                f"Node didn't have enough resource: {name}, requested: {requested}, used: {used}, capacity: {capacity}",
            )
    return None
