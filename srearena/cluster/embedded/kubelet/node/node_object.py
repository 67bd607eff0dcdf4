"""The Node object as its kubelet registers it and keeps it up to date."""

from __future__ import annotations

from collections.abc import Iterable

from srearena.cluster.embedded.durations import format_time
from srearena.cluster.embedded.kubelet.node.configuration import Configuration
from srearena.cluster.embedded.machine.machine import CONTAINER_RUNTIME, CONTROL_PLANE, OS_IMAGE, Machine, NodeSpec
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.quantity import milli, units
from srearena.cluster.embedded.registry.strategies.resource_names import is_extended

KUBELET_VERSION = "v1.34.0"
KUBELET_PORT = 10250
RUNTIME_HANDLERS = ("", "runc")
"""What a RuntimeClass may name: the handlers that the container runtime is configured with."""
_ROLE = "node-role.kubernetes.io/"
_MOVED_STORAGE = ("aws-ebs", "azure-disk", "azure-file", "cinder", "gce-pd", "portworx-volume", "vsphere-volume")

_GOOD = {
    "MemoryPressure": ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    "DiskPressure": ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
}
_BAD = {
    "MemoryPressure": ("KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
    "DiskPressure": ("KubeletHasDiskPressure", "kubelet has disk pressure"),
    "PIDPressure": ("KubeletHasInsufficientPID", "kubelet has insufficient PID available"),
}


def capacity_of(spec: NodeSpec, configuration: Configuration) -> dict[str, str]:
    return {
        "cpu": _cores(spec.cores),
        "ephemeral-storage": f"{spec.disk_bytes // 1024}Ki",
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
        "memory": f"{spec.memory_bytes // 1024}Ki",
        "pods": str(configuration.max_pods),
    }


def allocatable_of(spec: NodeSpec, configuration: Configuration) -> dict[str, str]:
    """Capacity minus what is reserved for the system, and minus the hard eviction thresholds."""

    def left(capacity: int, resource: str, signal: str) -> int:
        reserved = sum(units(amount) for amount in configuration.reserved.get(resource, ()))
        return max(0, capacity - reserved - configuration.threshold(signal, capacity))

    cores = spec.cores - sum(milli(amount) for amount in configuration.reserved.get("cpu", ())) / 1000
    return {
        **capacity_of(spec, configuration),
        "cpu": _cores(max(0.0, cores)),
        "ephemeral-storage": str(left(spec.disk_bytes, "ephemeral-storage", "nodefs.available")),
        "memory": f"{left(spec.memory_bytes, 'memory', 'memory.available') // 1024}Ki",
    }


def _cores(cpu: float) -> str:
    return str(int(cpu)) if cpu == int(cpu) else f"{int(cpu * 1000)}m"


def node_object(machine: Machine) -> Obj:
    """A node as it is when its kubelet first registers it."""
    spec = machine.spec
    labels = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": spec.name,
        "kubernetes.io/os": "linux",
    }
    taints = [dict(taint) for taint in spec.taints]
    if spec.role:
        labels[f"{_ROLE}{spec.role}"] = ""
    if spec.role == CONTROL_PLANE:
        labels["node.kubernetes.io/exclude-from-external-load-balancers"] = ""
        taints = taints or [{"key": f"{_ROLE}{CONTROL_PLANE}", "effect": "NoSchedule"}]
    node: Obj = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": spec.name,
            "labels": {**labels, **spec.labels},
            "annotations": {
                "node.alpha.kubernetes.io/ttl": "0",
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
            },
        },
        "spec": {
            "podCIDR": str(machine.pod_range),
            "podCIDRs": [str(machine.pod_range)],
        },
    }
    if taints:
        node["spec"]["taints"] = taints
    return node


def csi_node_object(node: Obj) -> Obj:
    """The CSINode object: no drivers yet, and the in-tree plugins that were migrated to CSI."""
    name = node["metadata"]["name"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"]}
    moved = ",".join(f"kubernetes.io/{plugin}" for plugin in _MOVED_STORAGE)
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {
            "name": name,
            "annotations": {"storage.alpha.kubernetes.io/migrated-plugins": moved},
            "ownerReferences": [owner],
        },
        "spec": {"drivers": []},
    }


def node_status(
    machine: Machine,
    configuration: Configuration,
    pressures: Iterable[str],
    before: Obj,
    *,
    ready: tuple[str, str] | None = None,
) -> Obj:
    """The status to publish; `ready` is the reason and message of a kubelet that is not."""
    now = format_time(machine.now)
    old = {row["type"]: row for row in before.get("conditions") or ()}
    bad = set(pressures)
    rows = []
    for kind in _GOOD:
        reason, message = _BAD[kind] if kind in bad else _GOOD[kind]
        rows.append(_condition(kind, kind in bad, reason, message, old.get(kind), now))
    if ready is None:
        rows.append(_condition("Ready", True, "KubeletReady", "kubelet is posting ready status", old.get("Ready"), now))
    else:
        rows.append(_condition("Ready", False, ready[0], ready[1], old.get("Ready"), now))
    others = [row for kind, row in old.items() if kind not in _GOOD and kind != "Ready"]
    # Extended resources are capacity that other clients declared, all of it allocatable.
    extended = {name: amount for name, amount in (before.get("capacity") or {}).items() if is_extended(name)}
    return {
        **before,
        "addresses": [
            {"type": "InternalIP", "address": machine.address},
            {"type": "Hostname", "address": machine.name},
        ],
        "allocatable": {**allocatable_of(machine.spec, configuration), **extended},
        "capacity": {**capacity_of(machine.spec, configuration), **extended},
        "conditions": [*others, *rows],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": KUBELET_PORT}},
        "images": machine.images.listed(),
        "nodeInfo": _node_info(machine),
        "runtimeHandlers": [
            {"features": {"recursiveReadOnlyMounts": True, "userNamespaces": True}, "name": name}
            for name in RUNTIME_HANDLERS
        ],
        "features": {"supplementalGroupsPolicy": True},
    }


def _condition(kind: str, true: bool, reason: str, message: str, old: Obj | None, now: str) -> Obj:
    word = "True" if true else "False"
    same = old is not None and old.get("status") == word
    return {
        "type": kind,
        "status": word,
        "lastHeartbeatTime": now,
        "lastTransitionTime": old["lastTransitionTime"] if same and old is not None else now,
        "reason": reason,
        "message": message,
    }


def _node_info(machine: Machine) -> Obj:
    return {
        "architecture": "amd64",
        "bootID": machine.boot_id,
        "containerRuntimeVersion": CONTAINER_RUNTIME,
        "kernelVersion": machine.kernel.release,
        "kubeProxyVersion": "",
        "kubeletVersion": KUBELET_VERSION,
        "machineID": machine.machine_id,
        "operatingSystem": "linux",
        "osImage": OS_IMAGE,
        "systemUUID": machine.system_uuid,
    }
