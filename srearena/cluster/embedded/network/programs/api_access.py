"""Whether a network component can reach the API server from its host."""

from __future__ import annotations

from srearena.cluster.embedded.machine.networking.reachability import Outcome
from srearena.cluster.embedded.network.hosts import Host
from srearena.cluster.embedded.network.network import Network
from srearena.cluster.embedded.objects import Obj, dig, namespace_of
from srearena.cluster.embedded.registry.identity import User, service_account

API_SERVICE = ("default", "kubernetes")
_OPEN = (Outcome.CONNECTED, Outcome.REFUSED)


def through_service(network: Network, host: Host) -> Outcome:
    """The outcome of a connection to the `kubernetes` Service; the endpoint itself is not checked."""
    service = network.world.store.get("services", *API_SERVICE)
    address = dig(service, "spec", "clusterIP")
    if not address:
        return Outcome.CONNECTED
    port = int(dig(service, "spec", "ports", 0, "port", default=443))
    path = network.fabric.routes.find(host, address, port).paths[0]
    reached = path.backend is not None and path.outcome in _OPEN
    return Outcome.CONNECTED if reached else path.outcome


def directly(network: Network, host: Host) -> Outcome:
    """The outcome of a connection to the API server's own address."""
    slices = network.fabric.services.slices(*API_SERVICE)
    address = dig(slices[0], "endpoints", 0, "addresses", 0) if slices else None
    if not address:
        return Outcome.CONNECTED
    port = int(dig(slices[0], "ports", 0, "port", default=6443))
    path = network.fabric.routes.find(host, address, port).paths[0]
    return Outcome.CONNECTED if path.outcome in _OPEN else path.outcome


def identity(pod: Obj) -> User:
    """The user a pod authenticates as."""
    return service_account(namespace_of(pod), dig(pod, "spec", "serviceAccountName", default="default"))
