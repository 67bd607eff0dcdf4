"""The downward API: fields of a pod as environment variables and as files."""

from __future__ import annotations

import re
from dataclasses import dataclass

from srearena.cluster.embedded.objects import Obj, annotations_of, dig, labels_of, meta, name_of, namespace_of, uid_of
from srearena.cluster.embedded.quantity import Quantity, parse

_NOTHING = Quantity(0)
_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['(.*)'\]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FieldSources:
    """Values that are not in the pod object yet when a container is created."""

    pod_addresses: tuple[str, ...] = ()
    host_address: str = ""
    allocatable_cpu: Quantity = _NOTHING
    allocatable_memory: Quantity = _NOTHING
    allocatable_storage: Quantity = _NOTHING


def field_value(pod: Obj, path: str, sources: FieldSources) -> str | None:
    """The field as text; None where there is no such field to refer to."""
    subscript = _SUBSCRIPT.fullmatch(path)
    if subscript is not None:
        return str((meta(pod).get(subscript[1]) or {}).get(subscript[2], ""))
    match path:
        case "metadata.name":
            return name_of(pod)
        case "metadata.namespace":
            return namespace_of(pod)
        case "metadata.uid":
            return uid_of(pod)
        case "metadata.labels":
            return _lines(labels_of(pod))
        case "metadata.annotations":
            return _lines(annotations_of(pod))
        case "spec.nodeName":
            return str(dig(pod, "spec", "nodeName", default=""))
        case "spec.serviceAccountName":
            return str(dig(pod, "spec", "serviceAccountName", default=""))
        case "status.hostIP" | "status.hostIPs":
            return sources.host_address
        case "status.podIP":
            return sources.pod_addresses[0] if sources.pod_addresses else ""
        case "status.podIPs":
            return ",".join(sources.pod_addresses)
        case _:
            return None


def _lines(pairs: dict[str, str]) -> str:
    return "\n".join(f"{key}={_quoted(value)}" for key, value in sorted(pairs.items()))


def _quoted(value: str) -> str:
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return '"' + "".join(escapes.get(char, char) for char in value) + '"'


def resource_value(pod: Obj, container: Obj, reference: Obj, sources: FieldSources) -> str:
    """An amount of `limits.cpu` and the like, in units of its divisor, rounded up; by default the node's."""
    named = reference.get("containerName")
    if named:
        every = [*dig(pod, "spec", "containers", default=()), *dig(pod, "spec", "initContainers", default=())]
        container = next((other for other in every if other["name"] == named), container)
    kind, _, resource = reference["resource"].partition(".")
    value = dig(container, "resources", kind, resource)
    if value is not None:
        amount = parse(value)
    elif kind == "limits":
        amount = {
            "cpu": sources.allocatable_cpu,
            "memory": sources.allocatable_memory,
            "ephemeral-storage": sources.allocatable_storage,
        }.get(resource, Quantity(0))
    else:
        amount = Quantity(0)
    divisor = parse(reference.get("divisor") or "1")
    nano = divisor.nano if divisor.nano > 0 else 10**9
    return str(-(-amount.nano // nano))
