"""Endpoints: the addresses of a Service's pods in one object, ready ones and others, by the ports they offer."""

from __future__ import annotations

from srearena.cluster.embedded.controllers.controller import split_key
from srearena.cluster.embedded.controllers.pod_sets import is_refused_for_good
from srearena.cluster.embedded.controllers.service_pods import (
    HEADLESS,
    LAST_CHANGE,
    ServiceFollower,
    host_name,
    is_headless,
    is_ready,
    ports_key,
    ports_on,
    publishes_unready,
    target_reference,
)
from srearena.cluster.embedded.objects import (
    Obj,
    annotations_of,
    dig,
    is_terminating,
    key_of,
    labels_of,
    namespace_of,
)
from srearena.cluster.embedded.registry.errors import ApiError
from srearena.cluster.embedded.store import Change
from srearena.cluster.embedded.world import World

MANAGED_BY = "endpoints.kubernetes.io/managed-by"
OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"
_CAPACITY = 1000


class EndpointsController(ServiceFollower):
    name = "endpoint-controller"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._widowed: set[str] = set()
        """Recently deleted services: their Endpoints are deleted too, regardless of their author."""

    def start(self) -> None:
        super().start()
        self.world.on_change("endpoints", self._endpoints_gone)
        self.world.on_change("services", self._service_gone)

    def _endpoints_gone(self, change: Change) -> None:
        if change.type == "DELETED":
            self.enqueue(key_of(change.new))

    def _service_gone(self, change: Change) -> None:
        if change.type == "DELETED":
            self._widowed.add(key_of(change.new))

    def reconcile(self, key: str) -> None:
        namespace, name = split_key(key)
        service = self.client.get("services", namespace, name)
        known = self.client.get("endpoints", namespace, name)
        widowed = key in self._widowed
        self._widowed.discard(key)
        if service is None:
            if known is not None and (widowed or MANAGED_BY in labels_of(known)) and not is_terminating(known):
                self.client.delete("endpoints", known)
            return
        pods = self.selected(service)
        if pods is None:
            return
        subsets, truncated = _truncated(_subsets(service, pods))
        labels = {**labels_of(service), MANAGED_BY: "endpoint-controller"}
        if is_headless(service):
            labels[HEADLESS] = ""
        same = known is not None and (known.get("subsets") or []) == subsets and labels_of(known) == labels
        if same and (OVER_CAPACITY in annotations_of(known or {})) == truncated:
            return
        notes = {LAST_CHANGE: self.clock.timestamp(), **({OVER_CAPACITY: "truncated"} if truncated else {})}
        self._write(service, known, labels, notes, subsets)

    def _write(
        self, service: Obj, known: Obj | None, labels: dict[str, str], notes: dict[str, str], subsets: list[Obj]
    ) -> None:
        def change(obj: Obj) -> None:
            obj["metadata"]["labels"] = labels
            kept = {k: v for k, v in annotations_of(obj).items() if k not in (LAST_CHANGE, OVER_CAPACITY)}
            obj["metadata"]["annotations"] = {**kept, **notes}
            obj["subsets"] = subsets

        place = {"name": service["metadata"]["name"], "namespace": namespace_of(service)}
        try:
            if known is None:
                endpoints: Obj = {"apiVersion": "v1", "kind": "Endpoints", "metadata": place}
                change(endpoints)
                self.client.create("endpoints", endpoints)
            else:
                self.client.modify("endpoints", place["namespace"], place["name"], change)
        except ApiError as problem:
            if is_refused_for_good(problem):
                return
            if known is None:
                reason, deed = "FailedToCreateEndpoint", f"create endpoint for service {key_of(service)}"
            else:
                reason, deed = "FailedToUpdateEndpoint", f"update endpoint {key_of(service)}"
            about = known if known is not None else service
            self.recorder.event(about, "Warning", reason, f"Failed to {deed}: {problem.message}")
            raise


def _subsets(service: Obj, pods: list[Obj]) -> list[Obj]:
    """One subset for each combination of ports; a pod that has none of the ports is in none."""
    found: dict[str, Obj] = {}
    portless = is_headless(service) and not dig(service, "spec", "ports", default=())
    for pod in sorted(pods, key=lambda pod: str(dig(pod, "status", "podIP"))):
        if is_terminating(pod) and not publishes_unready(service):
            continue
        ports = ports_on(service, pod)
        if not ports and not portless:
            continue
        subset = found.setdefault(ports_key(ports), {"addresses": [], "notReadyAddresses": [], "ports": ports})
        subset["addresses" if is_ready(service, pod) else "notReadyAddresses"].append(_address(service, pod))
    shown: list[Obj] = []
    for key in sorted(found):
        subset = {part: value for part, value in found[key].items() if value}
        if "ports" in subset:
            subset["ports"] = [{k: v for k, v in port.items() if v != ""} for port in subset["ports"]]
        shown.append(subset)
    return shown


def _address(service: Obj, pod: Obj) -> Obj:
    address: Obj = {"ip": pod["status"]["podIP"]}
    if host_name(service, pod):
        address["hostname"] = host_name(service, pod)
    if dig(pod, "spec", "nodeName"):
        address["nodeName"] = pod["spec"]["nodeName"]
    address["targetRef"] = target_reference(pod)
    return address


def _truncated(subsets: list[Obj]) -> tuple[list[Obj], bool]:
    """At most a thousand addresses, ready ones first; and whether it was truncated."""
    room = _CAPACITY
    total = sum(len(subset.get(kind, ())) for subset in subsets for kind in ("addresses", "notReadyAddresses"))
    if total <= room:
        return subsets, False
    kept = [dict(subset) for subset in subsets]
    for kind in ("addresses", "notReadyAddresses"):
        for subset in kept:
            if kind in subset:
                subset[kind] = subset[kind][:room]
                room -= len(subset[kind])
                if not subset[kind]:
                    del subset[kind]
    return [subset for subset in kept if "addresses" in subset or "notReadyAddresses" in subset], True
