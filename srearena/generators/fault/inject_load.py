"""Metastable failures: settings that turn a short disturbance into a lasting one, and the triggers.

A trigger (a load spike, busy machines) is temporary. The failure it leaves behind sustains itself, so only the settings
are there to recover.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from srearena.generators.fault.edits import Addition, CompositeFault, Edit
from srearena.generators.fault.pod_templates import set_variables
from srearena.generators.fault.registry import Fault, fault
from srearena.generators.fault.steps import pods_of, workers
from srearena.generators.fault.testbed import Testbed
from srearena.service.kubernetes import Obj

__all__ = ["JobLoad", "busy_machines", "load_spike"]


class RestartDeployments(Fault):
    """Restarts workloads that read their configuration at startup."""

    def __init__(self, bed: Testbed, deployments: list[str]) -> None:
        self._bed = bed
        self._deployments = deployments

    def inject(self) -> None:
        for name in self._deployments:
            self._bed.kubernetes.restart("deployments", name, self._bed.namespace)
        self._bed.wait_for(self._up, 240.0, "the restarted deployments")

    recover = inject

    def _up(self) -> bool:
        for name in self._deployments:
            obj = self._bed.kubernetes.get("deployments", name, self._bed.namespace)
            status = obj.get("status") or {}
            desired = obj["spec"].get("replicas", 1)
            if status.get("observedGeneration") != obj["metadata"]["generation"]:
                return False
            if not status.get("updatedReplicas", 0) == status.get("availableReplicas", 0) == desired:
                return False
            if status.get("replicas") != desired:
                return False
        return True

    def in_place(self) -> bool:
        return True


def _services(bed: Testbed, suffix: str = "-service") -> list[str]:
    names = [obj["metadata"]["name"] for obj in bed.kubernetes.list("deployments", bed.namespace)]
    return [name for name in names if name.endswith(suffix)]


@fault("rpc_timeout_retries_misconfiguration")
def rpc_timeout_retries(bed: Testbed, config_map: str, timeout: str = "50ms", retries: str = "30") -> Fault:
    """All RPC calls have a short timeout and many retries."""

    def change(obj: Obj) -> None:
        obj["data"].update(GRPC_CLIENT_TIMEOUT=timeout, GRPC_CLIENT_RETRIES_ON_ERROR=retries)

    return CompositeFault(Edit(bed, "configmaps", config_map, change), RestartDeployments(bed, _services(bed)))


@fault("gogc_env_variable_patch")
def gogc(bed: Testbed, limit_range: str, percent: str = "1", cpu: str = "500m") -> Fault:
    """Every service collects garbage continuously, and a LimitRange leaves it little CPU for that."""
    guard: Obj = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": limit_range, "namespace": bed.namespace},
        "spec": {
            "limits": [
                {
                    "type": "Container",
                    "default": {"cpu": cpu},
                    "defaultRequest": {"cpu": "50m"},
                }
            ]
        },
    }
    names = _services(bed)
    edits = [
        Edit(bed, "deployments", name, lambda obj: set_variables(obj, {"GOGC": percent}), replace_pods=True)
        for name in names
    ]
    return CompositeFault(Addition(bed, guard), *edits)


# Triggers


@runtime_checkable
class JobLoad(Protocol):
    """A load generator that runs as a Job with a ConfigMap."""

    def config(self) -> Obj: ...

    def job(self) -> Obj: ...


def load_spike(bed: Testbed, load: JobLoad, seconds: float) -> None:
    """Run a second load generator beside the usual one for some seconds."""
    config, job = load.config(), load.job()
    name = config["metadata"]["name"]
    second: tuple[Obj, ...] = tuple(
        json.loads(json.dumps(obj).replace(f'"{name}"', f'"{name}-2"')) for obj in (config, job)
    )
    second[1]["metadata"]["name"] += "-2"
    for obj in second:
        bed.kubernetes.apply(obj, bed.namespace)
    bed.cluster.wait(seconds)
    for obj in reversed(second):
        bed.kubernetes.delete(bed.kubernetes.resource_of(obj).name, obj["metadata"]["name"], bed.namespace)


def busy_machines(bed: Testbed, cores: float, delay: float, services: Sequence[str], seconds: float) -> None:
    """Use CPU on every worker and delay the packets of some services for some seconds."""
    nodes, access = workers(bed), bed.cluster.nodes
    pods = [
        (pod["spec"]["nodeName"], f"{bed.namespace}/{pod['metadata']['name']}")
        for name in services
        for pod in pods_of(bed, name)
    ]
    for node in nodes:
        access.perform("burn_cpu", node, cores=cores)
    for node, name in pods:
        access.perform("shape_network", node, pod=name, delay=delay)
    bed.cluster.wait(seconds)
    for node in nodes:
        access.perform("burn_cpu", node, cores=0.0)
    for node, name in pods:
        access.perform("shape_network", node, pod=name)
