"""Resources of connections: entries in a node's connection tracking table, and local ports of a client.

Both are finite. A node whose table is full drops the first packet of every new flow; a client without a free port
for a peer cannot connect. Entries outlive their connections as in the kernel. A load model, which does not open its
flows one by one, declares their number with `carry`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from srearena.cluster.embedded.clock import Clock
from srearena.cluster.embedded.machine.networking.sockets import NetworkNamespace
from srearena.cluster.embedded.network.hosts import Host
from srearena.cluster.embedded.objects import Obj, dig

DEFAULT_TRACKED = 131_072
DEFAULT_PORTS = (32_768, 60_999)
PORT_RANGE_SYSCTL = "net.ipv4.ip_local_port_range"
TIME_WAIT = 60.0
"""How long a closed connection keeps its local port."""
TRACKED_AFTER = {"TCP": 120.0, "UDP": 30.0, "SCTP": 120.0}
"""How long a tracking entry outlives the last packet of its flow."""

Destination = tuple[str, int, str]


@dataclass(slots=True)
class Tracking:
    """The connection tracking table of a node, by numbers."""

    limit: int = DEFAULT_TRACKED
    open: int = 0
    dropped: int = 0
    """Flows refused because the table was full."""
    carried: dict[str, int] = field(default_factory=dict)
    _fading: deque[tuple[float, int]] = field(default_factory=deque)
    _faded: int = 0

    def count(self, now: float) -> int:
        while self._fading and self._fading[0][0] <= now:
            self._faded -= self._fading.popleft()[1]
        return self.open + self._faded + sum(self.carried.values())

    def is_full(self, now: float) -> bool:
        return self.count(now) >= self.limit

    def fade(self, until: float) -> None:
        """Let the entry of an ended flow expire at `until`."""
        self.open -= 1
        self._fading.append((until, 1))
        self._faded += 1

    def relief_at(self) -> float:
        """The next time at which an entry expires."""
        return self._fading[0][0] if self._fading else float("inf")


@dataclass(slots=True)
class LocalPorts:
    """The local ports of one network namespace, by the peer they are used for."""

    first: int = DEFAULT_PORTS[0]
    last: int = DEFAULT_PORTS[1]
    used: dict[Destination, int] = field(default_factory=dict)
    carried: dict[Destination, int] = field(default_factory=dict)
    waiting: dict[Destination, deque[float]] = field(default_factory=dict)
    next: int = 0

    @property
    def size(self) -> int:
        return max(0, self.last - self.first + 1)

    def free(self, peer: Destination, now: float) -> int:
        """Ports left for connections to that peer."""
        waiting = self.waiting.get(peer)
        if waiting:
            while waiting and waiting[0] <= now:
                waiting.popleft()
            if not waiting:
                del self.waiting[peer]
        return self.size - self.used.get(peer, 0) - len(waiting or ()) - self.carried.get(peer, 0)

    def take(self, peer: Destination, now: float) -> int | None:
        if self.free(peer, now) <= 0:
            return None
        self.used[peer] = self.used.get(peer, 0) + 1
        port = self.first + self.next % self.size
        self.next += 1
        return port

    def release(self, peer: Destination, now: float, linger: float) -> None:
        left = self.used.get(peer, 0) - 1
        if left > 0:
            self.used[peer] = left
        else:
            self.used.pop(peer, None)
        if linger:
            self.waiting.setdefault(peer, deque()).append(now + linger)


@dataclass(slots=True)
class Flow:
    """The table entries and the port of one connection; `end` releases them, once."""

    flows: Flows
    source: Host
    peer: Destination
    local_port: int
    nodes: tuple[str, ...] = ()
    """Nodes with a tracking entry for it."""
    ended: bool = False

    def undo(self) -> None:
        """Release everything at once: the flow was a prediction."""
        if not self.ended:
            self.ended = True
            self.flows.undone(self)

    def end(self, *, linger: bool = True) -> None:
        """Release a closed connection; with `linger` this side closed it, and its port stays in TIME_WAIT."""
        if not self.ended:
            self.ended = True
            self.flows.ended(self, linger)


class Flows:
    def __init__(self, clock: Clock, changed: Callable[[], object]) -> None:
        self._clock = clock
        self._changed = changed
        self._tables: dict[str, Tracking] = {}
        self._ports: dict[NetworkNamespace, tuple[Host, LocalPorts]] = {}

    # Connection tracking

    def table(self, node: str) -> Tracking:
        found = self._tables.get(node)
        if found is None:
            found = self._tables[node] = Tracking()
        return found

    def set_limit(self, node: str, limit: int) -> None:
        """The node's net.netfilter.nf_conntrack_max."""
        self.table(node).limit = limit
        self._changed()

    def carry(self, node: str, purpose: str, flows: int) -> None:
        """Declare how many entries of a node's table a load model occupies."""
        table = self.table(node)
        was_full = table.is_full(self._clock.now)
        if flows > 0:
            table.carried[purpose] = flows
        else:
            table.carried.pop(purpose, None)
        if was_full != table.is_full(self._clock.now):
            self._changed()

    def admits(self, node: str) -> bool:
        table = self._tables.get(node)
        return table is None or not table.is_full(self._clock.now)

    def relief_at(self, *nodes: str) -> float:
        return min((self._tables[node].relief_at() for node in nodes if node in self._tables), default=float("inf"))

    # Local ports

    def ports(self, host: Host) -> LocalPorts:
        """The ports of a host; those that share a network namespace share them."""
        found = self._ports.get(host.sockets)
        if found is None:
            found = self._ports[host.sockets] = (host, LocalPorts())
        return found[1]

    def set_port_range(self, host: Host, first: int, last: int) -> None:
        ports = self.ports(host)
        ports.first, ports.last = first, last
        self._changed()

    def configure(self, host: Host, pod: Obj) -> None:
        """Apply the sysctls of a pod."""
        for setting in dig(pod, "spec", "securityContext", "sysctls", default=()):
            if setting.get("name") == PORT_RANGE_SYSCTL:
                numbers = [int(word) for word in str(setting.get("value", "")).split() if word.isdigit()]
                if len(numbers) == 2:
                    self.set_port_range(host, *numbers)

    def forget(self, host: Host) -> None:
        entry = self._ports.get(host.sockets)
        if entry is not None and entry[0] is host:
            del self._ports[host.sockets]

    # Flows

    def begin(self, source: Host, peer: Destination) -> Flow | None:
        """Allocate a local port for a new connection; None where the source has none left for that peer."""
        port = self.ports(source).take(peer, self._clock.now)
        return Flow(self, source, peer, port) if port is not None else None

    def track(self, flow: Flow, *nodes: str) -> None:
        """Add tracking entries on the nodes that the connection passes."""
        flow.nodes = tuple(dict.fromkeys(node for node in nodes if node))
        for node in flow.nodes:
            table = self.table(node)
            table.open += 1
            if table.is_full(self._clock.now):
                self._changed()

    def undone(self, flow: Flow) -> None:
        self.ports(flow.source).release(flow.peer, self._clock.now, 0)
        for node in flow.nodes:
            table = self.table(node)
            was_full = table.is_full(self._clock.now)
            table.open -= 1
            if was_full != table.is_full(self._clock.now):
                self._changed()

    def ended(self, flow: Flow, linger: bool) -> None:
        now = self._clock.now
        self.ports(flow.source).release(flow.peer, now, TIME_WAIT if linger and flow.peer[2] == "TCP" else 0)
        for node in flow.nodes:
            self.table(node).fade(now + TRACKED_AFTER.get(flow.peer[2], 120.0))
