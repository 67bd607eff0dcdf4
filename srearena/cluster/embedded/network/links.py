"""Links between hosts and their impairments, like those of `tc netem` or an unplugged cable.

An `Impairment` applies to packets from one set of hosts to another. Fault injection adds and removes it; its effects on
clients (slow responses, retransmissions, timeouts) are computed where packets are sent. Impairments on one path add up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import count

from srearena.cluster.embedded.network.addresses import within
from srearena.cluster.embedded.network.hosts import Host, HostKind


@dataclass(frozen=True, slots=True)
class Scope:
    """A set of hosts: those that one of the lists names; with all lists empty, all hosts."""

    pods: frozenset[str] = frozenset()
    """`namespace/name`."""
    nodes: frozenset[str] = frozenset()
    """Nodes, with all that runs on them."""
    ranges: tuple[str, ...] = ()
    """CIDRs; external hosts can only be named by them."""

    @classmethod
    def of(cls, *, pods: Iterable[str] = (), nodes: Iterable[str] = (), ranges: Iterable[str] = ()) -> Scope:
        return cls(frozenset(pods), frozenset(nodes), tuple(ranges))

    @property
    def is_everything(self) -> bool:
        return not (self.pods or self.nodes or self.ranges)

    def holds(self, host: Host | None, address: str) -> bool:
        """Whether a host, or an address without host, belongs to the set."""
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
    """The quality of one direction of a link. The default is a healthy link."""

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
    """The largest packet in bytes; larger ones are dropped, as by a path MTU black hole. 0 for no limit."""
    cut: bool = False
    """Nothing passes."""

    @property
    def lost(self) -> float:
        """Share of packets that do not arrive intact."""
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
    """The quality of packets from `source` to `target`, and with `both_ways` also of those in reverse."""

    quality: Quality
    source: Scope = EVERYTHING
    target: Scope = EVERYTHING
    both_ways: bool = False
    ports: frozenset[int] = frozenset()
    """Only flows to one of these ports are affected; empty for all."""
    protocol: str = ""

    def applies(self, source: Host | None, source_address: str, target: Host | None, address: str) -> bool:
        if self.source.holds(source, source_address) and self.target.holds(target, address):
            return True
        return self.both_ways and self.source.holds(target, address) and self.target.holds(source, source_address)


@dataclass(slots=True)
class Links:
    """The active impairments, by number."""

    changed: Callable[[], object]
    _impairments: dict[int, Impairment] = field(default_factory=dict)
    _numbers: count[int] = field(default_factory=lambda: count(1))

    def impair(self, impairment: Impairment) -> int:
        """Add an impairment; the number is for `repair`."""
        number = next(self._numbers)
        self._impairments[number] = impairment
        self.changed()
        return number

    def partition(self, one: Scope, other: Scope = EVERYTHING) -> int:
        """Drop all packets between two sets, in both directions."""
        return self.impair(Impairment(replace(HEALTHY, cut=True), one, other, both_ways=True))

    def repair(self, number: int) -> None:
        """Remove an impairment; one already removed is no error."""
        if self._impairments.pop(number, None) is not None:
            self.changed()

    def qualities(
        self, source: Host, target: Host | None, address: str, port: int, protocol: str
    ) -> tuple[Quality, Quality]:
        """The qualities of a flow from a host to another (or to an address), forward and in reverse.

        Traffic of a host with itself is never impaired.
        """
        forward = reverse = HEALTHY
        if source is target or not self._impairments:
            return forward, reverse
        for impairment in self._impairments.values():
            if impairment.ports and port not in impairment.ports:
                continue
            if impairment.protocol and impairment.protocol != protocol:
                continue
            if impairment.applies(source, source.address, target, address):
                forward = forward.and_then(impairment.quality)
            if impairment.applies(target, address, source, source.address):
                reverse = reverse.and_then(impairment.quality)
        return forward, reverse


def netem_text(quality: Quality) -> str:
    """Return the parameters of `tc netem` that give this quality; empty for a healthy link."""
    parts: list[str] = []
    if quality.delay:
        jitter = f"  {_milliseconds(quality.jitter)}" if quality.jitter else ""
        parts.append(f"delay {_milliseconds(quality.delay)}{jitter}")
    if quality.loss:
        parts.append(f"loss {quality.loss * 100:g}%")
    if quality.corruption:
        parts.append(f"corrupt {quality.corruption * 100:g}%")
    if quality.bandwidth:
        parts.append(f"rate {quality.bandwidth * 8 / 1000:g}Kbit")
    return " ".join(parts)


def _milliseconds(seconds: float) -> str:
    return f"{seconds:g}s" if seconds >= 1 else f"{seconds * 1000:g}ms"
