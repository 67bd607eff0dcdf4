"""The stub resolver of a pod: the queries its C library sends to name servers until one replies.

Timeouts, attempts, search list and the order of name servers are those of resolv.conf; the time a query takes is that
of its packets on the network.
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
"""Seconds a name server needs to reply from memory (chosen: CoreDNS replies in a fraction of a millisecond)."""

NameServer = Callable[[Question, str], "Reply | None"]
"""Replies to the question of a client; None where it does not reply."""
_STATUS = {status.value: status for status in DnsStatus}


class NameServers:
    """The listeners that are name servers."""

    def __init__(self) -> None:
        self._servers: dict[Listener, NameServer] = {}

    def serve(self, listener: Listener, server: NameServer) -> None:
        self._servers = {other: handler for other, handler in self._servers.items() if other.open}
        self._servers[listener] = server

    def at(self, listener: Listener | None) -> NameServer | None:
        return self._servers.get(listener) if listener is not None and listener.open else None


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The result of one question to all servers: a reply, or the failure of the last of them."""

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
            in_file = [a for a in hosts.get(name.lower().rstrip("."), ()) if address_kind(a) == kind]
            if in_file:
                full = name.rstrip(".")
                return Resolution(DnsStatus.NOERROR, full, tuple(DnsRecord(full, kind, a, 0) for a in in_file))
        candidates = settings.candidates(name) if search else [qualified(name)]
        servers = (server,) if server is not None else settings.nameservers
        nothing: Resolution | None = None
        failing: Resolution | None = None
        for full in candidates:
            if not is_name(full):
                continue
            full = full.lower()
            result = yield from self.query(source, servers, Question(full, kind), settings)
            if result.reply is None:
                failing = Resolution(DnsStatus.TIMEOUT, full, (), result.server, False, result.failure)
                if result.failure is not Outcome.TIMEOUT or full == candidates[-1]:
                    return failing
                # After a timeout the search list is abandoned, but the name itself is still tried.
                full = candidates[-1]
                result = yield from self.query(source, servers, Question(full, kind), settings)
                if result.reply is None:
                    return failing
            found = _resolution(full, kind, result)
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

    def query(
        self, source: Host, servers: tuple[str, ...], question: Question, settings: ResolverSettings
    ) -> Waits[QueryResult]:
        """Query the servers in turn, as often as the settings say."""
        last = QueryResult(None, servers[-1] if servers else "", Outcome.TIMEOUT)
        for _ in range(settings.attempts):
            for number, address in enumerate(servers):
                patience = settings.timeout
                if number:
                    patience = max(1.0, settings.timeout * 2**number / len(servers))
                last = yield from self._query_one(source, address, question, patience)
                if last.reply is not None and last.reply.rcode in (NOERROR, NXDOMAIN):
                    return last
        return last

    def _query_one(self, source: Host, address: str, question: Question, patience: float) -> Waits[QueryResult]:
        path, arrived = yield from self._dialer.send(source, address, DNS_PORT)
        if not arrived and path.outcome not in (Outcome.TIMEOUT, Outcome.CONNECTED):
            return QueryResult(None, address, path.outcome)
        server = self._servers.at(path.listener) if arrived else None
        if server is not None:
            reply = server(question, path.source)
            if reply is not None and reply.seconds + SERVER_TIME <= 2 * patience:
                # A late reply is still accepted: the repeated query has the same ID.
                yield reply.seconds + SERVER_TIME
                return QueryResult(reply, address)
        yield patience
        return QueryResult(None, address, Outcome.TIMEOUT)


def _resolution(full: str, kind: str, result: QueryResult) -> Resolution:
    reply = result.reply
    assert reply is not None
    status = _STATUS.get(reply.rcode, DnsStatus.SERVFAIL)
    return Resolution(status, full, _chained(full, kind, reply), result.server, reply.authoritative)


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
