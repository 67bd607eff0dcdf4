"""Where a Service's traffic may go: Endpoints and EndpointSlices of the pods it selects.

Both are computed from the same picture: the selected pods that have an address, with what is known of their
readiness. Slices are filled up to a hundred addresses and changed as little as possible.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from srearena.cluster.embedded.controllers.controller import Controller, split_key
from srearena.cluster.embedded.objects import (
    Obj,
    condition_is,
    dig,
    is_terminating,
    key_of,
    labels_of,
    name_of,
    namespace_of,
    owner_reference,
    reference_to,
)
from srearena.cluster.embedded.registry.selectors import label_set_selector
from srearena.cluster.embedded.store import Change

SLICES = "endpointslices.discovery.k8s.io"
SERVICE_NAME = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
HEADLESS = "service.kubernetes.io/headless"
SKIP_MIRROR = "endpointslice.kubernetes.io/skip-mirror"
_SLICE_SIZE = 100
_ADDRESSES_PER_ENDPOINTS = 1000
_REACTION = 0.05


@dataclass(slots=True)
class Group:
    """The pods that offer a service on the same target ports."""

    ports: list[Obj]
    pods: list[Obj] = field(default_factory=list)


def groups_of(service: Obj, pods: list[Obj]) -> list[Group]:
    """Pods by the port numbers that the service's target ports mean for them."""
    found: dict[tuple[Any, ...], Group] = {}
    for pod in pods:
        ports = _ports(service, pod)
        key = tuple((p.get("name"), p["port"], p["protocol"]) for p in ports)
        found.setdefault(key, Group(ports)).pods.append(pod)
    return [found[key] for key in sorted(found, key=repr)]


def _ports(service: Obj, pod: Obj) -> list[Obj]:
    ports: list[Obj] = []
    for port in dig(service, "spec", "ports", default=()):
        number = _target_port(pod, port)
        if number is not None:
            entry: Obj = {"name": port.get("name", ""), "port": number, "protocol": port.get("protocol") or "TCP"}
            if port.get("appProtocol"):
                entry["appProtocol"] = port["appProtocol"]
            ports.append(entry)
    return ports


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


def is_ready(service: Obj, pod: Obj) -> bool:
    if dig(service, "spec", "publishNotReadyAddresses"):
        return True
    return condition_is(pod, "Ready") and not is_terminating(pod)


class _ServiceFollower(Controller):
    """Looks at a service when it or one of its pods changes in a way that matters for its addresses."""

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
                self.enqueue(key_of(service), _REACTION)

    def selected(self, service: Obj) -> list[Obj] | None:
        """The service's pods that have an address; None where the service selects none itself."""
        raw = dig(service, "spec", "selector")
        if not raw or dig(service, "spec", "type") == "ExternalName":
            return None
        selector = label_set_selector(raw)
        return [
            pod
            for pod in self.store.objects("pods", namespace_of(service))
            if dig(pod, "status", "podIP")
            and dig(pod, "status", "phase") not in ("Succeeded", "Failed")
            and selector.matches(labels_of(pod))
        ]


def _as_seen(pod: Obj) -> tuple[Any, ...]:
    return (
        labels_of(pod),
        dig(pod, "status", "podIP"),
        dig(pod, "status", "phase"),
        condition_is(pod, "Ready"),
        is_terminating(pod),
        dig(pod, "spec", "hostname"),
    )


class EndpointsController(_ServiceFollower):
    name = "endpoint-controller"

    def reconcile(self, key: str) -> None:
        namespace, name = split_key(key)
        service = self.client.get("services", namespace, name)
        known = self.client.get("endpoints", namespace, name)
        if service is None:
            if known is not None and not is_terminating(known):
                self.client.delete("endpoints", known)
            return
        pods = self.selected(service)
        if pods is None:
            return
        subsets = [subset for group in groups_of(service, pods) if (subset := self._subset(service, group)) is not None]
        labels = {**labels_of(service), MANAGED_BY: "endpoint-controller"}
        if dig(service, "spec", "clusterIP") in ("None", ""):
            labels[HEADLESS] = ""
        if known is None:
            made: Obj = {
                "apiVersion": "v1",
                "kind": "Endpoints",
                "metadata": {"name": name, "namespace": namespace, "labels": labels},
            }
            if subsets:
                made["subsets"] = subsets
            self.client.create("endpoints", made)
        elif (known.get("subsets") or []) != subsets or labels_of(known) != labels:

            def change(obj: Obj) -> None:
                obj["metadata"]["labels"] = labels
                obj["subsets"] = subsets

            self.client.modify("endpoints", namespace, name, change)

    def _subset(self, service: Obj, group: Group) -> Obj | None:
        ready: list[Obj] = []
        unready: list[Obj] = []
        for pod in sorted(group.pods, key=lambda pod: str(pod["status"]["podIP"]))[:_ADDRESSES_PER_ENDPOINTS]:
            if is_terminating(pod) and not dig(service, "spec", "publishNotReadyAddresses"):
                continue
            address: Obj = {"ip": pod["status"]["podIP"]}
            if dig(pod, "spec", "hostname") and dig(pod, "spec", "subdomain") == name_of(service):
                address["hostname"] = pod["spec"]["hostname"]
            if dig(pod, "spec", "nodeName"):
                address["nodeName"] = pod["spec"]["nodeName"]
            address["targetRef"] = _target_reference(pod)
            (ready if is_ready(service, pod) else unready).append(address)
        if not ready and not unready:
            return None
        ports = [{k: v for k, v in port.items() if v != ""} for port in group.ports]
        subset: Obj = {}
        if ready:
            subset["addresses"] = ready
        if unready:
            subset["notReadyAddresses"] = unready
        if ports:
            subset["ports"] = ports
        return subset


def _target_reference(pod: Obj) -> Obj:
    reference = reference_to(pod)
    return {key: reference[key] for key in ("kind", "namespace", "name", "uid") if key in reference}


class EndpointSliceController(_ServiceFollower):
    name = "endpointslice-controller"

    def start(self) -> None:
        super().start()
        self.store.add_index(SLICES, "service", _service_of)
        self.watch(SLICES, lambda obj: _service_of(obj) if labels_of(obj).get(MANAGED_BY) == _OURS else ())

    def reconcile(self, key: str) -> None:
        namespace, name = split_key(key)
        service = self.client.get("services", namespace, name)
        known = [
            obj
            for obj in self.store.indexed(SLICES, "service", key)
            if labels_of(obj).get(MANAGED_BY) == _OURS and not is_terminating(obj)
        ]
        pods = self.selected(service) if service is not None and not is_terminating(service) else []
        if service is None:
            for obj in known:
                self.client.delete(SLICES, obj)
            return
        if pods is None:
            return
        wanted = [
            (group.ports, endpoints)
            for group in groups_of(service, pods)
            for endpoints in _chunks([self._endpoint(service, pod) for pod in group.pods])
        ]
        if not wanted:
            wanted = [([], [])]  # a service without pods still has a slice, an empty one
        self._apply(service, known, wanted)

    def _endpoint(self, service: Obj, pod: Obj) -> Obj:
        serving = condition_is(pod, "Ready")
        endpoint: Obj = {
            "addresses": [pod["status"]["podIP"]],
            "conditions": {
                "ready": is_ready(service, pod),
                "serving": serving,
                "terminating": is_terminating(pod),
            },
            "targetRef": _target_reference(pod),
        }
        node = dig(pod, "spec", "nodeName")
        if node:
            endpoint["nodeName"] = node
            zone = labels_of(self.store.get("nodes", "", node) or {}).get("topology.kubernetes.io/zone")
            if zone:
                endpoint["zone"] = zone
        if dig(pod, "spec", "hostname") and dig(pod, "spec", "subdomain") == name_of(service):
            endpoint["hostname"] = pod["spec"]["hostname"]
        return endpoint

    def _apply(self, service: Obj, known: list[Obj], wanted: list[tuple[list[Obj], list[Obj]]]) -> None:
        """Turn the slices that are there into those that should be, keeping their names."""
        labels = {**labels_of(service), SERVICE_NAME: name_of(service), MANAGED_BY: _OURS}
        if dig(service, "spec", "clusterIP") == "None":
            labels[HEADLESS] = ""
        spare = list(known)
        for ports, endpoints in wanted:
            fitting = next((obj for obj in spare if obj.get("ports") == ports), spare[0] if spare else None)
            if fitting is None:
                self._create(service, labels, ports, endpoints)
                continue
            spare.remove(fitting)
            if fitting.get("ports") != ports or fitting.get("endpoints") != endpoints or labels_of(fitting) != labels:

                def change(
                    obj: Obj, ports: list[Obj] = ports, endpoints: list[Obj] = endpoints, labels: Obj = labels
                ) -> None:
                    obj["metadata"]["labels"] = dict(labels)
                    obj["ports"] = ports
                    obj["endpoints"] = endpoints

                self.client.modify(SLICES, namespace_of(fitting), name_of(fitting), change)
        for obj in spare:
            self.client.delete(SLICES, obj)

    def _create(self, service: Obj, labels: Obj, ports: list[Obj], endpoints: list[Obj]) -> None:
        made: Obj = {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "generateName": f"{name_of(service)}-",
                "namespace": namespace_of(service),
                "labels": dict(labels),
                "ownerReferences": [owner_reference(service)],
            },
            "addressType": "IPv4",
            "endpoints": endpoints,
            "ports": ports,
        }
        self.client.create(SLICES, made)


_OURS = "endpointslice-controller.k8s.io"


def _service_of(obj: Obj) -> tuple[str, ...]:
    name = labels_of(obj).get(SERVICE_NAME)
    return (f"{namespace_of(obj)}/{name}",) if name else ()


def _chunks(endpoints: list[Obj]) -> list[list[Obj]]:
    return [endpoints[start : start + _SLICE_SIZE] for start in range(0, len(endpoints), _SLICE_SIZE)]


class EndpointSliceMirroring(Controller):
    """Endpoints that a person wrote, for a service without a selector, become slices too."""

    name = "endpointslicemirroring-controller"

    def start(self) -> None:
        self.watch("endpoints")
        self.watch("services")

    def reconcile(self, key: str) -> None:
        namespace, name = split_key(key)
        endpoints = self.client.get("endpoints", namespace, name)
        service = self.client.get("services", namespace, name)
        known = [
            obj
            for obj in self.store.objects(SLICES, namespace)
            if labels_of(obj).get(SERVICE_NAME) == name and labels_of(obj).get(MANAGED_BY) == _MIRROR
        ]
        mirrored = (
            endpoints is not None
            and service is not None
            and not dig(service, "spec", "selector")
            and labels_of(endpoints).get(SKIP_MIRROR) != "true"
        )
        for obj in known:
            if not mirrored or not _mirrors(obj, endpoints or {}):
                self.client.delete(SLICES, obj)
        if not mirrored or endpoints is None:
            return
        current = [obj for obj in known if _mirrors(obj, endpoints)]
        for subset in endpoints.get("subsets") or ():
            if not any(obj.get("endpoints") == _mirrored(subset) for obj in current):
                self._create(endpoints, subset)

    def _create(self, endpoints: Obj, subset: Obj) -> None:
        made: Obj = {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "generateName": f"{name_of(endpoints)}-",
                "namespace": namespace_of(endpoints),
                "labels": {**labels_of(endpoints), SERVICE_NAME: name_of(endpoints), MANAGED_BY: _MIRROR},
                "ownerReferences": [owner_reference(endpoints)],
            },
            "addressType": "IPv4",
            "endpoints": _mirrored(subset),
            "ports": [{"name": "", "protocol": "TCP", **port} for port in subset.get("ports") or ()],
        }
        self.client.create(SLICES, made)


_MIRROR = "endpointslicemirroring-controller.k8s.io"


def _mirrored(subset: Obj) -> list[Obj]:
    found: list[Obj] = []
    for key, ready in (("addresses", True), ("notReadyAddresses", False)):
        for address in subset.get(key) or ():
            entry: Obj = {"addresses": [address["ip"]], "conditions": {"ready": ready}}
            for extra in ("hostname", "nodeName", "targetRef"):
                if address.get(extra):
                    entry[extra] = address[extra]
            found.append(entry)
    return found


def _mirrors(obj: Obj, endpoints: Obj) -> bool:
    return any(obj.get("endpoints") == _mirrored(subset) for subset in endpoints.get("subsets") or ())
