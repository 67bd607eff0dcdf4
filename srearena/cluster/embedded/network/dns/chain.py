"""The chain of plugins: each may reply, change the question, or pass it on and change the reply.

A handler belongs to one loaded configuration and may have state (a cache does); a reload creates new ones.
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
"""How deep the lookups that one question causes may nest."""


@dataclass(frozen=True, slots=True)
class NoReply:
    """A query to another name server that got no reply."""

    outcome: Outcome
    seconds: float


class ServerContext(Protocol):
    """What plugins use of the running name server."""

    @property
    def clock(self) -> Clock: ...

    @property
    def random(self) -> Random: ...

    @property
    def records(self) -> ClusterRecords: ...

    @property
    def address(self) -> str: ...

    def is_synced(self) -> bool:
        """Whether the server has listed the cluster's Services from the API."""
        ...

    def query(self, server: str, port: int, question: Question) -> Reply | NoReply:
        """Query another name server."""
        ...

    def log(self, line: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question and its context in the chain."""

    question: Question
    client: str
    server: ServerContext
    lookup: Callable[[Question, Exchange], Reply]
    """Resolves a further question through the whole chain."""
    depth: int = 0

    def with_question(self, question: Question) -> Exchange:
        return replace(self, question=question)

    def look_up(self, name: str, kind: str) -> Reply:
        """The server's own reply for another name, for plugins that follow aliases."""
        if self.depth >= MAX_LOOKUPS:
            return Reply("SERVFAIL", error="too many lookups")
        return self.lookup(Question(name, kind), replace(self, depth=self.depth + 1))


NextHandler = Callable[[Exchange], Reply]


class Handler:
    def serve(self, exchange: Exchange, next_handler: NextHandler) -> Reply:
        return next_handler(exchange)


@dataclass(frozen=True, slots=True)
class SetupContext:
    """The server block, for the setup of a plugin."""

    zones: tuple[str, ...]
    read: Reader


Setup = Callable[[Cursor, SetupContext], "Handler | None"]


@dataclass(frozen=True, slots=True)
class Fallthrough:
    """The names for which a missing record is left to the next plugin."""

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


def zones_of(names: list[str], context: SetupContext) -> tuple[str, ...]:
    """The zones in the arguments of a plugin, or those of its server block."""
    return tuple(zone_name(name) for name in names) or context.zones
