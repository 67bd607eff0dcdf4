"""Where a packet goes: from a station to an address and port, through every rule on its way.

A `Route` is what the cluster's state of this moment makes of a question, with nothing left to chance: the paths a
new connection may take, one of them to be drawn, each with its outcome. Routes are compiled once and kept until
the epoch moves, so asking again costs a dictionary lookup.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from srearena.cluster.embedded.network.addresses import LOOPBACK, NODE_RANGE, is_ipv6, is_loopback, within
from srearena.cluster.embedded.network.links import HEALTHY, Quality
from srearena.cluster.embedded.network.services import Backend, Rule
from srearena.cluster.embedded.network.stations import Station, StationKind
from srearena.cluster.embedded.node.reachability import Outcome
from srearena.cluster.embedded.node.sockets import Listener

if TYPE_CHECKING:
    from srearena.cluster.embedded.network.fabric import Fabric

ITSELF = 0.00002
SAME_NODE = 0.00006
OTHER_NODE = 0.0003
OUTSIDE = 0.018
"""Round trips, in seconds, of a small packet and its answer."""
NEIGHBOUR_GIVEN_UP = 3.07
"""Seconds until the kernel stops asking who has an address of its own network."""
_UNPLUGGED = "the node's own link is down"
ZONE_LABEL = "topology.kubernetes.io/zone"


@dataclass(frozen=True, slots=True)
class Path:
    """One way a connection can go, and how it ends."""

    outcome: Outcome
    address: str
    """The address it ends at, after all translation."""
    port: int
    source: str
    """The client's address as the other end sees it."""
    station: Station | None = None
    listener: Listener | None = field(default=None, repr=False)
    round_trip: float = 0.0
    there: Quality = HEALTHY
    back: Quality = HEALTHY
    backend: Backend | None = None
    reason: str = ""
    """What stands in the way, in words; empty where nothing does."""

    @property
    def container(self) -> str:
        """Name of the container that listens."""
        owner = self.listener.owner if self.listener is not None else None
        config = getattr(getattr(owner, "container", None), "config", None)
        return str(getattr(config, "name", ""))

    @property
    def lost(self) -> float:
        """Share of packets whose answer never comes."""
        return 1 - (1 - self.there.lost) * (1 - self.back.lost)


@dataclass(frozen=True, slots=True)
class Route:
    """Every path a new connection may take. There is always one; what stands in the way of all is a path, too."""

    paths: tuple[Path, ...]
    rule: Rule | None = None
    """The Service that was asked for."""
    proxy_node: str = ""
    """Whose kube-proxy chose."""
    expires: float = float("inf")
    """When, without any change in the cluster, the answer may become another."""

    @property
    def share_connected(self) -> float:
        """Share of connections that find a listener, links aside."""
        return sum(path.outcome is Outcome.CONNECTED for path in self.paths) / len(self.paths)


class Routes:
    """Routes from any station to any address, compiled on demand."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._known: dict[tuple[Station, str, int, str], Route] = {}
        self._epoch = -1

    def find(self, source: Station, address: str, port: int, protocol: str = "TCP") -> Route:
        if self._epoch != self._fabric.epoch:
            self._known.clear()
            self._epoch = self._fabric.epoch
        key = (source, address, port, protocol)
        found = self._known.get(key)
        if found is None or found.expires <= self._fabric.clock.now:
            found = self._known[key] = self._compile(source, address, port, protocol)
        return found

    def again(self, source: Station, path: Path, protocol: str) -> Path:
        """The same path, as it is now: what a packet of a flow that was translated once meets."""
        return self._deliver(source, source, path.source, path.address, path.port, protocol, path.backend)

    # Compilation

    def _compile(self, source: Station, address: str, port: int, protocol: str) -> Route:
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
            if address in table.virtual_addresses and address not in fabric.stations.by_address:
                return _dead_end(Outcome.TIMEOUT, address, port, source, "the Service has no such port")
        node = self._node_at(source, address)
        if node is not None:
            return self._at_node(source, node, address, port, protocol)
        return self._alone(self._deliver(source, source, source.address, address, port, protocol))

    def _node_at(self, source: Station, address: str) -> Station | None:
        """The node an address belongs to, if it is a node's."""
        if is_loopback(address):
            shares = source.host_network or source.kind is StationKind.NODE
            return self._fabric.stations.nodes.get(source.node) if shares else None
        station = self._fabric.stations.by_address.get(address)
        return station if station is not None and station.kind is StationKind.NODE else None

    def _at_node(self, source: Station, node: Station, address: str, port: int, protocol: str) -> Route:
        """A packet for a node's own address: node ports and host ports come before sockets."""
        fabric = self._fabric
        if fabric.stations.is_up(node.node):
            table = fabric.proxies.table(node.node)
            rule = table.at_node_port.get((port, protocol)) if table is not None else None
            if rule is not None:
                return self._through_rule(source, node.node, rule, address, external=True, entered=node)
            published = fabric.stations.host_port(node.node, address, port, protocol)
            if published is not None:
                pod, target = published
                return self._alone(self._deliver(source, source, source.address, pod.address, target, protocol))
        return self._alone(self._deliver(source, source, source.address, address, port, protocol))

    def _through_rule(
        self,
        source: Station,
        proxy_node: str,
        rule: Rule,
        address: str,
        *,
        external: bool,
        entered: Station | None = None,
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
        from_inside = source.kind is not StationKind.OUTSIDE
        local = rule.external_local if external else rule.internal_local
        if external and local and from_inside and source.node == proxy_node:
            local = False  # what starts on the node itself is treated like traffic to the cluster address
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
        origin: Station,
        source: Station,
        source_address: str,
        address: str,
        port: int,
        protocol: str,
        backend: Backend | None = None,
    ) -> Path:
        """The last leg: an address that is nobody's rule any more. `source` is who the packet says it is from."""
        fabric = self._fabric
        if is_loopback(address):
            return self._on_loopback(origin, address, port, protocol)
        target = fabric.stations.by_address.get(address)
        if target is not None and target.sockets is origin.sockets:
            return self._at_socket(origin, address, source_address, target, address, port, protocol, ITSELF, backend)
        if not fabric.stations.is_up(origin.node) and (target is None or target.node != origin.node):
            return Path(Outcome.TIMEOUT, address, port, source_address, target, backend=backend, reason=_UNPLUGGED)
        there = fabric.links.quality(origin, origin.address, target, address)
        back = fabric.links.quality(target, address, origin, origin.address)
        if there.cut or back.cut:
            why = f"the link to {target or address} is cut"
            return Path(Outcome.TIMEOUT, address, port, source_address, target, None, 0.0, there, back, backend, why)
        if not fabric.policies.allows(source, source_address, target, address, port, protocol):
            why = "a network policy drops it"
            return Path(Outcome.TIMEOUT, address, port, source_address, target, None, 0.0, there, back, backend, why)
        if target is None:
            return self._nobody(source_address, address, port, backend)
        if not fabric.stations.is_up(target.node) and target.node != origin.node:
            silent = target.kind is StationKind.NODE
            outcome = Outcome.NO_ROUTE if silent else Outcome.TIMEOUT
            wait = NEIGHBOUR_GIVEN_UP if silent else 0.0
            why = f"node {target.node} is down"
            return Path(outcome, address, port, source_address, target, None, wait, there, back, backend, why)
        if origin.kind is StationKind.OUTSIDE and target.is_isolable:
            why = "pod addresses are not routed outside the cluster"
            if backend is None and source is origin:
                return Path(Outcome.TIMEOUT, address, port, source_address, target, reason=why)
        for node in dict.fromkeys((origin.node, target.node)):
            if node and not fabric.flows.admits(node):
                why = f"the connection tracking table of {node} is full"
                return Path(
                    Outcome.TIMEOUT, address, port, source_address, target, None, 0.0, there, back, backend, why
                )
        return self._at_socket(
            origin,
            address,
            source_address,
            target,
            address,
            port,
            protocol,
            _distance(origin, target),
            backend,
            there,
            back,
        )

    def _on_loopback(self, source: Station, address: str, port: int, protocol: str) -> Path:
        return self._at_socket(source, address, LOOPBACK, source, address, port, protocol, ITSELF)

    def _at_socket(
        self,
        origin: Station,
        address: str,
        source_address: str,
        target: Station,
        bound: str,
        port: int,
        protocol: str,
        round_trip: float,
        backend: Backend | None = None,
        there: Quality = HEALTHY,
        back: Quality = HEALTHY,
    ) -> Path:
        listener = target.sockets.find(bound, port, protocol)
        outcome, why = Outcome.CONNECTED, ""
        if listener is None:
            outcome, why = Outcome.REFUSED, f"nothing listens on {protocol} port {port} of {target}"
        return Path(outcome, address, port, source_address, target, listener, round_trip, there, back, backend, why)

    def _nobody(self, source_address: str, address: str, port: int, backend: Backend | None) -> Path:
        """An address that nobody has."""
        owner = self._fabric.stations.owner_of_range(address)
        if owner is not None and not self._fabric.stations.is_up(owner):
            why = f"node {owner} is down"
            return Path(Outcome.TIMEOUT, address, port, source_address, backend=backend, reason=why)
        if owner is not None or within(address, NODE_RANGE):
            why = f"nobody has the address {address}"
            return Path(
                Outcome.NO_ROUTE,
                address,
                port,
                source_address,
                None,
                None,
                NEIGHBOUR_GIVEN_UP,
                backend=backend,
                reason=why,
            )
        why = f"nothing answers at {address}"
        return Path(Outcome.TIMEOUT, address, port, source_address, backend=backend, reason=why)

    def _alone(self, path: Path) -> Route:
        nodes = {path.station.node} if path.station is not None else set()
        full = path.outcome is Outcome.TIMEOUT
        return Route((path,), expires=self._fabric.flows.relief_at(*nodes) if full else float("inf"))

    def _relief(self, node: str, paths: tuple[Path, ...]) -> float:
        stuck = {path.station.node for path in paths if path.outcome is Outcome.TIMEOUT and path.station is not None}
        return self._fabric.flows.relief_at(node, *stuck) if stuck else float("inf")

    def _zone(self, node: str) -> str:
        found = self._fabric.store.get("nodes", "", node)
        return str(((found or {}).get("metadata") or {}).get("labels", {}).get(ZONE_LABEL, ""))


def _distance(source: Station, target: Station) -> float:
    if StationKind.OUTSIDE in (source.kind, target.kind):
        return OUTSIDE
    return SAME_NODE if source.node == target.node else OTHER_NODE


def _dead_end(outcome: Outcome, address: str, port: int, source: Station, reason: str) -> Route:
    return Route((Path(outcome, address, port, source.address, reason=reason),))
