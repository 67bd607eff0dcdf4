"""The pods of a Service with their ports: the input of Endpoints and EndpointSlices."""

from __future__ import annotations

from typing import Any

from srearena.cluster.embedded.controllers.controller import Controller
from srearena.cluster.embedded.objects import (
    Obj,
    condition_is,
    dig,
    is_terminating,
    key_of,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
)
from srearena.cluster.embedded.registry.selectors import label_set_selector
from srearena.cluster.embedded.store import Change
from srearena.cluster.embedded.world import World

HEADLESS = "service.kubernetes.io/headless"
LAST_CHANGE = "endpoints.kubernetes.io/last-change-trigger-time"
_REACTION = 0.05
_LOOK_SECONDS_PER_POD = 0.001
_LONGEST_REACTION = 1.0


class ServiceFollower(Controller):
    """Queues a service when it or one of its pods changes in a relevant way."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._sizes: dict[str, int] = {}

    def start(self) -> None:
        self.watch("services")
        self.world.on_change("pods", self._pod_changed)

    def _pod_changed(self, change: Change) -> None:
        old, new = change.old, change.new
        if old is not None and change.type == "MODIFIED" and _as_seen(old) == _as_seen(new):
            return
        for service in self.store.objects("services", namespace_of(new)):
            raw = dig(service, "spec", "selector")
            if not raw:
                continue
            selector = label_set_selector(raw)
            if selector.matches(labels_of(new)) or (old is not None and selector.matches(labels_of(old))):
                # A service of many pods takes longer to reconcile, so it is reconciled less often.
                wait = self._sizes.get(key_of(service), 0) * _LOOK_SECONDS_PER_POD
                self.enqueue(key_of(service), min(max(_REACTION, wait), _LONGEST_REACTION))

    def selected(self, service: Obj) -> list[Obj] | None:
        """The service's pods that have an address and have not ended; None where the service selects none itself."""
        raw = dig(service, "spec", "selector")
        if not raw or dig(service, "spec", "type") == "ExternalName":
            return None
        selector = label_set_selector(raw)
        found = [
            pod
            for pod in self.store.objects("pods", namespace_of(service))
            if selector.matches(labels_of(pod))
            and dig(pod, "status", "podIP")
            and dig(pod, "status", "phase") not in ("Succeeded", "Failed")
        ]
        self._sizes[key_of(service)] = len(found)
        return found


def _as_seen(pod: Obj) -> tuple[Any, ...]:
    return (
        labels_of(pod),
        dig(pod, "status", "podIP"),
        dig(pod, "status", "phase"),
        condition_is(pod, "Ready"),
        is_terminating(pod),
        dig(pod, "spec", "nodeName"),
    )


def is_headless(service: Obj) -> bool:
    return dig(service, "spec", "clusterIP", default="") in ("", "None")


def publishes_unready(service: Obj) -> bool:
    return bool(dig(service, "spec", "publishNotReadyAddresses"))


def is_ready(service: Obj, pod: Obj) -> bool:
    return publishes_unready(service) or (condition_is(pod, "Ready") and not is_terminating(pod))


def ports_on(service: Obj, pod: Obj) -> list[Obj]:
    """The service's ports as numbers of this pod; a named port that the pod does not have is left out."""
    found: list[Obj] = []
    for port in dig(service, "spec", "ports", default=()):
        number = _target_port(pod, port)
        if number is not None:
            entry: Obj = {"name": port.get("name", ""), "port": number, "protocol": port.get("protocol") or "TCP"}
            if port.get("appProtocol"):
                entry["appProtocol"] = port["appProtocol"]
            found.append(entry)
    return found


def _target_port(pod: Obj, port: Obj) -> int | None:
    wanted = port.get("targetPort", port.get("port"))
    if isinstance(wanted, int):
        return wanted or port.get("port")
    containers = [
        *dig(pod, "spec", "containers", default=()),
        *(c for c in dig(pod, "spec", "initContainers", default=()) if c.get("restartPolicy") == "Always"),
    ]
    for container in containers:
        for offered in container.get("ports") or ():
            if offered.get("name") == wanted and (offered.get("protocol") or "TCP") == (port.get("protocol") or "TCP"):
                return int(offered["containerPort"])
    return None


def ports_key(ports: list[Obj]) -> str:
    """Equal for equal lists of ports, in whatever order."""
    return repr(sorted((p.get("name", ""), p.get("port"), p.get("protocol"), p.get("appProtocol", "")) for p in ports))


def host_name(service: Obj, pod: Obj) -> str:
    """The pod's host name within its service's domain, if it has one."""
    name: str = dig(pod, "spec", "hostname", default="")
    return name if dig(pod, "spec", "subdomain") == name_of(service) else ""


def target_reference(pod: Obj) -> Obj:
    return {"kind": "Pod", "namespace": namespace_of(pod), "name": name_of(pod), "uid": uid_of(pod)}
