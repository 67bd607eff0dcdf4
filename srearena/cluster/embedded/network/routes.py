"""Routes of packets: from a host to an address and port, through Service rules, policies and links.

A `Route` is computed from the current state of the cluster without randomness: the paths a new connection may take
(the dialer draws one), each with its outcome. Routes are cached until the epoch advances, so a repeated lookup costs a
dictionary access.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from srearena.cluster.embedded.machine.networking.reachability import Outcome
from srearena.cluster.embedded.machine.networking.sockets import Listener
from srearena.cluster.embedded.network.addresses import LOOPBACK, NODE_RANGE, is_ipv6, is_loopback, within
from srearena.cluster.embedded.network.hosts import Host, HostKind
from srearena.cluster.embedded.network.links import HEALTHY, Quality
from srearena.cluster.embedded.network.services import Backend, Rule

if TYPE_CHECKING:
    from srearena.cluster.embedded.network.fabric import Fabric

ITSELF = 0.00002
SAME_NODE = 0.00006
OTHER_NODE = 0.0003
OUTSIDE = 0.018
"""Round trips of a small packet in seconds (chosen: typical of a cloud network and a distant site)."""
NEIGHBOUR_TIMEOUT = 3.07
"""Seconds until the kernel gives up resolving a neighbour (three ARP probes, one second apart)."""
ZONE_LABEL = "topology.kubernetes.io/zone"

_Obstacle = tuple[Outcome, float, str]
"""Outcome, seconds until it, and reason."""


@dataclass(slots=True, eq=False)
class Path:
    """One path of a connection and its outcome. Immutable by convention (frozen dataclasses are slow to create)."""

    outcome: Outcome
    address: str
    """The address it ends at, after all translation."""
    port: int
    source: str
    """The client's address as the other end sees it."""
    host: Host | None = None
    listener: Listener | None = field(default=None, repr=False)
    round_trip: float = 0.0
    forward: Quality = HEALTHY
    reverse: Quality = HEALTHY
    backend: Backend | None = None
    reason: str = ""
    """Why the connection fails; empty where it does not."""

    @property
    def container(self) -> str:
        """Name of the container that listens."""
        owner = self.listener.owner if self.listener is not None else None
        config = getattr(getattr(owner, "container", None), "config", None)
        return str(getattr(config, "name", ""))

    @property
    def lost(self) -> float:
        """Share of packets without response."""
        return 1 - (1 - self.forward.lost) * (1 - self.reverse.lost)


@dataclass(frozen=True, slots=True)
class Route:
    """The paths a new connection may take: at least one, which may be one that fails."""

    paths: tuple[Path, ...]
    rule: Rule | None = None
    """The rule of the Service, where the address belongs to one."""
    proxy_node: str = ""
    """The node whose kube-proxy chose the backend."""
    expires: float = float("inf")
    """When the route may change without a change in the cluster."""


class Routes:
    """Routes from any host to any address, compiled on demand."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._cache: dict[tuple[Host, str, int, str], Route] = {}
        self._epoch = -1

    def find(self, source: Host, address: str, port: int, protocol: str = "TCP") -> Route:
        if self._epoch != self._fabric.epoch:
            self._cache.clear()
            self._epoch = self._fabric.epoch
        key = (source, address, port, protocol)
        found = self._cache.get(key)
        if found is None or found.expires <= self._fabric.clock.now:
            found = self._cache[key] = self._compile(source, address, port, protocol)
        return found

    def again(self, source: Host, path: Path, protocol: str, *, established: bool = True) -> Path:
        """The current state of a path, for packets of a flow whose addresses are translated already."""
        return self._deliver(
            source,
            self._fabric.hosts.by_address.get(path.source, source),
            path.source,
            path.address,
            path.port,
            protocol,
            path.backend,
            translated=True,
            established=established,
        )

    # Compilation

    def _compile(self, source: Host, address: str, port: int, protocol: str) -> Route:
        fabric = self._fabric
        if is_ipv6(address) and not is_loopback(address):
            return _dead_end(Outcome.UNREACHABLE, address, port, source, "the cluster has no IPv6")
        if not source.addresses and not is_loopback(address):
            return _dead_end(Outcome.UNREACHABLE, address, port, source, "no network interface")
        table = fabric.proxies.table(source.node) if source.node else None
        if table is not None:
            found = table.at_address.get((address, port, protocol))
            if found is not None:
                rule, external = found
                return self._through_rule(source, source.node, rule, address, external=external)
            if address in table.virtual_addresses and address not in fabric.hosts.by_address:
                return _dead_end(Outcome.TIMEOUT, address, port, source, "the Service has no such port")
        if source.kind is HostKind.OUTSIDE and (entry := self._announced(address, port, protocol)) is not None:
            return self._through_rule(source, entry[0].node, entry[1], address, external=True, entered=entry[0])
        node = self._node_at(source, address)
        if node is not None:
            return self._at_node(source, node, address, port, protocol)
        return self._single(self._deliver(source, source, source.address, address, port, protocol))

    def _announced(self, address: str, port: int, protocol: str) -> tuple[Host, Rule] | None:
        """The first node with a rule for an external address of a Service, as a load balancer would find it."""
        for node in self._fabric.hosts.nodes.values():
            table = self._fabric.proxies.table(node.node) if node.up else None
            found = table.at_address.get((address, port, protocol)) if table is not None else None
            if found is not None and found[1]:
                return node, found[0]
        return None

    def _node_at(self, source: Host, address: str) -> Host | None:
        """The node that has an address, if any."""
        if is_loopback(address):
            shares = source.host_network or source.kind is HostKind.NODE
            return self._fabric.hosts.nodes.get(source.node) if shares else None
        host = self._fabric.hosts.by_address.get(address)
        return host if host is not None and host.kind is HostKind.NODE else None

    def _at_node(self, source: Host, node: Host, address: str, port: int, protocol: str) -> Route:
        """A packet for a node's own address: node ports and host ports come before sockets."""
        fabric = self._fabric
        if fabric.hosts.is_up(node.node):
            table = fabric.proxies.table(node.node)
            rule = table.at_node_port.get((port, protocol)) if table is not None else None
            if rule is not None:
                return self._through_rule(source, node.node, rule, address, external=True, entered=node)
            published = fabric.hosts.host_port(node.node, address, port, protocol)
            if published is not None:
                pod, target = published
                path = self._deliver(source, source, source.address, pod.address, target, protocol, translated=True)
                return self._single(path)
        return self._single(self._deliver(source, source, source.address, address, port, protocol))

    def _through_rule(
        self,
        source: Host,
        proxy_node: str,
        rule: Rule,
        address: str,
        *,
        external: bool,
        entered: Host | None = None,
    ) -> Route:
        port = rule.node_port if entered is not None else rule.port
        if entered is not None and source is not entered:
            way = self._deliver(source, source, source.address, entered.address, port, rule.protocol)
            if way.outcome not in (Outcome.REFUSED, Outcome.CONNECTED):
                return Route((way,), rule, proxy_node)
        everywhere = rule.choices(zone=self._zone(proxy_node))
        if not everywhere:
            reason = f"Service {rule.service} has no ready endpoints"
            rtt = OTHER_NODE if entered is not None and source.node != proxy_node else ITSELF
            refusal = Path(Outcome.REFUSED, address, port, source.address, round_trip=rtt, reason=reason)
            return Route((refusal,), rule, proxy_node)
        from_inside = source.kind is not HostKind.OUTSIDE
        local = rule.external_local if external else rule.internal_local
        if external and local and from_inside and source.node == proxy_node:
            local = False  # what originates on the node itself is treated like traffic to the cluster address
        choices = rule.choices(local_node=proxy_node) if local else everywhere
        if not choices:
            reason = f"Service {rule.service} has no endpoints on node {proxy_node}"
            return Route((Path(Outcome.TIMEOUT, address, port, source.address, reason=reason),), rule, proxy_node)
        # Traffic that enters at a node and may leave for another one takes the node's address on.
        via = entered if entered is not None and not rule.external_local else None
        sender = via or source
        paths = tuple(
            self._deliver(source, sender, sender.address, b.address, b.port, rule.protocol, b) for b in choices
        )
        return Route(paths, rule, proxy_node, self._relief(source.node, paths))

    def _deliver(
        self,
        origin: Host,
        sender: Host,
        source_address: str,
        address: str,
        port: int,
        protocol: str,
        backend: Backend | None = None,
        *,
        translated: bool = False,
        established: bool = False,
    ) -> Path:
        """Deliver to an address without Service rule. `sender` is the host of the packet's source address."""
        hosts, links = self._fabric.hosts, self._fabric.links
        target = origin if is_loopback(address) else hosts.by_address.get(address)
        if target is not None and target.sockets is origin.sockets:
            seen_from = LOOPBACK if target is origin and is_loopback(address) else source_address
            return self._at_socket(target, protocol, address, port, seen_from, ITSELF, HEALTHY, HEALTHY, backend)
        forward, reverse = links.qualities(origin, target, address, port, protocol)
        obstacle = self._obstacle(origin, sender, source_address, target, address, port, protocol, forward, reverse)
        if obstacle is None and target is not None and not translated and backend is None:
            obstacle = _not_routed(origin, target)
        if obstacle is None and target is not None and not established:
            obstacle = self._no_room(origin, target)
        if obstacle is not None or target is None:
            outcome, wait, why = obstacle or self._unassigned(address)
            return Path(outcome, address, port, source_address, target, None, wait, forward, reverse, backend, why)
        distance = _distance(origin, target)
        return self._at_socket(target, protocol, address, port, source_address, distance, forward, reverse, backend)

    def _obstacle(
        self,
        origin: Host,
        sender: Host,
        source_address: str,
        target: Host | None,
        address: str,
        port: int,
        protocol: str,
        forward: Quality,
        reverse: Quality,
    ) -> _Obstacle | None:
        """What keeps a packet from its target, if anything does."""
        hosts = self._fabric.hosts
        same_node = target is not None and bool(origin.node) and target.node == origin.node
        if not same_node and not hosts.is_up(origin.node):
            return Outcome.TIMEOUT, 0.0, "the node's own link is down"
        if forward.cut or reverse.cut:
            return Outcome.TIMEOUT, 0.0, f"the link to {target or address} is cut"
        if not self._fabric.policies.allows(sender, source_address, target, address, port, protocol):
            return Outcome.TIMEOUT, 0.0, "a network policy drops it"
        if target is not None and not same_node and not hosts.is_up(target.node):
            # The node itself is a neighbour that does not respond to ARP; packets to its pods are lost.
            why = f"node {target.node} is down"
            if target.kind is HostKind.NODE:
                return Outcome.NO_ROUTE, NEIGHBOUR_TIMEOUT, why
            return Outcome.TIMEOUT, 0.0, why
        return None

    def _no_room(self, origin: Host, target: Host) -> _Obstacle | None:
        """A node on the path whose connection tracking table is full drops the first packet."""
        for node in dict.fromkeys((origin.node, target.node)):
            if node and not self._fabric.flows.admits(node):
                return Outcome.TIMEOUT, 0.0, f"the connection tracking table of {node} is full"
        return None

    def _unassigned(self, address: str) -> _Obstacle:
        """The outcome for an address that no host has."""
        owner = self._fabric.hosts.owner_of_range(address)
        if owner is not None and not self._fabric.hosts.is_up(owner):
            return Outcome.TIMEOUT, 0.0, f"node {owner} is down"
        if owner is not None or within(address, NODE_RANGE):
            return Outcome.NO_ROUTE, NEIGHBOUR_TIMEOUT, f"no host has the address {address}"
        return Outcome.TIMEOUT, 0.0, f"nothing answers at {address}"

    @staticmethod
    def _at_socket(
        target: Host,
        protocol: str,
        address: str,
        port: int,
        source_address: str,
        distance: float,
        forward: Quality,
        reverse: Quality,
        backend: Backend | None,
    ) -> Path:
        """The packet arrived: connected where a socket listens, else refused."""
        listener = target.sockets.find(address, port, protocol)
        outcome, why = Outcome.CONNECTED, ""
        if listener is None:
            outcome, why = Outcome.REFUSED, f"nothing listens on {protocol} port {port} of {target}"
        return Path(outcome, address, port, source_address, target, listener, distance, forward, reverse, backend, why)

    def _single(self, path: Path) -> Route:
        nodes = {path.host.node} if path.host is not None else set()
        full = path.outcome is Outcome.TIMEOUT
        return Route((path,), expires=self._fabric.flows.relief_at(*nodes) if full else float("inf"))

    def _relief(self, node: str, paths: tuple[Path, ...]) -> float:
        stuck = {path.host.node for path in paths if path.outcome is Outcome.TIMEOUT and path.host is not None}
        return self._fabric.flows.relief_at(node, *stuck) if stuck else float("inf")

    def _zone(self, node: str) -> str:
        found = self._fabric.store.get("nodes", "", node)
        return str(((found or {}).get("metadata") or {}).get("labels", {}).get(ZONE_LABEL, ""))


def _distance(source: Host, target: Host) -> float:
    if HostKind.OUTSIDE in (source.kind, target.kind):
        return OUTSIDE
    return SAME_NODE if source.node == target.node else OTHER_NODE


def _not_routed(origin: Host, target: Host) -> _Obstacle | None:
    if origin.kind is HostKind.OUTSIDE and target.is_isolable:
        return Outcome.TIMEOUT, 0.0, "pod addresses are not routed outside the cluster"
    return None


def _dead_end(outcome: Outcome, address: str, port: int, source: Host, reason: str) -> Route:
    return Route((Path(outcome, address, port, source.address, reason=reason),))
