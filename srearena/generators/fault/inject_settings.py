"""Faults in the settings of programs: configuration drift, feature flags, CPU and descriptor limits."""

from __future__ import annotations

import json

from srearena.generators.fault.edits import CompositeFault, Edit, ReplacePods
from srearena.generators.fault.pod_templates import first_container, workload_edit
from srearena.generators.fault.registry import Fault, fault
from srearena.generators.fault.steps import selector_of
from srearena.generators.fault.testbed import Testbed
from srearena.service.kubernetes import Obj


@fault("configmap_drift")
def configmap_drift(bed: Testbed, service: str, config_map: str, file: str, key: str) -> Fault:
    """A required key is missing from the file that a program reads at startup."""

    def change(obj: Obj) -> None:
        content = json.loads(obj["data"][file])
        content.pop(key, None)
        obj["data"][file] = json.dumps(content, indent=2)

    return CompositeFault(Edit(bed, "configmaps", config_map, change), ReplacePods(bed, selector_of(bed, service)))


@fault("feature_flag")
def feature_flag(bed: Testbed, service: str, config_map: str, flag: str, value: str = "true") -> Fault:
    """A feature flag is set for programs that read it at startup."""
    edit = Edit(bed, "configmaps", config_map, lambda obj: obj["data"].update({flag: value}))
    return CompositeFault(edit, ReplacePods(bed, selector_of(bed, service)))


def _set_cpu(obj: Obj, cpu: str) -> None:
    resources = first_container(obj).setdefault("resources", {})
    for part in ("requests", "limits"):
        resources.setdefault(part, {})["cpu"] = cpu


@fault("cpu_throttle")
def cpu_throttle(
    bed: Testbed, service: str, cpu: str = "20m", others: tuple[str, ...] = (), others_cpu: str = "300m"
) -> Fault:
    """A service gets less CPU than it needs; others (decoys) get less than before, but enough."""
    decoys = [workload_edit(bed, name, lambda obj: _set_cpu(obj, others_cpu)) for name in others]
    return CompositeFault(*decoys, workload_edit(bed, service, lambda obj: _set_cpu(obj, cpu)))


@fault("missing_cpu_request")
def missing_cpu_request(bed: Testbed, service: str) -> Fault:
    """A workload loses its CPU request and limit."""

    def change(obj: Obj) -> None:
        resources = first_container(obj).get("resources") or {}
        for part in ("requests", "limits"):
            (resources.get(part) or {}).pop("cpu", None)

    return workload_edit(bed, service, change)


@fault("descriptor_limit")
def descriptor_limit(bed: Testbed, service: str, limit: int) -> Fault:
    """A program is started with a descriptor limit below its number of connections."""

    def change(obj: Obj) -> None:
        container = first_container(obj)
        words = " ".join([*container["command"], *container.pop("args", ())])
        container["command"] = ["sh", "-c", f"ulimit -n {limit}; exec {words}"]

    return workload_edit(bed, service, change)
