"""Connections of the load: which programs keep how many open to which servers, as their kernels list them.

The fluid model opens no connections. How many there are follows from the protocol: a gRPC client multiplexes all its
calls over one connection, a datastore lists those of its clients, a load generator keeps as many as its options say,
and other clients have one for each request in flight, at least one. They are computed when someone looks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from zlib import crc32

from srearena.cluster.embedded.machine.networking.interface_counters import SEGMENT, Exchange
from srearena.cluster.embedded.machine.networking.sockets import (
    EPHEMERAL_PORTS,
    BulkConnection,
    NetworkNamespace,
    SocketOwner,
)
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.network.flows import Flows
from srearena.cluster.embedded.network.network import Network
from srearena.cluster.embedded.programs.datastores.datastore import client_name
from srearena.cluster.embedded.traffic.fluid_model import FluidModel
from srearena.cluster.embedded.traffic.graph import Target
from srearena.cluster.embedded.traffic.load import Driver
from srearena.cluster.embedded.traffic.servers import Instance, Server, ServerKey, Store

PURPOSE = "traffic"
"""Under which the connections are declared in the nodes' connection tracking tables."""
KEEPALIVE_SECONDS = 15.0
"""Interval at which Go's and most other runtimes probe idle connections."""
_KEEPALIVE = Exchange(SEGMENT, 1.0, SEGMENT, 1.0)
"""A probe and its acknowledgement."""
MOST_IDLE = 100
"""Connections that a client keeps to one server. Chosen: the size of the pool of most HTTP clients."""


@dataclass(slots=True, eq=False)
class ConnectionPool:
    """The connections of one client to one server."""

    client: Instance
    server: Server
    target: Target
    dialed: tuple[str, int]
    """The address that the client connects to: that of a Service, or of the server."""
    served: tuple[str, int]
    """The server's own address."""
    driver: Driver | None = None
    links: list[int] = field(default_factory=list)
    """Links of the graph that use it."""

    @property
    def keeps(self) -> bool:
        """Whether an idle connection stays open."""
        return isinstance(self.server, Store) or self.target.dependency.protocol == "grpc"

    def size(self, fluid: FluidModel) -> int:
        if isinstance(self.server, Store):
            attached = getattr(self.server.model, "attached", None)
            return int(attached(client_name(self.client.process))) if attached is not None else 1
        if self.target.dependency.protocol == "grpc":
            return 1
        most = min(MOST_IDLE, self.target.pool)
        if self.driver is not None:
            most = self.driver.most_in_flight
            if most < math.inf and self.driver.driving.rate is not None:
                return int(most)  # a fixed number of connections, opened at the start
        reached = [(link, int(fluid.callees[link])) for link in self.links]
        busy = sum(float(fluid.flows[link] * fluid.response[callee]) for link, callee in reached)
        return int(max(1, min(math.ceil(busy), most)))

    def is_idle(self, fluid: FluidModel, size: int) -> bool:
        """Whether its connections carry less than the probes that keep them alive."""
        return sum(float(fluid.flows[link]) for link in self.links) * KEEPALIVE_SECONDS < size

    def connections(self, fluid: FluidModel, *, is_client: bool, owned: int) -> Iterator[BulkConnection]:
        """The ends of its connections at one side; so many of them have an owner."""
        key = f"{self.client.host.address} {self.dialed} {self.served}"
        first = crc32(key.encode()) % len(EPHEMERAL_PORTS)
        size = self.size(fluid)
        rate, seconds, payload = self._exchange(fluid)
        owner = self.client.process if is_client else self.server.process
        for number in range(size):
            near = (self.client.host.address, EPHEMERAL_PORTS[(first + number) % len(EPHEMERAL_PORTS)])
            ends = (near, self.dialed) if is_client else (self.served, near)
            holder = owner if number < owned else None
            yield BulkConnection(*ends, holder, is_client, rate / size, seconds, payload)

    def _exchange(self, fluid: FluidModel) -> tuple[float, float, int]:
        """Requests a second, the mean seconds of one, and the mean size of its response."""
        rate = seconds = size = 0.0
        for link in self.links:
            flow, callee = float(fluid.flows[link]), int(fluid.callees[link])
            rate += flow
            seconds += flow * float(fluid.response[callee])
            size += flow * float(fluid.payloads[callee])
        return (rate, seconds / rate, round(size / rate)) if rate > 0 else (0.0, 0.0, 0)


class LoadConnections:
    """All connections of the load."""

    def __init__(self, network: Network, flows: Flows) -> None:
        self._network = network
        self._flows = flows
        self._fluid: FluidModel | None = None
        self._pools: dict[tuple[ServerKey, ServerKey, int], ConnectionPool] = {}
        self._by_namespace: dict[NetworkNamespace, NamespaceConnections] = {}
        self._nodes: set[str] = set()

    def follow(self, fluid: FluidModel, drivers: dict[Process, Driver]) -> None:
        """Take the connections of a new graph."""
        self._fluid = fluid
        before = self._by_namespace
        self._by_namespace = {}
        pools: dict[tuple[ServerKey, ServerKey, int], ConnectionPool] = {}
        for place, link in enumerate(fluid.links):
            if link.callee is None:
                continue
            call = fluid.graph.calls[int(fluid.link_calls[place])]
            client, server = call.target.instance, link.callee.server
            key = (client.key, server.key, link.port)
            found = pools.get(key)
            if found is None:
                served = (link.address, link.port)
                dialed, driver = self._dialed(call.target, served), drivers.get(client.process)
                found = pools[key] = ConnectionPool(client, server, call.target, dialed, served, driver)
            found.links.append(place)
        for key, idle in self._pools.items():
            # A connection outlives the requests that were sent over it.
            if key not in pools and idle.keeps and idle.client.alive and idle.server.alive:
                idle.links = []
                pools[key] = idle
        for pool in pools.values():
            self._at(pool.client.host.sockets).outgoing.append(pool)
            self._at(pool.server.host.sockets).incoming.append(pool)
        self._pools = pools
        for namespace in before:
            if namespace not in self._by_namespace:
                self._leave(namespace)
        self._declare(fluid)

    def clear(self) -> None:
        """There is no load."""
        for namespace in self._by_namespace:
            self._leave(namespace)
        for node in self._nodes:
            self._flows.carry(node, PURPOSE, 0)
        self._fluid, self._pools, self._by_namespace, self._nodes = None, {}, {}, set()

    def _leave(self, namespace: NetworkNamespace) -> None:
        namespace.bulk = None
        namespace.carried.set_steady(PURPOSE, None, self._network.clock.now)

    def _at(self, namespace: NetworkNamespace) -> NamespaceConnections:
        found = self._by_namespace.get(namespace)
        if found is None:
            found = self._by_namespace[namespace] = namespace.bulk = NamespaceConnections(self)
        return found

    def _dialed(self, target: Target, served: tuple[str, int]) -> tuple[str, int]:
        dependency = target.dependency
        if dependency.discover:
            return served
        host, _, port = target.instance.settings.fill(dependency.address).rpartition(":")
        if not host or not port.isdigit():
            return served
        addresses = self._network.forecast(target.instance.host, host, int(port)).lookup.addresses
        return (addresses[0], int(port)) if addresses else served

    def _declare(self, fluid: FluidModel) -> None:
        """Tell tracking tables and limits on open files how many there are."""
        nodes: dict[str, int] = {}
        outgoing: dict[Process, int] = {}
        idle = dict.fromkeys(self._by_namespace, 0)
        for pool in self._pools.values():
            size = pool.size(fluid)
            if pool.is_idle(fluid, size):
                idle[pool.client.host.sockets] += size
                idle[pool.server.host.sockets] += size
            outgoing[pool.client.process] = outgoing.get(pool.client.process, 0) + size
            for node in {pool.client.node, pool.server.node}:
                nodes[node] = nodes.get(node, 0) + size
        for node in self._nodes | set(nodes):
            self._flows.carry(node, PURPOSE, nodes.get(node, 0))
        self._nodes = set(nodes)
        for namespace, number in idle.items():
            probes = _KEEPALIVE.times(number / KEEPALIVE_SECONDS) if number else None
            namespace.carried.set_steady(PURPOSE, probes, self._network.clock.now)
        for process, count in outgoing.items():
            process.outgoing_sockets = count

    @property
    def fluid(self) -> FluidModel | None:
        return self._fluid


class NamespaceConnections:
    """The connections of the load that end in one network namespace."""

    def __init__(self, load: LoadConnections) -> None:
        self._load = load
        self.outgoing: list[ConnectionPool] = []
        self.incoming: list[ConnectionPool] = []

    def entries(self) -> Iterator[BulkConnection]:
        fluid = self._load.fluid
        if fluid is None:
            return
        for pool in self.outgoing:
            yield from pool.connections(fluid, is_client=True, owned=pool.size(fluid))
        room: dict[Process, int] = {}
        for pool in self.incoming:
            owner = pool.server.process
            left = room.setdefault(owner, max(0, owner.nofile - owner.open_files))
            yield from pool.connections(fluid, is_client=False, owned=left)
            room[owner] = max(0, left - pool.size(fluid))

    def count(self, owner: SocketOwner) -> int:
        """How many descriptors of a process are such connections."""
        fluid = self._load.fluid
        if fluid is None or not isinstance(owner, Process):
            return 0
        outgoing = sum(pool.size(fluid) for pool in self.outgoing if pool.client.process is owner)
        incoming = sum(pool.size(fluid) for pool in self.incoming if pool.server.process is owner)
        return outgoing + min(incoming, max(0, owner.nofile - owner.open_files))
