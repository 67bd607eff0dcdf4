"""Loading a Corefile: the servers by zone and port, each with its chain of plugins.

`load` returns a configuration or raises `CorefileError` with the text that CoreDNS would print. A configuration has the
state of its plugins (caches), so it belongs to one running server.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import orjson

from srearena.cluster.embedded.network.dns import backends, cache, forward, rewrite, server_plugins, template
from srearena.cluster.embedded.network.dns.caddyfile import CorefileError, Cursor, Reader, ServerBlock, parse
from srearena.cluster.embedded.network.dns.chain import Exchange, Handler, NextHandler, Setup, SetupContext, zone_name
from srearena.cluster.embedded.network.dns.directives import KNOWN, ORDER
from srearena.cluster.embedded.network.dns.messages import REFUSED, Reply, zone_of
from srearena.cluster.embedded.network.dns.server_plugins import Setting

__all__ = ["DEFAULT_COREFILE", "Configuration", "CorefileError", "load", "syntax_digest"]

DEFAULT_COREFILE = """.:53 {
    errors
    health {
       lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }
    prometheus :9153
    forward . /etc/resolv.conf {
       max_concurrent 1000
    }
    cache 30 {
       disable success cluster.local
       disable denial cluster.local
    }
    loop
    reload
    loadbalance
}
"""
"""What kubeadm writes."""

_SETUPS: dict[str, Setup] = {
    "cache": cache.cache,
    "errors": server_plugins.errors,
    "file": backends.zone_file,
    "forward": forward.forward,
    "health": server_plugins.health,
    "hosts": backends.hosts,
    "kubernetes": backends.kubernetes,
    "loadbalance": server_plugins.loadbalance,
    "log": server_plugins.log,
    "loop": server_plugins.loop,
    "prometheus": server_plugins.prometheus,
    "ready": server_plugins.ready,
    "reload": server_plugins.reload,
    "rewrite": rewrite.rewrite,
    "template": template.template,
    "whoami": backends.whoami,
}
_TRANSPORTS = {"dns": 53, "tls": 853, "quic": 853, "grpc": 443, "https": 443, "https3": 443}


@dataclass(frozen=True, slots=True)
class Server:
    """One zone on one port."""

    zone: str
    port: int
    transport: str
    handlers: dict[str, Handler]
    serve: Callable[[Exchange], Reply]

    @property
    def key(self) -> str:
        return f"{self.transport}://{self.zone}:{self.port}"


class Configuration:
    """Everything a Corefile sets up."""

    def __init__(self, servers: list[Server], text: str) -> None:
        self.servers = servers
        self.text = text
        self._by_port: dict[int, dict[str, Server]] = {}
        for server in servers:
            self._by_port.setdefault(server.port, {})[server.zone] = server

    @property
    def ports(self) -> list[int]:
        return sorted({server.port for server in self.servers if server.transport == "dns"})

    def settings(self, name: str) -> list[Setting]:
        """The settings of a plugin such as `health` or `reload` in all server blocks."""
        found = [server.handlers.get(name) for server in self.servers]
        return [setting for setting in found if isinstance(setting, Setting)]

    def plugins(self, kind: type[Handler]) -> list[Handler]:
        return [handler for server in self.servers for handler in server.handlers.values() if isinstance(handler, kind)]

    def answer(self, port: int, exchange: Exchange) -> Reply:
        """The reply of the server for the zone on that port; REFUSED where there is none."""
        servers = self._by_port.get(port, {})
        zone = zone_of(exchange.question.name, tuple(servers))
        if zone is None:
            return Reply(REFUSED)
        return servers[zone].serve(exchange)


def load(text: str, file: str = "/etc/coredns/Corefile", read: Reader = lambda path: None) -> Configuration:
    """Load a Corefile. `read` returns the files of the container that plugins use."""
    blocks = parse(text, file, KNOWN, read)
    places = [[_place(key) for key in block.keys] for block in blocks]
    assigned: set[tuple[str, str, int]] = set()
    for place in (place for group in places for place in group):
        if place in assigned:
            transport, zone, port = place
            raise CorefileError(f"cannot serve {transport}://{zone}:{port} - it is already defined")
        assigned.add(place)
    handlers: list[dict[str, Handler]] = [{} for _ in blocks]
    for name in ORDER:
        for block, group, block_handlers in zip(blocks, places, handlers, strict=True):
            if name in block.directives:
                handler = _set_up(name, block, SetupContext(tuple(zone for _, zone, _ in group), read), file)
                if handler is not None:
                    block_handlers[name] = handler
    servers: list[Server] = []
    for group, block_handlers in zip(places, handlers, strict=True):
        serve = _chained([block_handlers[name] for name in ORDER if name in block_handlers])
        servers += [Server(zone, port, transport, block_handlers, serve) for transport, zone, port in group]
    return Configuration(servers, text)


def syntax_digest(text: str, file: str = "/etc/coredns/Corefile", read: Reader = lambda path: None) -> str:
    """A digest of a Corefile that comments and white space do not change; CorefileError where it is no Corefile."""
    blocks = parse(text, file, None, read)
    shape = [
        [b.keys, {name: [token.text for token in tokens] for name, tokens in b.directives.items()}] for b in blocks
    ]
    return hashlib.sha512(orjson.dumps(shape)).hexdigest()


def _set_up(name: str, block: ServerBlock, context: SetupContext, file: str) -> Handler | None:
    setup = _SETUPS.get(name, server_plugins.without_effect)
    try:
        return setup(Cursor(block.directives[name], file), context)
    except CorefileError as error:
        raise CorefileError(f"plugin/{name}: {error}") from None


def _place(key: str) -> tuple[str, str, int]:
    """Transport, zone and port of a server block's key."""
    transport, separator, rest = key.partition("://")
    if not separator:
        transport, rest = "dns", key
    if transport not in _TRANSPORTS:
        raise CorefileError(f'unable to parse zone "{key}"')
    port = _TRANSPORTS[transport]
    zone, colon, number = rest.rpartition(":")
    if colon and number.isdigit():
        if int(number[:6]) > 65535:
            raise CorefileError(f'invalid port "{number}"')
        rest, port = zone, int(number)
    return transport, zone_name(rest or "."), port


def _chained(handlers: list[Handler]) -> Callable[[Exchange], Reply]:
    next_handler: NextHandler = partial(backends.NoNextPlugin().serve, next_handler=_refuse)
    for handler in reversed(handlers):
        if not isinstance(handler, Setting):
            next_handler = partial(handler.serve, next_handler=next_handler)
    return next_handler


def _refuse(exchange: Exchange) -> Reply:
    return Reply(REFUSED)
