"""IPAddress objects: one for every cluster IP of a Service."""

from __future__ import annotations

from collections.abc import Iterator

from srearena.cluster.embedded.component_logs import API_SERVER
from srearena.cluster.embedded.controllers.controller import Controller
from srearena.cluster.embedded.objects import Obj, dig, is_terminating, key_of, name_of, namespace_of
from srearena.cluster.embedded.registry.identity import SUPERUSERS, User
from srearena.cluster.embedded.world import World

ADDRESSES = "ipaddresses.networking.k8s.io"
_FAMILY = "ipaddress.kubernetes.io/ip-family"
_MANAGED_BY = "ipaddress.kubernetes.io/managed-by"
_MANAGER = "ipallocator.k8s.io"
_HEADLESS = "None"


def _cluster_ips(service: Obj) -> Iterator[str]:
    for address in dig(service, "spec", "clusterIPs", default=()):
        if address and address != _HEADLESS:
            yield address


class ServiceAddresses(Controller):
    name = "service-ip-address-allocator"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.client = world.client(User("system:apiserver", (SUPERUSERS,)), "kube-apiserver")

    def start(self) -> None:
        self.watch("services", _cluster_ips)

    def reconcile(self, key: str) -> None:
        holder = next((service for service in self.store.objects("services") if key in _cluster_ips(service)), None)
        booked = self.client.get(ADDRESSES, "", key)
        if booked is not None and (holder is None or booked["spec"].get("parentRef") != _reference(holder)):
            if dig(booked, "metadata", "labels", _MANAGED_BY) == _MANAGER and not is_terminating(booked):
                self.client.delete(ADDRESSES, booked)
            booked = self.client.get(ADDRESSES, "", key)
        if booked is None and holder is not None:
            booking = _booking(key, holder)
            family = booking["metadata"]["labels"][_FAMILY]
            line = f'"allocated clusterIPs" service="{key_of(holder)}" clusterIPs={{"{family}":"{key}"}}'
            self.client.create(ADDRESSES, booking)
            self.world.component_logs.write(API_SERVER, "I", "alloc.go:328", line)


def _reference(service: Obj) -> Obj:
    return {"name": name_of(service), "namespace": namespace_of(service), "resource": "services"}


def _booking(address: str, service: Obj) -> Obj:
    family = "IPv6" if ":" in address else "IPv4"
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "IPAddress",
        "metadata": {"name": address, "labels": {_FAMILY: family, _MANAGED_BY: _MANAGER}},
        "spec": {"parentRef": _reference(service)},
    }
