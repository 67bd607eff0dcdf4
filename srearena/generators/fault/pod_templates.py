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
    """The first port the workload's containers declare."""
    for container in pod_spec(workload)["containers"]:
        for port in container.get("ports", ()):
            return int(port["containerPort"])
    return 8080


def workload_edit(bed: Testbed, name: str, change: Callable[[Obj], None], resource: str = "deployments") -> Edit:
    """A change of a pod template that takes hold of every pod at once."""
    return Edit(bed, resource, name, change, bite=True)


def set_variable(workload: Obj, variable: str, value: str) -> None:
    """Give a variable of the first container another value."""
    env = first_container(workload).setdefault("env", [])
    found = next((entry for entry in env if entry["name"] == variable), None)
    if found is None:
        env.append({"name": variable, "value": value})
    else:
        found.pop("valueFrom", None)
        found["value"] = value


def set_variables(obj: Obj, variables: Mapping[str, str]) -> None:
    """Give the first container of a workload these variables, in place of what it has under the same names."""
    container = first_container(obj)
    kept = [entry for entry in container.get("env") or () if entry["name"] not in variables]
    container["env"] = [*kept, *({"name": name, "value": value} for name, value in variables.items())]
