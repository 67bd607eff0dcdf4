"""Faults in how an application's programs are set up: addresses, images, variables, rights they use when they start."""

from __future__ import annotations

from srearena.generators.fault import inject_virtual
from srearena.generators.fault.base import Addition, Fault, FaultInjector, FaultMaker, Together, fault
from srearena.generators.fault.inject_virtual import first_container, pod_spec, workload_edit
from srearena.generators.fault.testbed import Testbed
from srearena.service.kubernetes import Obj

__all__ = ["FAULTS", "ApplicationFaultInjector"]

_SETTINGS = ("incorrect_image", "incorrect_port_assignment", "missing_env_variable", "env_variable_shadowing")
FAULTS: dict[str, FaultMaker] = {name: inject_virtual.FAULTS[name] for name in _SETTINGS}


class ApplicationFaultInjector(FaultInjector):
    """`ApplicationFaultInjector("astronomy-shop").inject_fault(["frontend"], "missing_env_variable")`."""

    faults = FAULTS


def set_variable(workload: Obj, variable: str, value: str) -> None:
    """Give a variable of the first container another value."""
    env = first_container(workload).setdefault("env", [])
    found = next((entry for entry in env if entry["name"] == variable), None)
    if found is None:
        env.append({"name": variable, "value": value})
    else:
        found.pop("valueFrom", None)
        found["value"] = value


@fault(FAULTS, "unschedulable_incorrect_port_assignment")
def wrong_port_and_node(bed: Testbed, service: str, variable: str, value: str, node: str = "extra-node") -> Fault:
    """A workload with a wrong address among its variables asks for a node that does not exist, too."""

    def change(obj: Obj) -> None:
        set_variable(obj, variable, value)
        pod_spec(obj)["nodeSelector"] = {"kubernetes.io/hostname": node}

    return workload_edit(bed, service, change)


@fault(FAULTS, "rbac_misconfiguration")
def reader_without_right(bed: Testbed, service: str, config_map: str = "flagd-config") -> Fault:
    """A workload gets an account of its own, and reads a config map before it starts, which that account may not."""
    metadata = {"name": service, "namespace": bed.namespace}
    rbac = "rbac.authorization.k8s.io"
    account: Obj = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    role: Obj = {
        "apiVersion": f"{rbac}/v1",
        "kind": "Role",
        "metadata": metadata,
        "rules": [{"apiGroups": [""], "resources": ["pods", "services"], "verbs": ["get", "list", "watch"]}],
    }
    binding: Obj = {
        "apiVersion": f"{rbac}/v1",
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": rbac, "kind": "Role", "name": service},
        "subjects": [{"kind": "ServiceAccount", "name": service, "namespace": bed.namespace}],
    }

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

    return Together(*(Addition(bed, obj) for obj in (account, role, binding)), workload_edit(bed, service, change))
