"""Reading and editing the pod template of a workload."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from srearena.generators.fault.edits import Edit
from srearena.generators.fault.testbed import Testbed
from srearena.service.kubernetes import Obj

__all__ = ["first_container", "first_port", "pod_spec", "set_variable", "set_variables", "workload_edit"]


def pod_spec(workload: Obj) -> Obj:
    spec: Obj = workload["spec"]["template"]["spec"]
    return spec


def first_container(workload: Obj) -> Obj:
    container: Obj = pod_spec(workload)["containers"][0]
    return container


def first_port(workload: Obj) -> int:
    """The first port that the workload's containers declare; 8080 where they declare none."""
    for container in pod_spec(workload)["containers"]:
        for port in container.get("ports", ()):
            return int(port["containerPort"])
    return 8080


def workload_edit(bed: Testbed, name: str, change: Callable[[Obj], None], resource: str = "deployments") -> Edit:
    """Edit a pod template and replace all pods at once."""
    return Edit(bed, resource, name, change, replace_pods=True)


def set_variable(workload: Obj, variable: str, value: str) -> None:
    """Set an environment variable of the first container."""
    env = first_container(workload).setdefault("env", [])
    variable_entry = next((entry for entry in env if entry["name"] == variable), None)
    if variable_entry is None:
        env.append({"name": variable, "value": value})
    else:
        variable_entry.pop("valueFrom", None)
        variable_entry["value"] = value


def set_variables(obj: Obj, variables: Mapping[str, str]) -> None:
    """Set environment variables of the first container; existing ones of the same names are replaced."""
    container = first_container(obj)
    unchanged = [entry for entry in container.get("env") or () if entry["name"] not in variables]
    container["env"] = [*unchanged, *({"name": name, "value": value} for name, value in variables.items())]
