"""The network of one cluster: which host can reach which address, and how connections fail.

The kubelet attaches nodes and pods (`attach_node`, `attach_pod`) and passes the returned client to programs; fault
injection sets `links` and `flows`; load models use `forecast`; all other callers use `reach`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from srearena.cluster.embedded.machine.files.sysctl import TRACKED_LIMIT
from srearena.cluster.embedded.machine.networking.reachability import DnsStatus, Outcome, Resolution
from srearena.cluster.embedded.machine.networking.resolver_files import hosts_file, resolver_file
from srearena.cluster.embedded.machine.networking.sockets import NetworkNamespace
from srearena.cluster.embedded.network.dialer import Dialer, Waits, elapse
from srearena.cluster.embedded.network.dns.coredns import CoreDns
from srearena.cluster.embedded.network.dns.corefile import Configuration
from srearena.cluster.embedded.network.dns.records import ClusterRecords
from srearena.cluster.embedded.network.external_hosts import ExternalHosts
from srearena.cluster.embedded.network.fabric import Fabric
from srearena.cluster.embedded.network.flows import PORT_RANGE_SYSCTL
from srearena.cluster.embedded.network.forecast import Forecast, Forecasts
from srearena.cluster.embedded.network.hosts import Host, HostKind
from srearena.cluster.embedded.network.links import Impairment, Links, Quality, Scope, netem_text
from srearena.cluster.embedded.network.network_client import NetworkClient
from srearena.cluster.embedded.network.resolv import HOST_HOSTS, HOST_RESOLV_CONF
from srearena.cluster.embedded.network.resolver import NameServers, Resolver
from srearena.cluster.embedded.network.routes import Path, Route
from srearena.cluster.embedded.objects import Obj, dig, name_of, uid_of
from srearena.cluster.embedded.registry.identity import User
from srearena.cluster.embedded.world import World

Permits = Callable[[User, str, str, str], bool]
"""User, verb, API group and resource."""


@dataclass(frozen=True, slots=True)
class Reach:
    """The predicted result of a connection attempt."""

    outcome: Outcome
    seconds: float
    """Virtual time until the client has the result."""
    resolution: Resolution
    address: str = ""
    """The address that was tried."""
    path: Path | None = None
    """The path of the connection; None where the name did not resolve."""
    route: Route | None = None

    @property
    def ok(self) -> bool:
        return self.outcome is Outcome.CONNECTED


class Network:
    def __init__(self, world: World) -> None:
        self.world = world
        self.clock = world.clock
        self.fabric = Fabric(world.clock, world.store)
        random = world.randomness.stream("network")
        self.dialer = Dialer(self.fabric, random)
        self.name_servers = NameServers()
        self.resolver = Resolver(self.dialer, self.name_servers)
        self.records = ClusterRecords(world.store)
        self.outside = ExternalHosts(world.clock, self.fabric.hosts, self.name_servers.serve)
        self._forecasts = Forecasts(self.fabric, self.name_servers)
        self._clients: dict[Host, NetworkClient] = {}
        self._shaped: dict[tuple[str, str], int] = {}
        self.permits: Permits = lambda user, verb, group, resource: True
        """Whether the API authorizes a cluster-wide request; network components check before they watch."""
        outside = self.outside.host
        self._clients[outside] = NetworkClient(self, outside, HOST_RESOLV_CONF, HOST_HOSTS)

    @property
    def links(self) -> Links:
        return self.fabric.links

    @property
    def epoch(self) -> int:
        """Advances whenever a result may have changed."""
        return self.fabric.epoch

    # Attaching

    def attach_node(self, name: str, sockets: NetworkNamespace, pod_cidr: str = "") -> NetworkClient:
        """Attach a node; the client is for processes that run on it outside of pods (the kubelet's probes)."""
        self.detach_node(name)
        host = self.fabric.hosts.attach_node(name, sockets, pod_cidr)
        sockets.tracked = lambda: self._tracked(name)
        sockets.configure = lambda setting, value: self._set(host, setting, value)
        client = self._clients[host] = NetworkClient(self, host, HOST_RESOLV_CONF, HOST_HOSTS)
        return client

    def detach_node(self, name: str) -> None:
        host = self.fabric.hosts.nodes.get(name)
        self.fabric.hosts.detach_node(name)
        if host is not None:
            self._clients.pop(host, None)
            self.fabric.flows.forget(host)

    def set_node_up(self, name: str, up: bool) -> None:
        """Set whether a node has power and a link."""
        self.fabric.hosts.set_node_up(name, up)

    def shape(
        self, node: str, pod: str, *, delay: float, jitter: float, loss: float, corruption: float, bandwidth: float
    ) -> None:
        """Apply `tc netem` to the egress of a node or pod. Replaces the previous setting; zeros end it."""
        before = self._shaped.pop((node, pod), None)
        if before is not None:
            self.links.repair(before)
        quality = Quality(delay, jitter, loss, corruption, bandwidth=bandwidth)
        hosts = self.fabric.hosts
        for host in hosts.pods.values() if pod else [hosts.nodes[node]] if node in hosts.nodes else []:
            if not pod or f"{host.pod_namespace}/{host.pod_name}" == pod:
                host.sockets.discipline = netem_text(quality)
        if quality.is_healthy:
            return
        scope = Scope.of(pods=[pod]) if pod else Scope.of(nodes=[node])
        self._shaped[node, pod] = self.links.impair(Impairment(quality, scope))

    def _set(self, host: Host, setting: str, value: str) -> bool:
        """Give a parameter of a host's kernel another value, where the network depends on it."""
        if setting == TRACKED_LIMIT:
            # One table serves all pods of a machine; only the machine itself sets its size.
            if host.kind is not HostKind.NODE:
                return False
            self.fabric.flows.set_limit(host.node, int(value))
        elif setting == PORT_RANGE_SYSCTL:
            first, last = map(int, value.split())
            self.fabric.flows.set_port_range(host, first, last)
        return True

    def _tracked(self, node: str) -> tuple[int, int]:
        table = self.fabric.flows.table(node)
        return table.count(self.fabric.clock.now), table.limit

    def attach_pod(self, pod: Obj, sockets: NetworkNamespace) -> NetworkClient:
        """Attach a pod whose sandbox is ready; the client is the network interface of its containers.

        Containers with an /etc/resolv.conf and /etc/hosts of their own use the client's `with_files`.
        """
        self.detach_pod(uid_of(pod))
        host = self.fabric.hosts.attach_pod(pod, sockets)
        if not host.host_network:
            self.fabric.flows.configure(host, pod)
            # The kernel counts per namespace; the limit is the node's.
            sockets.configure = lambda setting, value: self._set(host, setting, value)
            sockets.tracked = lambda: (sum(not one.listener for one in sockets.sockets()), self._tracked(host.node)[1])
        hosts = hosts_file(pod, host.address, dig(pod, "spec", "hostname") or name_of(pod))
        client = self._clients[host] = NetworkClient(self, host, resolver_file(pod), hosts)
        return client

    def detach_pod(self, uid: str) -> None:
        """Remove the sandbox and its address."""
        host = self.fabric.hosts.pods.get(uid)
        self.fabric.hosts.detach_pod(uid)
        if host is not None:
            self._clients.pop(host, None)
            self.fabric.flows.forget(host)

    def client_of(self, host: Host) -> NetworkClient:
        return self._clients[host]

    def name_server(
        self, host: Host, configuration: Configuration, log: Callable[[str], object] = lambda line: None
    ) -> CoreDns:
        """Create a CoreDNS on a host; `name_servers.serve` registers its listeners."""
        random = self.world.randomness.stream(f"coredns/{host}")
        return CoreDns(
            self.fabric,
            self.records,
            self.dialer,
            self.name_servers,
            host,
            configuration,
            random,
            log,
        )

    # Reachability

    def reach(
        self, source: Host, host: str, port: int, protocol: str = "TCP", *, timeout: float | None = None
    ) -> Reach:
        """Predict a connection from `source` to a name or address and port: outcome, duration, and reason of failure.

        Random choices (the endpoint of a Service, lost packets) are drawn, but no time passes, and the port and
        table entries that the attempt uses are released.
        """
        limit = float("inf") if timeout is None else timeout
        client = self._clients[source]
        resolution, spent = elapse(client.resolving(host), limit)
        if resolution is None:
            return Reach(Outcome.TIMEOUT, limit, Resolution(DnsStatus.TIMEOUT, host))
        if not resolution.addresses:
            return Reach(resolution.outcome, spent, resolution)
        answer = Reach(Outcome.NXDOMAIN, spent, resolution)
        for address in resolution.addresses:
            attempt, more = elapse(self._attempt(source, address, port, protocol), limit - spent)
            spent += more
            if attempt is None:
                route = self.fabric.routes.find(source, address, port, protocol)
                return Reach(Outcome.TIMEOUT, limit, resolution, address, route.paths[0], route)
            outcome, path, route = attempt
            answer = Reach(outcome, spent, resolution, address, path, route)
            if outcome is Outcome.CONNECTED:
                break
        return answer

    def _attempt(self, source: Host, address: str, port: int, protocol: str) -> Waits[tuple[Outcome, Path, Route]]:
        if protocol != "TCP":
            found = self.dialer.connect_udp(source, address, port)
            return found.path.outcome, found.path, found.route
        attempt = yield from self.dialer.dial(source, address, port)
        if attempt.flow is not None:
            attempt.flow.undo()
        return attempt.outcome, attempt.path, attempt.route

    def forecast(self, source: Host, host: str, port: int, protocol: str = "TCP") -> Forecast:
        """Predict many connections at once; cached until something changes."""
        found = self._forecasts.cached(source, host, port, protocol)
        if found is not None:
            return found
        client = self._clients[source]
        return self._forecasts.make(source, host, port, protocol, client.settings, client.hosts)
