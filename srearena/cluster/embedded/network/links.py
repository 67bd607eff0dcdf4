"""Links between hosts and what can be wrong with them, as `tc netem` and a pulled cable would have it.

An `Impairment` says what happens to packets that go from one set of hosts to another. It is state, set and taken
away by whoever injects faults; what a client sees of it (slow answers, retransmissions, timeouts) is worked out
where packets travel. Impairments on one way add up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import count

from srearena.cluster.embedded.network.addresses import within
from srearena.cluster.embedded.network.hosts import Host, HostKind


@dataclass(frozen=True, slots=True)
class Scope:
    """A set of hosts: everything that one of the lists names; with all lists empty, everything there is."""

    pods: frozenset[str] = frozenset()
    """`namespace/name`."""
    nodes: frozenset[str] = frozenset()
    """Nodes, with all that runs on them."""
    ranges: tuple[str, ...] = ()
    """CIDRs; for what is outside the cluster these are the only names."""

    @classmethod
    def of(cls, *, pods: Iterable[str] = (), nodes: Iterable[str] = (), ranges: Iterable[str] = ()) -> Scope:
        return cls(frozenset(pods), frozenset(nodes), tuple(ranges))

    @property
    def is_everything(self) -> bool:
        return not (self.pods or self.nodes or self.ranges)

    def holds(self, host: Host | None, address: str) -> bool:
        """Whether a host, or an address where no host is, belongs to the set."""
        if self.is_everything:
            return True
        if host is not None:
            if host.node and host.node in self.nodes:
                return True
            if host.kind is HostKind.POD and f"{host.pod_namespace}/{host.pod_name}" in self.pods:
                return True
        return any(within(address, cidr) for cidr in self.ranges)


EVERYTHING = Scope()


@dataclass(frozen=True, slots=True)
class Quality:
    """How packets fare in one direction. The default is a healthy link."""

    delay: float = 0.0
    """Seconds added to every packet."""
    jitter: float = 0.0
    """Seconds by which the delay varies, up or down."""
    loss: float = 0.0
    """Share of packets that never arrive, 0 to 1."""
    corruption: float = 0.0
    """Share of packets that arrive damaged; checksums make them lost ones."""
    duplication: float = 0.0
    """Share of packets that arrive twice."""
    bandwidth: float = 0.0
    """Bytes a second; 0 for no limit."""
    largest: int = 0
    """Bytes that pass in one go; what is bigger vanishes, as in a black hole of path MTU discovery. 0 for no limit."""
    cut: bool = False
    """Nothing passes."""

    @property
    def lost(self) -> float:
        """Share of packets that do not arrive in one piece."""
        return 1.0 if self.cut else 1 - (1 - self.loss) * (1 - self.corruption)

    @property
    def is_healthy(self) -> bool:
        return self == HEALTHY

    def and_then(self, other: Quality) -> Quality:
        limits = [limit for limit in (self.bandwidth, other.bandwidth) if limit]
        return Quality(
            self.delay + other.delay,
            self.jitter + other.jitter,
            1 - (1 - self.loss) * (1 - other.loss),
            1 - (1 - self.corruption) * (1 - other.corruption),
            1 - (1 - self.duplication) * (1 - other.duplication),
            min(limits, default=0.0),
            min((size for size in (self.largest, other.largest) if size), default=0),
            self.cut or other.cut,
        )


HEALTHY = Quality()


@dataclass(frozen=True, slots=True)
class Impairment:
    """What happens to packets from `source` to `target`, and with `both_ways` also to those coming back."""

    quality: Quality
    source: Scope = EVERYTHING
    target: Scope = EVERYTHING
    both_ways: bool = False
    ports: frozenset[int] = frozenset()
    """Only flows to one of these ports are hit; empty for all."""
    protocol: str = ""

    def applies(self, source: Host | None, source_address: str, target: Host | None, address: str) -> bool:
        if self.source.holds(source, source_address) and self.target.holds(target, address):
            return True
        return self.both_ways and self.source.holds(target, address) and self.target.holds(source, source_address)


@dataclass(slots=True)
class Links:
    """Every impairment in force, by the number it was given."""

    changed: Callable[[], object]
    _impairments: dict[int, Impairment] = field(default_factory=dict)
    _numbers: count[int] = field(default_factory=lambda: count(1))

    def impair(self, impairment: Impairment) -> int:
        """Put an impairment in force; the number takes it back."""
        number = next(self._numbers)
        self._impairments[number] = impairment
        self.changed()
        return number

    def partition(self, one: Scope, other: Scope = EVERYTHING) -> int:
        """Let nothing pass between two sets, either way."""
        return self.impair(Impairment(replace(HEALTHY, cut=True), one, other, both_ways=True))

    def repair(self, number: int) -> None:
        """Take an impairment away; one that is gone already is no error."""
        if self._impairments.pop(number, None) is not None:
            self.changed()

    def qualities(
        self, source: Host, target: Host | None, address: str, port: int, protocol: str
    ) -> tuple[Quality, Quality]:
        """How packets of a flow fare from a host to another (or to an address), and how the answers fare.

        Nothing disturbs a host's talk to itself.
        """
        there = back = HEALTHY
        if source is target or not self._impairments:
            return there, back
        for impairment in self._impairments.values():
            if impairment.ports and port not in impairment.ports:
                continue
            if impairment.protocol and impairment.protocol != protocol:
                continue
            if impairment.applies(source, source.address, target, address):
                there = there.and_then(impairment.quality)
            if impairment.applies(target, address, source, source.address):
                back = back.and_then(impairment.quality)
        return there, back
