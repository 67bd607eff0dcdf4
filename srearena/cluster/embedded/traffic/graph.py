"""Requests as a graph: who is asked to do what (nodes), what each calls (calls), and which ways a call can go (links).

The graph is what the cluster's state of this moment makes of the applications' models. It is built by `wiring`, read
as arrays by `circuit`, which moves rates through it, and as objects by `walks`, which takes single requests through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from srearena.application_model.schema import Dependency, Effect, Operation, Step
from srearena.cluster.embedded.traffic.failures import Failure
from srearena.cluster.embedded.traffic.servers import Instance, Server, ServerKey, Store

NodeKey = tuple[ServerKey, str, str]
"""Server, operation and route."""
CallKey = tuple[ServerKey, str, str, int]
"""The key of the calling node, and the call's position among the calls of that node."""


@dataclass(slots=True)
class ActiveEffect:
    """An effect whose condition holds, with its numbers settled."""

    effect: Effect
    fails: float
    leaks: float


@dataclass(slots=True, eq=False)
class Node:
    """One operation at one server."""

    server: Server
    name: str
    """The operation's name in the model; for a datastore what is done there."""
    route: str
    """What was asked for, where the operation serves many routes."""
    operation: Operation | None
    """None at a datastore, or at a server that does not know what it is asked."""
    cpu: float
    latency: float
    variance: float
    """Of its own time, without the calls."""
    fails: float
    error: str
    payload: int = 512
    effects: tuple[ActiveEffect, ...] = ()
    plan: tuple[Action, ...] = ()
    index: int = -1
    level: int = 0
    rate: float = 0.0
    """Requests a second that begin here: load, or messages taken from a broker."""

    @property
    def key(self) -> NodeKey:
        return (self.server.key, self.name, self.route)


@dataclass(slots=True)
class Link:
    """One way a call can go: to a node, or to where it fails."""

    weight: float
    callee: Node | None
    failure: Failure | None
    round_trip: float
    variance: float = 0.0
    lost: float = 0.0
    """Share of calls that never get an answer, however often packets are sent again."""
    address: str = ""
    port: int = 0


@dataclass(slots=True, eq=False)
class Target:
    """A dependency of an instance, with its numbers settled."""

    name: str
    dependency: Dependency
    instance: Instance
    timeout: float
    attempts: int
    backoff: float
    multiplier: float
    pool: float
    pool_timeout: float
    index: int = -1
    """Its line for connections, where the pool has a limit."""


@dataclass(slots=True, eq=False)
class Call:
    caller: Node
    target: Target
    step: Step
    operation: str
    ordinal: int
    """Its place among the calls of its node."""
    times: float
    share: float
    links: list[Link] = field(default_factory=list)
    cache: CacheSpace | None = None
    """Made only for what that cache does not hold."""
    group: int = 0
    """Calls of one group run at the same time."""
    crashes: bool = False
    optional: bool = False
    index: int = -1

    @property
    def key(self) -> CallKey:
        return (*self.caller.key, self.ordinal)


@dataclass(slots=True, eq=False)
class CacheSpace:
    """Keys that one kind of request looks up; the share that is there is kept at the store that holds them."""

    name: str
    keys: float
    space: float
    fill: bool
    lookup: Call
    index: int = -1

    @property
    def stores(self) -> list[Store]:
        return [
            link.callee.server for link in self.lookup.links if link.callee and isinstance(link.callee.server, Store)
        ]

    def missing(self) -> float:
        """The share of requests that do not find all they look for; all of them where no store answers."""
        stores = self.stores
        if not stores:
            return 1.0
        warm = sum(store.warm.get(self.name, 0.0) for store in stores) / len(stores)
        return float(1.0 - warm**self.keys)


@dataclass(slots=True, eq=False)
class Pause:
    seconds: float


@dataclass(slots=True, eq=False)
class Together:
    """Branches that run at the same time."""

    branches: tuple[tuple[Action, ...], ...]


@dataclass(slots=True, eq=False)
class Missing:
    """What is done for a cache's misses."""

    cache: CacheSpace
    plan: tuple[Action, ...]


Action = Call | Pause | Together | Missing


@dataclass(slots=True)
class Graph:
    nodes: list[Node]
    calls: list[Call]
    targets: list[Target]
    servers: list[Server]
    caches: list[CacheSpace]
    roots: Sequence[Node]
    watched: list[tuple[object, int]]
    """Models outside the network whose answers are built in, with the epoch they had."""
