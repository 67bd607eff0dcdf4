"""How plugins hang together: each may answer, change the question, or pass it on and change the answer.

A handler belongs to one loaded configuration and may keep state (a cache does); a reload makes new ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Protocol

from srearena.cluster.embedded.clock import Clock
from srearena.cluster.embedded.machine.networking.reachability import Outcome
from srearena.cluster.embedded.network.dns.caddyfile import Cursor, Reader
from srearena.cluster.embedded.network.dns.messages import Question, Reply, is_within, qualified
from srearena.cluster.embedded.network.dns.records import ClusterRecords

MAX_LOOKUPS = 8
"""How often answering one question may lead to another one."""


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A name server that was asked and gave no answer."""

    outcome: Outcome
    seconds: float


class Surroundings(Protocol):
    """What a running name server has around it."""

    @property
    def clock(self) -> Clock: ...

    @property
    def random(self) -> Random: ...

    @property
    def records(self) -> ClusterRecords: ...

    @property
    def address(self) -> str: ...

    def cluster_known(self) -> bool:
        """Whether the server has learnt the cluster's Services from the API."""
        ...

    def ask(self, server: str, port: int, question: Question) -> Reply | Unanswered:
        """Ask another name server."""
        ...

    def log(self, line: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question on its way through the plugins."""

    question: Question
    client: str
    around: Surroundings
    lookup: Callable[[Question, Exchange], Reply]
    """Asks the whole server a further question."""
    depth: int = 0

    def asking(self, question: Question) -> Exchange:
        return replace(self, question=question)

    def look_up(self, name: str, kind: str) -> Reply:
        """What the server itself says about another name, as a plugin needs to know it."""
        if self.depth >= MAX_LOOKUPS:
            return Reply("SERVFAIL", error="too many lookups")
        return self.lookup(Question(name, kind), replace(self, depth=self.depth + 1))


Following = Callable[[Exchange], Reply]


class Handler:
    def serve(self, exchange: Exchange, following: Following) -> Reply:
        return following(exchange)


@dataclass(frozen=True, slots=True)
class Building:
    """What a plugin's setup may know about the server block it is in."""

    zones: tuple[str, ...]
    read: Reader


Setup = Callable[[Cursor, Building], "Handler | None"]


@dataclass(frozen=True, slots=True)
class Fallthrough:
    """For which names an answer that is not there is left to the next plugin."""

    zones: tuple[str, ...] | None = None

    def through(self, name: str) -> bool:
        return self.zones is not None and any(is_within(name, zone) for zone in self.zones)

    @classmethod
    def of(cls, names: list[str]) -> Fallthrough:
        return cls(tuple(zone_name(name) for name in names) or (".",))


NO_FALLTHROUGH = Fallthrough()


def zone_name(text: str) -> str:
    """A zone as written in a Corefile: a name, or a range of addresses that means its reverse zone."""
    address, slash, bits = text.partition("/")
    if slash and bits.isdigit() and address.count(".") == 3:
        keep = max(1, min(4, int(bits) // 8))
        return ".".join(reversed(address.split(".")[:keep])) + ".in-addr.arpa."
    return qualified(text)


def zones_of(names: list[str], building: Building) -> tuple[str, ...]:
    """The zones a plugin was given, or those of its server block."""
    return tuple(zone_name(name) for name in names) or building.zones
