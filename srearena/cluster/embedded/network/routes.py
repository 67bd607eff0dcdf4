"""Where a packet goes: from a host to an address and port, through every rule on its way.

A `Route` is what the cluster's state of this moment makes of a question, with nothing left to chance: the paths a
new connection may take, one of them to be drawn, each with its outcome. Routes are compiled once and kept until
the epoch moves, so asking again costs a dictionary lookup.
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
"""Round trips, in seconds, of a small packet and its answer."""
NEIGHBOUR_GIVEN_UP = 3.07
"""Seconds until the kernel stops asking who has an address of its own network."""
ZONE_LABEL = "topology.kubernetes.io/zone"

_Obstacle = tuple[Outcome, float, str]
"""How it ends, after how long, and why."""


@dataclass(slots=True, eq=False)
class Path:
    """One way a connection can go, and how it ends. Never changed once made (not frozen only because that is slow)."""

    outcome: Outcome
    address: str
    """The address it ends at, after all translation."""
    port: int
    source: str
    """The client's address as the other end sees it."""
    host: Host | None = None
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


class Routes:
    """Routes from any host to any address, compiled on demand."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._known: dict[tuple[Host, str, int, str], Route] = {}
        self._epoch = -1

    def find(self, source: Host, address: str, port: int, protocol: str = "TCP") -> Route:
        if self._epoch != self._fabric.epoch:
            self._known.clear()
            self._epoch = self._fabric.epoch
        key = (source, address, port, protocol)
        found = self._known.get(key)
        if found is None or found.expires <= self._fabric.clock.now:
            found = self._known[key] = self._compile(source, address, port, protocol)
        return found

    def again(self, source: Host, path: Path, protocol: str, *, established: bool = True) -> Path:
        """The same path, as it is now: what a packet of a flow that was translated once meets."""
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
        return self._alone(self._deliver(source, source, source.address, address, port, protocol))

    def _announced(self, address: str, port: int, protocol: str) -> tuple[Host, Rule] | None:
        """The first node that answers for an external address of a Service, as a load balancer would find it."""
        for node in self._fabric.hosts.nodes.values():
            table = self._fabric.proxies.table(node.node) if node.up else None
            found = table.at_address.get((address, port, protocol)) if table is not None else None
            if found is not None and found[1]:
                return node, found[0]
        return None

    def _node_at(self, source: Host, address: str) -> Host | None:
        """The node an address belongs to, if it is a node's."""
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
                return self._alone(path)
        return self._alone(self._deliver(source, source, source.address, address, port, protocol))

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
        """The last leg: an address that is nobody's rule any more. `sender` is who the packet says it is from."""
        hosts, links = self._fabric.hosts, self._fabric.links
        target = origin if is_loopback(address) else hosts.by_address.get(address)
        if target is not None and target.sockets is origin.sockets:
            own = LOOPBACK if target is origin and is_loopback(address) else source_address
            return self._at_socket(target, protocol, address, port, own, ITSELF, HEALTHY, HEALTHY, backend)
        there, back = links.qualities(origin, target, address, port, protocol)
        obstacle = self._obstacle(origin, sender, source_address, target, address, port, protocol, there, back)
        if obstacle is None and target is not None and not translated and backend is None:
            obstacle = _not_routed(origin, target)
        if obstacle is None and target is not None and not established:
            obstacle = self._no_room(origin, target)
        if obstacle is not None or target is None:
            outcome, wait, why = obstacle or self._nobody(address)
            return Path(outcome, address, port, source_address, target, None, wait, there, back, backend, why)
        distance = _distance(origin, target)
        return self._at_socket(target, protocol, address, port, source_address, distance, there, back, backend)

    def _obstacle(
        self,
        origin: Host,
        sender: Host,
        source_address: str,
        target: Host | None,
        address: str,
        port: int,
        protocol: str,
        there: Quality,
        back: Quality,
    ) -> _Obstacle | None:
        """What on the way keeps a packet from its target, if anything does."""
        hosts = self._fabric.hosts
        same_node = target is not None and bool(origin.node) and target.node == origin.node
        if not same_node and not hosts.is_up(origin.node):
            return Outcome.TIMEOUT, 0.0, "the node's own link is down"
        if there.cut or back.cut:
            return Outcome.TIMEOUT, 0.0, f"the link to {target or address} is cut"
        if not self._fabric.policies.allows(sender, source_address, target, address, port, protocol):
            return Outcome.TIMEOUT, 0.0, "a network policy drops it"
        if target is not None and not same_node and not hosts.is_up(target.node):
            # The node itself is a neighbour that no longer answers; behind it, packets just vanish.
            why = f"node {target.node} is down"
            if target.kind is HostKind.NODE:
                return Outcome.NO_ROUTE, NEIGHBOUR_GIVEN_UP, why
            return Outcome.TIMEOUT, 0.0, why
        return None

    def _no_room(self, origin: Host, target: Host) -> _Obstacle | None:
        """A node on the way that can keep track of no further flow drops its first packet."""
        for node in dict.fromkeys((origin.node, target.node)):
            if node and not self._fabric.flows.admits(node):
                return Outcome.TIMEOUT, 0.0, f"the connection tracking table of {node} is full"
        return None

    def _nobody(self, address: str) -> _Obstacle:
        """An address that nobody has."""
        owner = self._fabric.hosts.owner_of_range(address)
        if owner is not None and not self._fabric.hosts.is_up(owner):
            return Outcome.TIMEOUT, 0.0, f"node {owner} is down"
        if owner is not None or within(address, NODE_RANGE):
            return Outcome.NO_ROUTE, NEIGHBOUR_GIVEN_UP, f"nobody has the address {address}"
        return Outcome.TIMEOUT, 0.0, f"nothing answers at {address}"

    @staticmethod
    def _at_socket(
        target: Host,
        protocol: str,
        address: str,
        port: int,
        source_address: str,
        distance: float,
        there: Quality,
        back: Quality,
        backend: Backend | None,
    ) -> Path:
        """The packet is there; is anything listening?"""
        listener = target.sockets.find(address, port, protocol)
        outcome, why = Outcome.CONNECTED, ""
        if listener is None:
            outcome, why = Outcome.REFUSED, f"nothing listens on {protocol} port {port} of {target}"
        return Path(outcome, address, port, source_address, target, listener, distance, there, back, backend, why)

    def _alone(self, path: Path) -> Route:
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
