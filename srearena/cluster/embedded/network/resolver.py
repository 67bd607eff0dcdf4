"""The stub resolver of a pod: the questions its C library sends to name servers until one has an answer.

Timeouts, attempts, search list and the order of name servers are those of resolv.conf; a server that cannot be
reached costs what the network makes it cost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from srearena.cluster.embedded.machine.networking.reachability import DnsRecord, DnsStatus, Outcome, Resolution
from srearena.cluster.embedded.machine.networking.sockets import Listener
from srearena.cluster.embedded.network.addresses import is_address
from srearena.cluster.embedded.network.dialer import Dialer, Waits
from srearena.cluster.embedded.network.dns.messages import (
    NOERROR,
    NXDOMAIN,
    Question,
    Reply,
    address_kind,
    is_name,
    qualified,
)
from srearena.cluster.embedded.network.hosts import Host
from srearena.cluster.embedded.network.resolv import ResolverSettings

DNS_PORT = 53
SERVER_TIME = 0.0002
"""What a name server takes to answer from memory."""

NameServer = Callable[[Question, str], "Reply | None"]
"""Answers a question of a client; None where it keeps silent."""
_STATUS = {status.value: status for status in DnsStatus}


class NameServers:
    """Which listeners are name servers."""

    def __init__(self) -> None:
        self._servers: dict[Listener, NameServer] = {}

    def serve(self, listener: Listener, server: NameServer) -> None:
        self._servers = {known: kept for known, kept in self._servers.items() if known.open}
        self._servers[listener] = server

    def at(self, listener: Listener | None) -> NameServer | None:
        return self._servers.get(listener) if listener is not None and listener.open else None


@dataclass(frozen=True, slots=True)
class Answered:
    """What became of one question to all servers: an answer, or how the last of them failed."""

    reply: Reply | None
    server: str
    failure: Outcome | None = None


class Resolver:
    def __init__(self, dialer: Dialer, servers: NameServers) -> None:
        self._dialer = dialer
        self._servers = servers

    def resolve(
        self,
        source: Host,
        name: str,
        kind: str,
        settings: ResolverSettings,
        hosts: Mapping[str, tuple[str, ...]],
        *,
        search: bool = True,
        server: str | None = None,
    ) -> Waits[Resolution]:
        if is_address(name) and kind in ("A", "AAAA"):
            return Resolution(DnsStatus.NOERROR, name, (DnsRecord(name, address_kind(name), name, 0),))
        kind = kind.upper()
        if server is None and kind in ("A", "AAAA"):
            known = [a for a in hosts.get(name.lower().rstrip("."), ()) if address_kind(a) == kind]
            if known:
                full = name.rstrip(".")
                return Resolution(DnsStatus.NOERROR, full, tuple(DnsRecord(full, kind, a, 0) for a in known))
        candidates = settings.candidates(name) if search else [qualified(name)]
        servers = (server,) if server is not None else settings.nameservers
        nothing: Resolution | None = None
        failing: Resolution | None = None
        for full in candidates:
            if not is_name(full):
                continue
            full = full.lower()
            answered = yield from self.ask(source, servers, Question(full, kind), settings)
            if answered.reply is None:
                failing = Resolution(DnsStatus.TIMEOUT, full, (), answered.server, False, answered.failure)
                if answered.failure is not Outcome.TIMEOUT or full == candidates[-1]:
                    return failing
                # After a timeout the search is over, but the name as it stands is still tried.
                full = candidates[-1]
                answered = yield from self.ask(source, servers, Question(full, kind), settings)
                if answered.reply is None:
                    return failing
            found = _resolution(full, kind, answered)
            if any(kind in (record.kind, "ANY") for record in found.records):
                return found
            if found.status is DnsStatus.NOERROR:
                nothing = nothing or found
            elif found.status is not DnsStatus.NXDOMAIN:
                failing = found
            else:
                nothing = nothing if nothing is not None and nothing.status is DnsStatus.NOERROR else found
        if nothing is not None and (nothing.status is DnsStatus.NOERROR or failing is None):
            return nothing
        return failing or Resolution(DnsStatus.NXDOMAIN, qualified(name))

    def ask(
        self, source: Host, servers: tuple[str, ...], question: Question, settings: ResolverSettings
    ) -> Waits[Answered]:
        """Put one question to the servers, in turn, as often as the settings say."""
        last = Answered(None, servers[-1] if servers else "", Outcome.TIMEOUT)
        for _ in range(settings.attempts):
            for number, address in enumerate(servers):
                patience = settings.timeout
                if number:
                    patience = max(1.0, settings.timeout * 2**number / len(servers))
                last = yield from self._ask_one(source, address, question, patience)
                if last.reply is not None and last.reply.rcode in (NOERROR, NXDOMAIN):
                    return last
        return last

    def _ask_one(self, source: Host, address: str, question: Question, patience: float) -> Waits[Answered]:
        path, arrived = yield from self._dialer.send(source, address, DNS_PORT)
        if not arrived and path.outcome not in (Outcome.TIMEOUT, Outcome.CONNECTED):
            return Answered(None, address, path.outcome)
        server = self._servers.at(path.listener) if arrived else None
        if server is not None:
            reply = server(question, path.source)
            if reply is not None and reply.seconds + SERVER_TIME <= 2 * patience:
                # A late answer is still taken: the repeated question has the same number.
                yield reply.seconds + SERVER_TIME
                return Answered(reply, address)
        yield patience
        return Answered(None, address, Outcome.TIMEOUT)


def _resolution(full: str, kind: str, answered: Answered) -> Resolution:
    reply = answered.reply
    assert reply is not None
    status = _STATUS.get(reply.rcode, DnsStatus.SERVFAIL)
    return Resolution(status, full, _chained(full, kind, reply), answered.server, reply.authoritative)


def _chained(name: str, kind: str, reply: Reply) -> tuple[DnsRecord, ...]:
    """The records that answer the question: those of its name, and of the names it is an alias of."""
    if kind == "ANY":
        return reply.records
    names = {name}
    found: list[DnsRecord] = []
    for record in reply.records:
        if record.name in names:
            if record.kind == "CNAME" and kind != "CNAME":
                names.add(record.value)
                found.append(record)
            elif record.kind == kind:
                found.append(record)
    return tuple(found)
