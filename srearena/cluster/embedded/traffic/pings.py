"""Pings of idle gRPC connections.

A gRPC client connects as soon as it knows an address. Where its program asks for keepalive pings, it sends them while
nothing is called; a server with gRPC's defaults closes a connection that pings too often, which the client logs. So the
programs around one that has failed say something, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random

from srearena.application_model.schema import Pings
from srearena.cluster.embedded.network.routes import Path
from srearena.cluster.embedded.programs.timestamps import stamp
from srearena.cluster.embedded.traffic.fluid_model import FluidModel
from srearena.cluster.embedded.traffic.graph_builder import GraphBuilder
from srearena.cluster.embedded.traffic.servers import Instance, ServerKey

PINGS_BEFORE_GOAWAY = 4
"""The server takes the first without complaint, and closes the connection after two strikes more than it forgives."""
_CERTAIN = 20.0
_GO_LOG = "%Y/%m/%d %H:%M:%S"
_Key = tuple[ServerKey, str, str, int]


@dataclass(slots=True)
class _Connection:
    """One connection of a client to one server."""

    client: Instance
    pings: Pings
    links: list[int] = field(default_factory=list)
    """Links of the graph that use it."""
    silent: float = 0.0
    """Seconds without a call."""
    patience: float = 1.0
    """The interval between pings, as a multiple of the first one: it doubles with each connection that was closed."""

    def age(self, fluid: FluidModel, seconds: float, random: Random) -> None:
        calls = sum(float(fluid.flows[link]) for link in self.links) * seconds
        # Rare calls come when they come: the model knows their rate.
        if calls > _CERTAIN or (calls > 0 and random.random() > math.exp(-calls)):
            self.silent = 0.0
            return
        self.silent += seconds
        if self.silent >= PINGS_BEFORE_GOAWAY * self.patience * self.pings.every:
            self.silent = 0.0
            self.patience *= 2
            self.client.write_log(self.pings.closed, date=stamp(self.client.process, _GO_LOG))


class PingedConnections:
    """All connections of one cluster whose clients ping."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._connections: dict[_Key, _Connection] = {}

    def follow(self, builder: GraphBuilder, instances: Iterable[Instance], fluid: FluidModel) -> None:
        """Take the connections of a new graph; those that were there before stay as old as they are."""
        before, self._connections = self._connections, {}
        links: dict[_Key, list[int]] = {}
        for place, link in enumerate(fluid.links):
            target = fluid.graph.calls[int(fluid.link_calls[place])].target
            if target.dependency.pings is not None:
                links.setdefault((target.instance.key, target.name, link.address, link.port), []).append(place)
        for instance in instances:
            for name, dependency in instance.program.dependencies.items():
                if dependency.pings is None:
                    continue
                for _, path in builder.paths_to(instance, name):
                    if isinstance(path, Path):
                        key = (instance.key, name, path.address, path.port)
                        found = before.get(key) or _Connection(instance, dependency.pings)
                        found.links = links.get(key, [])
                        self._connections[key] = found

    def age(self, fluid: FluidModel, seconds: float) -> None:
        """Let so many seconds pass."""
        for connection in self._connections.values():
            connection.age(fluid, seconds, self._random)
