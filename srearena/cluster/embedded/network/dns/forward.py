"""The forward plugin: queries to upstream name servers, with retries and health checks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import cycle

from srearena.cluster.embedded.machine.networking.reachability import Outcome
from srearena.cluster.embedded.network.addresses import is_address
from srearena.cluster.embedded.network.dns.caddyfile import CorefileError, Cursor
from srearena.cluster.embedded.network.dns.chain import Exchange, Handler, NextHandler, NoReply, SetupContext, zone_name
from srearena.cluster.embedded.network.dns.messages import Reply, failure, is_within


@dataclass
class Forward(Handler):
    """Forwards queries to upstream name servers."""

    origin: str
    targets: list[tuple[str, int]]
    policy: str = "random"
    exceptions: tuple[str, ...] = ()
    failing: set[tuple[str, int]] = field(default_factory=set)
    turn: int = 0

    READ_TIMEOUT = 2.0
    DEADLINE = 5.0
    HEALTH_CHECK = 0.5

    def serve(self, exchange: Exchange, next_handler: NextHandler) -> Reply:
        name = exchange.question.name
        if not is_within(name, self.origin) or any(is_within(name, zone) for zone in self.exceptions):
            return next_handler(exchange)
        targets = self._in_order(exchange)
        healthy = [target for target in targets if target not in self.failing]
        elapsed, error = 0.0, ""
        # An unhealthy upstream is skipped; with all of them unhealthy, one is tried, once.
        for target in cycle(healthy) if healthy else targets[:1]:
            if elapsed >= self.DEADLINE or (healthy and self.failing.issuperset(healthy) and elapsed < 1):
                break
            reply = exchange.server.query(*target, exchange.question)
            if isinstance(reply, Reply) and reply.seconds < self.READ_TIMEOUT:
                self.failing.discard(target)
                return replace(reply, seconds=elapsed + reply.seconds, authoritative=False)
            refused = isinstance(reply, NoReply) and reply.outcome is not Outcome.TIMEOUT
            elapsed += self.HEALTH_CHECK / len(targets) if refused else self.READ_TIMEOUT
            why = "read: connection refused" if refused else "i/o timeout"
            port = 32768 + exchange.server.random.randrange(28232)
            error = f"read udp {exchange.server.address}:{port}->{target[0]}:{target[1]}: {why}"
            self.failing.add(target)
        return failure(error, elapsed)

    def _in_order(self, exchange: Exchange) -> list[tuple[str, int]]:
        targets = list(self.targets)
        if self.policy == "random" and len(targets) > 1:
            exchange.server.random.shuffle(targets)
        elif self.policy == "round_robin":
            self.turn += 1
            shift = self.turn % len(targets)
            targets = targets[shift:] + targets[:shift]
        return targets


@dataclass
class Forwards(Handler):
    forwards: list[Forward] = field(default_factory=list)

    def serve(self, exchange: Exchange, next_handler: NextHandler) -> Reply:
        def serve_from(number: int, exchange: Exchange) -> Reply:
            if number == len(self.forwards):
                return next_handler(exchange)
            return self.forwards[number].serve(exchange, lambda onward: serve_from(number + 1, onward))

        return serve_from(0, exchange)


_FORWARD_OPTIONS = {
    "max_fails": 1,
    "health_check": 1,
    "force_tcp": 0,
    "prefer_udp": 0,
    "tls": 0,
    "tls_servername": 1,
    "expire": 1,
    "max_concurrent": 1,
    "next": 1,
    "failfast_all_unhealthy_upstreams": 0,
    "failover": 1,
}
"""Options without effect in the simulation, and the least number of their arguments."""


def forward(cursor: Cursor, context: SetupContext) -> Handler:
    found = Forwards()
    while cursor.next():
        arguments = cursor.remaining()
        if not arguments:
            raise cursor.argument_error()
        origin, where = zone_name(arguments[0]), arguments[1:]
        if not where:
            raise cursor.argument_error()
        targets: list[tuple[str, int]] = []
        for one in where:
            targets += _upstreams(one, context)
        handler = Forward(origin, targets)
        while cursor.next_block():
            option = cursor.value
            values = cursor.remaining()
            if option == "except":
                if not values:
                    raise cursor.argument_error()
                handler.exceptions += tuple(zone_name(zone) for zone in values)
            elif option == "policy":
                if not values:
                    raise cursor.argument_error()
                if values[0] not in ("random", "round_robin", "sequential"):
                    raise cursor.error(f"unknown policy '{values[0]}'")
                handler.policy = values[0]
            elif option not in _FORWARD_OPTIONS:
                raise cursor.error(f"unknown property '{option}'")
            elif len(values) < _FORWARD_OPTIONS[option]:
                raise cursor.argument_error()
        found.forwards.append(handler)
    return found


def _upstreams(text: str, context: SetupContext) -> list[tuple[str, int]]:
    """The servers of a `forward` target: an address with or without port, or a file with nameserver lines."""
    scheme, separator, values = text.partition("://")
    if separator:
        if scheme not in ("dns", "tls", "https", "grpc"):
            raise CorefileError(f'not an IP address or file: "{text}"')
        text = values
    if is_address(text):
        return [(text, 53)]
    host, colon, port = text.rpartition(":")
    if colon and port.isdigit() and is_address(host.strip("[]")):
        return [(host.strip("[]"), int(port[:5]))]
    content = context.read(text) if text.startswith("/") else None
    if content is None:
        raise CorefileError(f'not an IP address or file: "{text}"')
    servers = [words[1] for words in map(str.split, content.splitlines()) if words[:1] == ["nameserver"] and words[1:]]
    servers = [server for server in servers if is_address(server)]
    if not servers:
        raise CorefileError(f'no nameservers found in "{text}"')
    return [(server, 53) for server in servers]
