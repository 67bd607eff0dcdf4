"""Forecasts: the expected results of connections, for load models that open thousands of them a second.

A forecast is cached until the epoch advances or it expires; a cached one costs one dictionary lookup. It has every
path with equal weight, and the mean cost of resolving the name.
"""

from __future__ import annotations

from dataclasses import dataclass

from srearena.cluster.embedded.machine.networking.reachability import Outcome
from srearena.cluster.embedded.machine.networking.sockets import Listener
from srearena.cluster.embedded.network.addresses import is_address
from srearena.cluster.embedded.network.dns.messages import NOERROR, NXDOMAIN, Question, Reply, is_name
from srearena.cluster.embedded.network.fabric import Fabric
from srearena.cluster.embedded.network.hosts import Host
from srearena.cluster.embedded.network.resolv import ResolverSettings
from srearena.cluster.embedded.network.resolver import DNS_PORT, SERVER_TIME, NameServers
from srearena.cluster.embedded.network.routes import Path, Route

FOREVER = float("inf")
ServerReply = tuple[Listener, str, str]
"""The server's socket, the type of the question, and the response code."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """The expected result and cost of resolving a name."""

    outcome: Outcome
    """CONNECTED where there are addresses."""
    addresses: tuple[str, ...]
    seconds: float
    """Mean time until the response, or until the resolver gives up."""
    failing: float = 0.0
    """Share of lookups that time out."""
    expires: float = FOREVER
    replies: tuple[tuple[ServerReply, ...], ...] = ()
    """By question: the replies of the servers that it may reach, which are equally likely."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """Where connections to a host and port end."""

    lookup: Lookup
    paths: tuple[Path, ...]
    """Equally likely; empty where the name does not resolve."""
    route: Route | None
    """For the first address."""
    expires: float

    @property
    def outcome(self) -> Outcome:
        """How most connections end."""
        if not self.paths:
            return self.lookup.outcome
        connected = sum(path.outcome is Outcome.CONNECTED for path in self.paths)
        return Outcome.CONNECTED if 2 * connected >= len(self.paths) else self.paths[0].outcome


class Forecasts:
    def __init__(self, fabric: Fabric, servers: NameServers) -> None:
        self._fabric = fabric
        self._servers = servers
        self._forecasts: dict[tuple[Host, str, int, str], Forecast] = {}
        self._replies: dict[tuple[Listener, Question], Reply] = {}
        self._epoch = -1

    def cached(self, source: Host, host: str, port: int, protocol: str) -> Forecast | None:
        """The cached forecast, where it is still valid."""
        fabric = self._fabric
        if self._epoch != fabric.epoch:
            self._forecasts.clear()
            self._replies.clear()
            self._epoch = fabric.epoch
            return None
        found = self._forecasts.get((source, host, port, protocol))
        return found if found is not None and found.expires > fabric.clock.now else None

    def make(
        self,
        source: Host,
        host: str,
        port: int,
        protocol: str,
        settings: ResolverSettings,
        hosts: dict[str, tuple[str, ...]],
    ) -> Forecast:
        """Compute a forecast and cache it."""
        found = self._compute(source, host, port, protocol, self.lookup(source, host, settings, hosts))
        self._forecasts[(source, host, port, protocol)] = found
        return found

    def _compute(self, source: Host, host: str, port: int, protocol: str, lookup: Lookup) -> Forecast:
        if not lookup.addresses:
            return Forecast(lookup, (), None, lookup.expires)
        routes = [self._fabric.routes.find(source, address, port, protocol) for address in lookup.addresses]
        paths = tuple(path for route in routes for path in route.paths)
        expires = min(lookup.expires, *(route.expires for route in routes))
        return Forecast(lookup, paths, routes[0], expires)

    def lookup(self, source: Host, name: str, settings: ResolverSettings, hosts: dict[str, tuple[str, ...]]) -> Lookup:
        if is_address(name):
            return Lookup(Outcome.CONNECTED, (name,), 0.0)
        addresses = hosts.get(name.lower().rstrip("."))
        if addresses:
            return Lookup(Outcome.CONNECTED, addresses[:1], 0.0)
        seconds, failing, expires = 0.0, 0.0, FOREVER
        replies: tuple[tuple[ServerReply, ...], ...] = ()
        outcome = Outcome.NXDOMAIN
        for full in settings.candidates(name):
            if not is_name(full):
                continue
            reply, cost, silent, replied = self._query(source, settings, Question(full.lower()))
            replies += (replied,) if replied else ()
            seconds += cost
            failing = 1 - (1 - failing) * (1 - silent)
            if reply is None:
                return Lookup(Outcome.DNS_FAILURE, (), seconds, 1.0, expires, replies)
            expires = min(expires, reply.expires)
            if reply.rcode not in (NOERROR, NXDOMAIN):
                outcome = Outcome.DNS_FAILURE
            addresses = tuple(record.value for record in reply.records if record.kind == "A")
            if reply.rcode == NOERROR and addresses:
                return Lookup(Outcome.CONNECTED, addresses, seconds, failing, expires, replies)
        return Lookup(outcome, (), seconds, failing, expires, replies)

    def _reply(self, path: Path, question: Question) -> Reply | None:
        """The reply of the server at the end of a path, cached while nothing changes."""
        server = self._servers.at(path.listener)
        if server is None or path.listener is None:
            return None
        key = (path.listener, question)
        found = self._replies.get(key)
        if found is None or found.expires <= self._fabric.clock.now:
            found = server(question, path.source)
            if found is not None:
                self._replies[key] = found
        return found

    def _query(
        self, source: Host, settings: ResolverSettings, question: Question
    ) -> tuple[Reply | None, float, float, tuple[ServerReply, ...]]:
        """The first reply of a server, the mean time it takes, the share of queries without reply, and all replies."""
        silent, seconds = 1.0, 0.0
        replied: list[ServerReply] = []
        answer: Reply | None = None
        for address in settings.nameservers:
            route = self._fabric.routes.find(source, address, DNS_PORT, "UDP")
            lost, cost = 0.0, 0.0
            for path in route.paths:
                reply = self._reply(path, question)
                answer = answer or reply
                if reply is not None and path.listener is not None:
                    replied.append((path.listener, question.kind, reply.rcode))
                gone = 1.0 if reply is None else path.lost
                lost += gone / len(route.paths)
                waits = settings.timeout if path.outcome in (Outcome.TIMEOUT, Outcome.CONNECTED) else path.round_trip
                taken = path.round_trip + path.forward.delay + path.reverse.delay + SERVER_TIME
                cost += (gone * waits + (1 - gone) * taken) / len(route.paths)
            seconds += silent * cost
            silent *= lost
        if answer is None:
            return None, seconds * settings.attempts, 1.0, ()
        repeats = sum(silent**number for number in range(settings.attempts))
        return answer, seconds * repeats + answer.seconds, silent**settings.attempts, tuple(replied)
