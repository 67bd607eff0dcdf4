"""Which container of a pod is meant, and whether its kubelet can be asked: shared by logs, exec, attach and forward."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from srearena.cluster.embedded.objects import Obj, dig, name_of
from srearena.cluster.embedded.registry.errors import ApiError, BadRequest, NotFound

if TYPE_CHECKING:
    from srearena.cluster.embedded.api.backend import Backend
    from srearena.cluster.embedded.api.node_agent import NodeAgent

KUBELET_PORT: Final = 10250
_LISTS: Final = ("containers", "initContainers", "ephemeralContainers")


def stored_pod(backend: Backend, namespace: str, name: str) -> Obj:
    pod = backend.store.get("pods", namespace, name)
    if pod is None:
        raise NotFound("pods", name)
    return pod


def chosen_container(pod: Obj, requested: str) -> str:
    """The container of a request; required for a pod with several."""
    if requested:
        if not any(c.get("name") == requested for key in _LISTS for c in dig(pod, "spec", key, default=())):
            raise BadRequest(f"container {requested} is not valid for pod {name_of(pod)}")
        return requested
    names = _names(pod, "containers")
    if len(names) == 1:
        return names[0]
    message = f"a container name must be specified for pod {name_of(pod)}"
    if names:
        message += f", choose one of: [{' '.join(names)}]"
    if initial := _names(pod, "initContainers"):
        message += f" or one of the init containers: [{' '.join(initial)}]"
    raise BadRequest(message)


def _names(pod: Obj, key: str) -> list[str]:
    return [container["name"] for container in dig(pod, "spec", key, default=())]


def container_status(pod: Obj, name: str) -> Obj | None:
    for key in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for status in dig(pod, "status", key, default=()):
            if status.get("name") == name:
                found: Obj = status
                return found
    return None


def reachable_agent(backend: Backend, pod: Obj, action: str) -> NodeAgent:
    """The nodes, if the pod's kubelet answers; `action` is the path it would be asked with."""
    node = dig(pod, "spec", "nodeName", default="")
    trouble = backend.agent.dial_error(node) if backend.agent is not None else "connect: connection refused"
    if trouble:
        raise kubelet_error(backend, node, action, trouble)
    assert backend.agent is not None
    return backend.agent


def kubelet_error(backend: Backend, node: str, action: str, trouble: str) -> ApiError:
    address = f"{node_address(backend, node)}:{KUBELET_PORT}"
    return ApiError(f'Get "https://{address}{action}": dial tcp {address}: {trouble}', code=500)


def node_address(backend: Backend, node: str) -> str:
    found = backend.store.get("nodes", "", node) or {}
    addresses: list[Obj] = dig(found, "status", "addresses", default=[])
    return next((entry["address"] for entry in addresses if entry.get("type") == "InternalIP"), node)
