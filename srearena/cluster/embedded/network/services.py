"""Services as kube-proxy implements them: virtual addresses and ports that map to sets of endpoints.

Rules are compiled from Services and their EndpointSlices, one Service at a time when it changes. A compiled rule is
immutable: the rules a dead kube-proxy left on its node keep their state.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from srearena.cluster.embedded.objects import Obj, dig, labels_of, name_of, namespace_of
from srearena.cluster.embedded.store import Change, Store

SERVICES = "services"
SLICES = "endpointslices.discovery.k8s.io"
SERVICE_LABEL = "kubernetes.io/service-name"
BY_SERVICE = "network.service"
DEFAULT_AFFINITY_SECONDS = 10_800


@dataclass(frozen=True, slots=True)
class Backend:
    """One endpoint of a rule: an address and a port to forward packets to."""

    address: str
    port: int
    node: str
    ready: bool
    serving: bool
    terminating: bool
    zones: frozenset[str] = frozenset()
    """Zones whose clients should prefer it; empty where it makes no difference."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What kube-proxy does with packets for one port of one Service."""

    service: str
    """`namespace/name`."""
    port_name: str
    protocol: str
    port: int
    node_port: int
    backends: tuple[Backend, ...]
    affinity_seconds: float
    """How long a client stays with its backend; 0 for no affinity."""
    internal_local: bool
    external_local: bool

    def choices(self, *, local_node: str | None = None, zone: str = "") -> tuple[Backend, ...]:
        """The backends (all, or those on one node) for a packet: the ready ones, else terminating ones that serve.

        Zone hints count only where every ready backend carries them and one of them names the zone.
        """
        near = self.backends if local_node is None else tuple(b for b in self.backends if b.node == local_node)
        ready = tuple(b for b in near if b.ready)
        if not ready:
            return tuple(b for b in near if b.serving and b.terminating)
        if zone and local_node is None and all(b.zones for b in ready):
            return tuple(b for b in ready if zone in b.zones) or ready
        return ready


@dataclass(frozen=True, slots=True)
class ServiceRules:
    """All rules of a Service, by address and by node port."""

    by_address: tuple[tuple[tuple[str, int, str], Rule, bool], ...]
    """Address, port and protocol; the rule; whether the address is an external one."""
    by_node_port: tuple[tuple[tuple[int, str], Rule], ...]


NO_RULES = ServiceRules((), ())


class RuleTable:
    """The rules a kube-proxy has written on its node."""

    __slots__ = ("at_address", "at_node_port", "virtual_addresses")

    def __init__(self) -> None:
        self.at_address: dict[tuple[str, int, str], tuple[Rule, bool]] = {}
        self.at_node_port: dict[tuple[int, str], Rule] = {}
        self.virtual_addresses: dict[str, int] = {}
        """Addresses with rules, and their number."""

    def copy(self) -> RuleTable:
        table = RuleTable()
        table.at_address = dict(self.at_address)
        table.at_node_port = dict(self.at_node_port)
        table.virtual_addresses = dict(self.virtual_addresses)
        return table

    def replace(self, old: ServiceRules, new: ServiceRules) -> None:
        for place, _, _ in old.by_address:
            if self.at_address.pop(place, None) is not None:
                left = self.virtual_addresses[place[0]] - 1
                if left:
                    self.virtual_addresses[place[0]] = left
                else:
                    del self.virtual_addresses[place[0]]
        for port, _ in old.by_node_port:
            self.at_node_port.pop(port, None)
        for place, rule, external in new.by_address:
            if place not in self.at_address:
                self.virtual_addresses[place[0]] = self.virtual_addresses.get(place[0], 0) + 1
            self.at_address[place] = (rule, external)
        for port, rule in new.by_node_port:
            self.at_node_port[port] = rule


class Services:
    """The rule table compiled from the store; `table` is always up to date."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._table = RuleTable()
        self._compiled: dict[str, ServiceRules] = {}
        store.add_index(SLICES, BY_SERVICE, _service_of_slice)
        self._stale: dict[str, None] = dict.fromkeys(
            f"{namespace_of(service)}/{name_of(service)}" for service in store.objects(SERVICES)
        )

    @property
    def table(self) -> RuleTable:
        if self._stale:
            stale, self._stale = self._stale, {}
            for key in stale:
                self._compile(key)
        return self._table

    def note(self, change: Change) -> None:
        """A Service or an EndpointSlice was written."""
        if change.resource == SERVICES:
            self._stale[f"{namespace_of(change.new)}/{name_of(change.new)}"] = None
            return
        for obj in (change.old, change.new):
            if obj is not None:
                self._stale.update(dict.fromkeys(_service_of_slice(obj)))

    def slices(self, namespace: str, name: str) -> list[Obj]:
        return self._store.indexed(SLICES, BY_SERVICE, f"{namespace}/{name}")

    def _compile(self, key: str) -> None:
        namespace, _, name = key.partition("/")
        service = self._store.get(SERVICES, namespace, name)
        old = self._compiled.pop(key, NO_RULES)
        new = NO_RULES
        if service is not None:
            new = compiled_rules(service, self.slices(namespace, name))
        if new is not NO_RULES:
            self._compiled[key] = new
        self._table.replace(old, new)


def compiled_rules(service: Obj, slices: Iterable[Obj]) -> ServiceRules:
    """The rules of one Service, given its slices."""
    spec = service.get("spec") or {}
    internal = [address for address in spec.get("clusterIPs") or [spec.get("clusterIP")] if address]
    if spec.get("type") == "ExternalName" or not internal or internal[0] == "None":
        return NO_RULES
    external = [*(spec.get("externalIPs") or ())]
    for ingress in dig(service, "status", "loadBalancer", "ingress", default=()):
        if ingress.get("ip") and ingress.get("ipMode", "VIP") == "VIP":
            external.append(ingress["ip"])
    slices = list(slices)
    affinity = 0.0
    if spec.get("sessionAffinity") == "ClientIP":
        path = ("sessionAffinityConfig", "clientIP", "timeoutSeconds")
        affinity = float(dig(spec, *path, default=DEFAULT_AFFINITY_SECONDS))
    by_address: list[tuple[tuple[str, int, str], Rule, bool]] = []
    by_node_port: list[tuple[tuple[int, str], Rule]] = []
    for port in spec.get("ports") or ():
        protocol = port.get("protocol") or "TCP"
        rule = Rule(
            f"{namespace_of(service)}/{name_of(service)}",
            port.get("name") or "",
            protocol,
            int(port["port"]),
            int(port.get("nodePort") or 0),
            tuple(_backends(slices, port.get("name") or "", protocol)),
            affinity,
            spec.get("internalTrafficPolicy") == "Local",
            spec.get("externalTrafficPolicy") == "Local",
        )
        by_address += [((address, rule.port, protocol), rule, False) for address in internal]
        by_address += [((address, rule.port, protocol), rule, True) for address in external]
        if rule.node_port:
            by_node_port.append(((rule.node_port, protocol), rule))
    return ServiceRules(tuple(by_address), tuple(by_node_port))


def _backends(slices: Iterable[Obj], port_name: str, protocol: str) -> Iterable[Backend]:
    seen: set[tuple[str, int]] = set()
    for part in slices:
        ports = [
            int(port["port"])
            for port in part.get("ports") or ()
            if (port.get("name") or "") == port_name
            and (port.get("protocol") or "TCP") == protocol
            and port.get("port")
        ]
        for endpoint in part.get("endpoints") or ():
            conditions = endpoint.get("conditions") or {}
            ready = conditions.get("ready") is not False
            serving = bool(conditions.get("serving", ready))
            zones = frozenset(hint["name"] for hint in dig(endpoint, "hints", "forZones", default=()))
            for address in (endpoint.get("addresses") or ())[:1]:
                for port in ports:
                    if (address, port) not in seen:
                        seen.add((address, port))
                        yield Backend(
                            address,
                            port,
                            endpoint.get("nodeName") or "",
                            ready,
                            serving,
                            bool(conditions.get("terminating")),
                            zones,
                        )


def _service_of_slice(part: Obj) -> Iterable[str]:
    name = labels_of(part).get(SERVICE_LABEL)
    return (f"{namespace_of(part)}/{name}",) if name else ()
