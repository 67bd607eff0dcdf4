"""The call graph: operations at servers (nodes), the calls of each, and the paths a call can take (links).

The graph results from the applications' models and the present state of the cluster. `graph_builder` builds it,
`fluid_model` turns it into arrays and moves rates through it, `walks` follows single requests through its objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from srearena.application_model.schema import Dependency, Effect, Operation, Step
from srearena.cluster.embedded.traffic.failures import Failure
from srearena.cluster.embedded.traffic.servers import Instance, Server, ServerKey, Store
from srearena.cluster.embedded.traffic.spans import Attributes

NodeKey = tuple[ServerKey, str, str]
"""Server, operation and route."""
CallKey = tuple[ServerKey, str, str, int]
"""The key of the calling node, and the call's position among the calls of that node."""


@dataclass(slots=True)
class ActiveEffect:
    """An effect whose condition holds, with its numbers resolved."""

    effect: Effect
    fails: float
    leaks: float


@dataclass(slots=True, eq=False)
class Node:
    """One operation at one server."""

    server: Server
    name: str
    """The operation's name in the model; at a datastore the verb."""
    route: str
    """The requested route, where the operation serves many."""
    operation: Operation | None
    """None at a datastore."""
    cpu: float
    latency: float
    variance: float
    """Variance of its own time, without the calls."""
    fails: float
    error: str
    payload: int = 512
    effects: tuple[ActiveEffect, ...] = ()
    flag_evaluations: tuple[Attributes, ...] = ()
    """Of feature flags that its code asks for, where the library that does so adds them to spans."""
    plan: tuple[Action, ...] = ()
    index: int = -1
    level: int = 0
    shared_cpu: float = 0.0
    """Processor time of a long statement, in which the kernel lets others run; it counts as `latency` in queues."""
    rate: float = 0.0
    """Requests a second that begin here: load, or messages consumed from a broker."""

    @property
    def key(self) -> NodeKey:
        return (self.server.key, self.name, self.route)


@dataclass(slots=True, eq=False)
class Link:
    """One path of a call: to a node, or to a failure."""

    weight: float
    callee: Node | None
    failure: Failure | None
    round_trip: float
    variance: float = 0.0
    lost: float = 0.0
    """Share of calls without a response, after all retransmissions."""
    address: str = ""
    port: int = 0


@dataclass(slots=True, eq=False)
class Target:
    """A dependency of an instance, with its numbers resolved."""

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
    """Its connection pool's queue, where the pool has a limit."""


@dataclass(slots=True, eq=False)
class Call:
    """A call that a node makes, with its possible paths."""

    caller: Node
    target: Target
    step: Step
    operation: str
    ordinal: int
    """Its position among the calls of its node."""
    times: float
    share: float
    links: list[Link] = field(default_factory=list)
    cache: CacheSpace | None = None
    """The call is made only for misses of this cache."""
    group: int = 0
    """Calls of one group run in parallel."""
    crashes: bool = False
    optional: bool = False
    forwards: bool = False
    """The caller is a proxy: it passes the request on, and the response back."""
    index: int = -1

    @property
    def key(self) -> CallKey:
        return (*self.caller.key, self.ordinal)


@dataclass(slots=True, eq=False)
class CacheSpace:
    """The keys that one kind of request looks up; the store that holds them has the share that is cached."""

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

    def miss_share(self) -> float:
        """Return the share of requests with at least one miss; 1 where no store is reachable."""
        stores = self.stores
        if not stores:
            return 1.0
        warm_shares = sum(store.warm_shares.get(self.name, 0.0) for store in stores) / len(stores)
        return float(1.0 - warm_shares**self.keys)


@dataclass(slots=True, eq=False)
class Pause:
    """A pause of a program."""

    seconds: float


@dataclass(slots=True, eq=False)
class Parallel:
    """Branches that run in parallel."""

    branches: tuple[tuple[Action, ...], ...]


@dataclass(slots=True, eq=False)
class OnMiss:
    """Actions for misses of a cache."""

    cache: CacheSpace
    plan: tuple[Action, ...]


Action = Call | Pause | Parallel | OnMiss


@dataclass(slots=True)
class Graph:
    """The whole call graph, in the order of the arrays."""

    nodes: list[Node]
    calls: list[Call]
    targets: list[Target]
    servers: list[Server]
    caches: list[CacheSpace]
    roots: Sequence[Node]
    watched: list[tuple[object, int]]
    """Server models whose state is built into the graph, with the epoch they had."""
