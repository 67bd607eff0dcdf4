"""Faults in how an application's programs are set up: addresses, images, variables, rights they use when they start."""

from __future__ import annotations

from srearena.generators.fault.actors import account
from srearena.generators.fault.base import FaultInjector
from srearena.generators.fault.edits import Addition, Together
from srearena.generators.fault.pod_templates import pod_spec, set_variable, workload_edit
from srearena.generators.fault.registry import Fault, fault
from srearena.generators.fault.testbed import Testbed
from srearena.service.kubernetes import Obj

__all__ = ["ApplicationFaultInjector"]


class ApplicationFaultInjector(FaultInjector):
    """`ApplicationFaultInjector("astronomy-shop").inject_fault(["frontend"], "missing_env_variable")`."""


@fault("unschedulable_incorrect_port_assignment")
def wrong_port_and_node(bed: Testbed, service: str, variable: str, value: str, node: str = "extra-node") -> Fault:
    """A workload with a wrong address among its variables asks for a node that does not exist, too."""

    def change(obj: Obj) -> None:
        set_variable(obj, variable, value)
        pod_spec(obj)["nodeSelector"] = {"kubernetes.io/hostname": node}

    return workload_edit(bed, service, change)


@fault("rbac_misconfiguration")
def reader_without_right(bed: Testbed, service: str, config_map: str = "flagd-config") -> Fault:
    """A workload gets an account of its own, and reads a config map before it starts, which that account may not."""
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

    return Together(
        *(Addition(bed, obj) for obj in account(service, bed.namespace, rules)), workload_edit(bed, service, change)
    )
