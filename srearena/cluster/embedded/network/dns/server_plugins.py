"""Plugins that log, reorder replies, or configure the server: errors, log, loadbalance, health, ready, reload..."""

from __future__ import annotations

from dataclasses import dataclass, field

from srearena.cluster.embedded.network.dns.caddyfile import CorefileError, Cursor
from srearena.cluster.embedded.network.dns.chain import Exchange, Handler, NextHandler, SetupContext, zones_of
from srearena.cluster.embedded.network.dns.messages import RCODES, Reply, zone_of
from srearena.cluster.embedded.network.dns.options import duration

MIN_RELOAD, MIN_JITTER = 2.0, 1.0


class Errors(Handler):
    """Logs errors of other plugins."""

    def serve(self, exchange: Exchange, next_handler: NextHandler) -> Reply:
        reply = next_handler(exchange)
        if reply.error:
            question = exchange.question
            code = RCODES.get(reply.rcode, 2)
            exchange.server.log(f"[ERROR] plugin/errors: {code} {question.name} {question.kind}: {reply.error}")
        return reply


def errors(cursor: Cursor, context: SetupContext) -> Handler:
    while cursor.next():
        arguments = cursor.remaining()
        if arguments and arguments != ["stdout"]:
            raise cursor.error(f"invalid log file: {arguments[0]}")
        while cursor.next_block():
            if cursor.value not in ("consolidate", "stacktrace"):
                raise cursor.error(f"unknown property '{cursor.value}'")
            cursor.remaining()
    return Errors()


@dataclass
class Log(Handler):
    """Logs every query of its zones."""

    zones: tuple[str, ...]

    def serve(self, exchange: Exchange, next_handler: NextHandler) -> Reply:
        question = exchange.question
        if zone_of(question.name, self.zones) is None:
            return next_handler(exchange)
        reply = next_handler(exchange)
        random = exchange.server.random
        port, number = 32768 + random.randrange(28232), random.randrange(65536)
        size = 17 + len(question.name)
        flags = "qr,aa,rd" if reply.authoritative else "qr,rd,ra"
        answer_size = size + sum(12 + len(record.name) + len(record.value) for record in reply.records)
        exchange.server.log(
            f'[INFO] {exchange.client}:{port} - {number} "{question.kind} IN {question.name} udp {size} false 512" '
            f"{reply.rcode} {flags} {answer_size} {max(reply.seconds, 0.00005):.9f}s"
        )
        return reply


def log(cursor: Cursor, context: SetupContext) -> Handler:
    zones: tuple[str, ...] = ()
    while cursor.next():
        arguments = cursor.remaining()
        names = arguments[:1] if arguments and "{" in " ".join(arguments[1:]) else arguments
        zones += zones_of(names, context)
        while cursor.next_block():
            if cursor.value != "class":
                raise cursor.argument_error()
            if not cursor.remaining():
                raise cursor.argument_error()
    return Log(zones)


class LoadBalance(Handler):
    """Shuffles the addresses of every reply."""

    def serve(self, exchange: Exchange, next_handler: NextHandler) -> Reply:
        reply = next_handler(exchange)
        addresses = [record for record in reply.records if record.kind in ("A", "AAAA", "MX")]
        if len(addresses) < 2:
            return reply
        other_records = [record for record in reply.records if record.kind not in ("A", "AAAA", "MX")]
        exchange.server.random.shuffle(addresses)
        return Reply(
            reply.rcode,
            (*other_records, *addresses),
            reply.authoritative,
            reply.seconds,
            reply.negative_ttl,
            reply.expires,
            reply.error,
        )


def loadbalance(cursor: Cursor, context: SetupContext) -> Handler:
    while cursor.next():
        arguments = cursor.remaining()
        if arguments and arguments[0] not in ("round_robin", "weighted"):
            raise cursor.error(f"unknown policy: {arguments[0]}")
        while cursor.next_block():
            cursor.remaining()
    return LoadBalance()


@dataclass(frozen=True)
class Setting(Handler):
    """A plugin that configures the server and handles no queries."""

    name: str
    address: str = ""
    values: dict[str, float] = field(default_factory=dict)


def health(cursor: Cursor, context: SetupContext) -> Handler:
    address, lameduck = ":8080", 0.0
    while cursor.next():
        address = _address(cursor, address)
        while cursor.next_block():
            if cursor.value != "lameduck":
                raise cursor.argument_error()
            values = cursor.remaining()
            if len(values) != 1:
                raise cursor.argument_error()
            lameduck = duration(values[0])
    return Setting("health", address, {"lameduck": lameduck})


def ready(cursor: Cursor, context: SetupContext) -> Handler:
    address = ":8181"
    while cursor.next():
        address = _address(cursor, address)
        while cursor.next_block():
            cursor.remaining()
    return Setting("ready", address)


def prometheus(cursor: Cursor, context: SetupContext) -> Handler:
    address = "localhost:9153"
    while cursor.next():
        address = _address(cursor, address)
        while cursor.next_block():
            raise cursor.argument_error()
    return Setting("prometheus", address)


def _address(cursor: Cursor, default: str) -> str:
    arguments = cursor.remaining()
    if len(arguments) > 1:
        raise cursor.argument_error()
    if not arguments:
        return default
    host, colon, port = arguments[0].rpartition(":")
    if not colon:
        raise CorefileError(f"address {arguments[0]}: missing port in address")
    if not port.isdigit() or int(port[:6]) > 65535:
        raise CorefileError(f"listen tcp: lookup {port or host}: unknown port")
    return arguments[0]


def reload(cursor: Cursor, context: SetupContext) -> Handler:
    interval, jitter = 30.0, 15.0
    while cursor.next():
        arguments = cursor.remaining()
        if len(arguments) > 2:
            raise cursor.argument_error()
        if arguments:
            interval = duration(arguments[0])
            if interval < MIN_RELOAD:
                raise CorefileError("interval value must be greater or equal to 2s")
            jitter = duration(arguments[1]) if len(arguments) > 1 else jitter
            if jitter < MIN_JITTER:
                raise CorefileError("jitter value must be greater or equal to 1s")
            jitter = min(jitter, interval / 2)
    return Setting("reload", values={"interval": interval, "jitter": jitter})


def loop(cursor: Cursor, context: SetupContext) -> Handler:
    seen = 0
    while cursor.next():
        seen += 1
        if seen > 1:
            raise CorefileError("this plugin can only be used once per Server Block")
        if cursor.next_arg():
            raise cursor.argument_error()
    return Setting("loop")


def without_effect(cursor: Cursor, context: SetupContext) -> Handler | None:
    """Plugins that are accepted and have no effect in the simulation."""
    return None
