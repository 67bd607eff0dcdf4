"""Faults in the configuration of an application's programs: addresses, images, variables, permissions at startup."""

from __future__ import annotations

from srearena.generators.fault.actors import account
from srearena.generators.fault.base import FaultInjector
from srearena.generators.fault.edits import Addition, CompositeFault
from srearena.generators.fault.pod_templates import pod_spec, set_variable, workload_edit
from srearena.generators.fault.registry import Fault, fault
from srearena.generators.fault.testbed import Testbed
from srearena.service.kubernetes import Obj

__all__ = ["ApplicationFaultInjector"]


class ApplicationFaultInjector(FaultInjector):
    """`ApplicationFaultInjector("astronomy-shop").inject_fault(["frontend"], "missing_env_variable")`."""


@fault("unschedulable_incorrect_port_assignment")
def wrong_port_and_node(bed: Testbed, service: str, variable: str, value: str, node: str = "extra-node") -> Fault:
    """A workload has a wrong address among its variables and requests a node that does not exist."""

    def change(obj: Obj) -> None:
        set_variable(obj, variable, value)
        pod_spec(obj)["nodeSelector"] = {"kubernetes.io/hostname": node}

    return workload_edit(bed, service, change)


@fault("rbac_misconfiguration")
def reader_without_right(bed: Testbed, service: str, config_map: str = "flagd-config") -> Fault:
    """A workload reads a config map at startup with a service account that lacks the permission."""
    rules = [{"apiGroups": [""], "resources": ["pods", "services"], "verbs": ["get", "list", "watch"]}]

    def change(obj: Obj) -> None:
        spec = pod_spec(obj)
        spec["serviceAccountName"] = service
        spec.pop("serviceAccount", None)
        reader = {
            "name": "read-config",
            "image": "bitnami/kubectl:1.33",
            "command": ["kubectl", "get", "configmap", config_map, "-n", bed.namespace],
        }
        spec.setdefault("initContainers", []).append(reader)

    return CompositeFault(
        *(Addition(bed, obj) for obj in account(service, bed.namespace, rules)), workload_edit(bed, service, change)
    )
