"""The network of one cluster, and the one question everything asks of it: who reaches whom, and how it fails.

Whoever runs containers plugs them in (`attach_node`, `attach_pod`) and gives programs the facade made for them;
whoever injects faults sets `links` and `flows`; whoever models load asks `forecast`; everybody else asks `reach`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from srearena.cluster.embedded.machine.networking.reachability import DnsStatus, Outcome, Resolution
from srearena.cluster.embedded.machine.networking.resolver_files import hosts_file, resolver_file
from srearena.cluster.embedded.machine.networking.sockets import NetworkNamespace
from srearena.cluster.embedded.network.dialer import Dialer, Waits, elapse
from srearena.cluster.embedded.network.dns.coredns import CoreDns
from srearena.cluster.embedded.network.dns.corefile import Configuration
from srearena.cluster.embedded.network.dns.records import ClusterRecords
from srearena.cluster.embedded.network.external_hosts import ExternalHosts
from srearena.cluster.embedded.network.fabric import Fabric
from srearena.cluster.embedded.network.forecast import Forecast, Forecasts
from srearena.cluster.embedded.network.hosts import Host
from srearena.cluster.embedded.network.links import Impairment, Links, Quality, Scope
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
    """What became of an attempt to reach somebody."""

    outcome: Outcome
    seconds: float
    """Virtual time until the client knows."""
    resolution: Resolution
    address: str = ""
    """The address that was dialled."""
    path: Path | None = None
    """The way the connection took; None where the name did not resolve."""
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
        """Whether the API lets somebody do something cluster-wide; components of the network ask before they watch."""
        outside = self.outside.host
        self._clients[outside] = NetworkClient(self, outside, HOST_RESOLV_CONF, HOST_HOSTS)

    @property
    def links(self) -> Links:
        return self.fabric.links

    @property
    def epoch(self) -> int:
        """Moves whenever an answer may have changed."""
        return self.fabric.epoch

    # Plugging in

    def attach_node(self, name: str, sockets: NetworkNamespace, pod_cidr: str = "") -> NetworkClient:
        """A machine joins the network; its facade is for what runs on it outside of pods (the kubelet's probes)."""
        self.detach_node(name)
        host = self.fabric.hosts.attach_node(name, sockets, pod_cidr)
        facade = self._clients[host] = NetworkClient(self, host, HOST_RESOLV_CONF, HOST_HOSTS)
        return facade

    def detach_node(self, name: str) -> None:
        host = self.fabric.hosts.nodes.get(name)
        self.fabric.hosts.detach_node(name)
        if host is not None:
            self._clients.pop(host, None)
            self.fabric.flows.forget(host)

    def set_node_up(self, name: str, up: bool) -> None:
        """A machine lost, or got back, power or its link."""
        self.fabric.hosts.set_node_up(name, up)

    def shape(
        self, node: str, pod: str, *, delay: float, jitter: float, loss: float, corruption: float, bandwidth: float
    ) -> None:
        """`tc netem` on what leaves a machine, or one of its pods. A new order replaces the old; zeros end it."""
        before = self._shaped.pop((node, pod), None)
        if before is not None:
            self.links.repair(before)
        quality = Quality(delay, jitter, loss, corruption, bandwidth=bandwidth)
        if quality.is_healthy:
            return
        scope = Scope.of(pods=[pod]) if pod else Scope.of(nodes=[node])
        self._shaped[node, pod] = self.links.impair(Impairment(quality, scope))

    def attach_pod(self, pod: Obj, sockets: NetworkNamespace) -> NetworkClient:
        """A pod's sandbox is ready; the facade is what its containers see of the network.

        Containers whose own /etc/resolv.conf and /etc/hosts shall count use the facade's `with_files`.
        """
        self.detach_pod(uid_of(pod))
        host = self.fabric.hosts.attach_pod(pod, sockets)
        if not host.host_network:
            self.fabric.flows.configure(host, pod)
        hosts = hosts_file(pod, host.address, dig(pod, "spec", "hostname") or name_of(pod))
        facade = self._clients[host] = NetworkClient(self, host, resolver_file(pod), hosts)
        return facade

    def detach_pod(self, uid: str) -> None:
        """The sandbox is gone, and its address with it."""
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
        """A CoreDNS at that host; its listeners are made name servers with `name_servers.serve`."""
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

    # Asking

    def reach(
        self, source: Host, host: str, port: int, protocol: str = "TCP", *, timeout: float | None = None
    ) -> Reach:
        """Would `source` reach that name or address and port now, how long until it knows, and if not, why not?

        Chance has its say (a Service picks an endpoint, a bad link loses packets), but no time passes, and what the
        attempt would use up is given back.
        """
        limit = float("inf") if timeout is None else timeout
        facade = self._clients[source]
        resolution, spent = elapse(facade.resolving(host), limit)
        if resolution is None:
            return Reach(Outcome.TIMEOUT, limit, Resolution(DnsStatus.TIMEOUT, host))
        if not resolution.addresses:
            return Reach(resolution.outcome, spent, resolution)
        answer = Reach(Outcome.NXDOMAIN, spent, resolution)
        for address in resolution.addresses:
            dialled, more = elapse(self._dialled(source, address, port, protocol), limit - spent)
            spent += more
            if dialled is None:
                route = self.fabric.routes.find(source, address, port, protocol)
                return Reach(Outcome.TIMEOUT, limit, resolution, address, route.paths[0], route)
            outcome, path, route = dialled
            answer = Reach(outcome, spent, resolution, address, path, route)
            if outcome is Outcome.CONNECTED:
                break
        return answer

    def _dialled(self, source: Host, address: str, port: int, protocol: str) -> Waits[tuple[Outcome, Path, Route]]:
        if protocol != "TCP":
            found = self.dialer.associated(source, address, port)
            return found.path.outcome, found.path, found.route
        dialled = yield from self.dialer.dial(source, address, port)
        if dialled.flow is not None:
            dialled.flow.undo()
        return dialled.outcome, dialled.path, dialled.route

    def forecast(self, source: Host, host: str, port: int, protocol: str = "TCP") -> Forecast:
        """The same question for many connections at once, kept until something changes."""
        found = self._forecasts.known(source, host, port, protocol)
        if found is not None:
            return found
        facade = self._clients[source]
        return self._forecasts.make(source, host, port, protocol, facade.settings, facade.hosts)
