"""A running CoreDNS: serves one loaded configuration from the host of its pod."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from random import Random

from srearena.cluster.embedded.clock import Clock
from srearena.cluster.embedded.machine.exporter import Sample
from srearena.cluster.embedded.machine.networking.reachability import Outcome
from srearena.cluster.embedded.network.dialer import Dialer, elapse
from srearena.cluster.embedded.network.dns.chain import Exchange, NoReply
from srearena.cluster.embedded.network.dns.corefile import Configuration
from srearena.cluster.embedded.network.dns.forward import Forwards
from srearena.cluster.embedded.network.dns.messages import Question, Reply, is_name
from srearena.cluster.embedded.network.dns.records import ClusterRecords
from srearena.cluster.embedded.network.fabric import Fabric
from srearena.cluster.embedded.network.hosts import Host
from srearena.cluster.embedded.network.resolver import SERVER_TIME, NameServers

MAX_NESTING = 8
"""How deep servers may query each other: a forwarding loop ends without reply."""
_SERVER = {"server": "dns://:53", "zone": "."}


class CoreDns:
    """Implements `ServerContext` for the plugins of its configuration."""

    def __init__(
        self,
        fabric: Fabric,
        records: ClusterRecords,
        dialer: Dialer,
        servers: NameServers,
        host: Host,
        configuration: Configuration,
        random: Random,
        log: Callable[[str], object] = lambda line: None,
    ) -> None:
        self._fabric = fabric
        self._records = records
        self._dialer = dialer
        self._servers = servers
        self._host = host
        self._configuration = configuration
        self._random = random
        self._log = log
        self._nesting = 0
        self.synced = True
        """Whether the server has listed the cluster's Services from the API."""
        self.requests: Counter[tuple[str, str]] = Counter()
        """Number of queries, by type and response code."""

    @property
    def configuration(self) -> Configuration:
        return self._configuration

    @configuration.setter
    def configuration(self, configuration: Configuration) -> None:
        """Reload: caches start empty, and forecasts made so far are invalid."""
        self._configuration = configuration
        self._fabric.move_epoch()

    # ServerContext

    @property
    def clock(self) -> Clock:
        return self._fabric.clock

    @property
    def random(self) -> Random:
        return self._random

    @property
    def records(self) -> ClusterRecords:
        return self._records

    @property
    def address(self) -> str:
        return self._host.address

    def is_synced(self) -> bool:
        return self.synced

    def log(self, line: str) -> None:
        self._log(line)

    def query(self, server: str, port: int, question: Question) -> Reply | NoReply:
        outcome, seconds = elapse(self._dialer.send(self._host, server, port))
        assert outcome is not None
        path, arrived = outcome
        if not arrived:
            lost = path.outcome is Outcome.CONNECTED
            return NoReply(Outcome.TIMEOUT if lost else path.outcome, seconds)
        other = self._servers.at(path.listener)
        if other is None or self._nesting >= MAX_NESTING:
            return NoReply(Outcome.TIMEOUT, seconds)
        self._nesting += 1
        try:
            reply = other(question, path.source)
            if reply is None:
                return NoReply(Outcome.TIMEOUT, seconds)
            return reply.later(seconds + SERVER_TIME)
        finally:
            self._nesting -= 1

    # Queries

    def name_server(self, port: int) -> Callable[[Question, str], Reply]:
        """The handler of one of the server's ports."""
        return lambda question, client: self.answer(port, question, client)

    def answer(self, port: int, question: Question, client: str) -> Reply:
        if not is_name(question.name):
            return Reply("FORMERR")

        def look_up(further: Question, exchange: Exchange) -> Reply:
            return self._configuration.answer(port, exchange.with_question(further))

        reply = self._configuration.answer(port, Exchange(question, client, self, look_up))
        self.requests[(question.kind, reply.rcode)] += 1
        return reply

    def metrics(self) -> Iterable[Sample]:
        """The samples of its prometheus plugin."""
        kinds: Counter[str] = Counter()
        rcodes: Counter[str] = Counter()
        for (kind, rcode), number in self.requests.items():
            kinds[kind] += number
            rcodes[rcode] += number
        for kind, number in sorted(kinds.items()):
            yield "coredns_dns_requests_total", {**_SERVER, "family": "1", "proto": "udp", "type": kind}, number
        for rcode, number in sorted(rcodes.items()):
            yield "coredns_dns_responses_total", {**_SERVER, "rcode": rcode}, number

    def looped_zone(self) -> str | None:
        """The zone whose queries are forwarded back to this server, if the loop plugin checks for that."""
        for server in self._configuration.servers:
            forwards = server.handlers.get("forward")
            if "loop" not in server.handlers or not isinstance(forwards, Forwards):
                continue
            for forward in forwards.forwards:
                for address, port in forward.targets:
                    route = self._fabric.routes.find(self._host, address, port, "UDP")
                    if any(path.host is self._host and path.listener is not None for path in route.paths):
                        return server.zone
        return None
