"""Faults in what programs are told: configuration that drifts, switches that wake a bug, shares of processors."""

from __future__ import annotations

import json

from srearena.generators.fault.edits import Edit, PodsReplaced, Together
from srearena.generators.fault.pod_templates import first_container, workload_edit
from srearena.generators.fault.registry import Fault, fault
from srearena.generators.fault.steps import selector_of
from srearena.generators.fault.testbed import Testbed
from srearena.service.kubernetes import Obj


@fault("configmap_drift")
def configmap_drift(bed: Testbed, service: str, config_map: str, file: str, key: str) -> Fault:
    """A key that a program needs is lost from the file it reads at start."""

    def change(obj: Obj) -> None:
        content = json.loads(obj["data"][file])
        content.pop(key, None)
        obj["data"][file] = json.dumps(content, indent=2)

    return Together(Edit(bed, "configmaps", config_map, change), PodsReplaced(bed, selector_of(bed, service)))


@fault("feature_flag")
def feature_flag(bed: Testbed, service: str, config_map: str, flag: str, value: str = "true") -> Fault:
    """A switch is turned for programs that read it at start."""
    turned = Edit(bed, "configmaps", config_map, lambda obj: obj["data"].update({flag: value}))
    return Together(turned, PodsReplaced(bed, selector_of(bed, service)))


def _share(obj: Obj, cpu: str) -> None:
    resources = first_container(obj).setdefault("resources", {})
    for part in ("requests", "limits"):
        resources.setdefault(part, {})["cpu"] = cpu


@fault("cpu_throttle")
def cpu_throttle(
    bed: Testbed, service: str, cpu: str = "20m", others: tuple[str, ...] = (), others_cpu: str = "300m"
) -> Fault:
    """A service gets less of a processor than it needs, while others get less than before and still enough."""
    decoys = [workload_edit(bed, name, lambda obj: _share(obj, others_cpu)) for name in others]
    return Together(*decoys, workload_edit(bed, service, lambda obj: _share(obj, cpu)))


@fault("missing_cpu_request")
def missing_cpu_request(bed: Testbed, service: str) -> Fault:
    """A workload does not say any more how much of a processor it needs."""

    def change(obj: Obj) -> None:
        resources = first_container(obj).get("resources") or {}
        for part in ("requests", "limits"):
            (resources.get(part) or {}).pop("cpu", None)

    return workload_edit(bed, service, change)


@fault("descriptor_limit")
def descriptor_limit(bed: Testbed, service: str, limit: int) -> Fault:
    """A program is started with fewer descriptors than it has connections."""

    def change(obj: Obj) -> None:
        container = first_container(obj)
        words = " ".join([*container["command"], *container.pop("args", ())])
        container["command"] = ["sh", "-c", f"ulimit -n {limit}; exec {words}"]

    return workload_edit(bed, service, change)
