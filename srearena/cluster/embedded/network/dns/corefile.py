"""A Corefile understood: which server answers for which zone on which port, with which plugins.

`load` either gives a configuration that can serve or raises `CorefileError` with the text that CoreDNS would print.
A configuration keeps the state of its plugins (caches), so it belongs to one running server.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import orjson

from srearena.cluster.embedded.network.dns import answering, caching, forwarding, observing, rewriting, templating
from srearena.cluster.embedded.network.dns.caddyfile import CorefileError, Cursor, Reader, ServerBlock, parse
from srearena.cluster.embedded.network.dns.chain import Building, Exchange, Following, Handler, Setup, zone_name
from srearena.cluster.embedded.network.dns.directives import KNOWN, ORDER
from srearena.cluster.embedded.network.dns.messages import REFUSED, Reply, zone_of
from srearena.cluster.embedded.network.dns.observing import Setting

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
    "cache": caching.cache,
    "errors": observing.errors,
    "file": answering.zone_file,
    "forward": forwarding.forward,
    "health": observing.health,
    "hosts": answering.hosts,
    "kubernetes": answering.kubernetes,
    "loadbalance": observing.loadbalance,
    "log": observing.log,
    "loop": observing.loop,
    "prometheus": observing.prometheus,
    "ready": observing.ready,
    "reload": observing.reload,
    "rewrite": rewriting.rewrite,
    "template": templating.template,
    "whoami": answering.whoami,
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
        """What the server blocks say about a plugin such as `health` or `reload`."""
        found = [server.handlers.get(name) for server in self.servers]
        return [setting for setting in found if isinstance(setting, Setting)]

    def plugins(self, kind: type[Handler]) -> list[Handler]:
        return [handler for server in self.servers for handler in server.handlers.values() if isinstance(handler, kind)]

    def answer(self, port: int, exchange: Exchange) -> Reply:
        """The answer of the server that is responsible on that port; nobody is: REFUSED."""
        servers = self._by_port.get(port, {})
        zone = zone_of(exchange.question.name, tuple(servers))
        if zone is None:
            return Reply(REFUSED)
        return servers[zone].serve(exchange)


def load(text: str, file: str = "/etc/coredns/Corefile", read: Reader = lambda path: None) -> Configuration:
    """Understand a Corefile. `read` gives the files that plugins ask for, as the container has them."""
    blocks = parse(text, file, KNOWN, read)
    places = [[_place(key) for key in block.keys] for block in blocks]
    taken: set[tuple[str, str, int]] = set()
    for place in (place for group in places for place in group):
        if place in taken:
            transport, zone, port = place
            raise CorefileError(f"cannot serve {transport}://{zone}:{port} - it is already defined")
        taken.add(place)
    handlers: list[dict[str, Handler]] = [{} for _ in blocks]
    for name in ORDER:
        for block, group, made in zip(blocks, places, handlers, strict=True):
            if name in block.directives:
                handler = _set_up(name, block, Building(tuple(zone for _, zone, _ in group), read), file)
                if handler is not None:
                    made[name] = handler
    servers: list[Server] = []
    for group, made in zip(places, handlers, strict=True):
        serve = _chained([made[name] for name in ORDER if name in made])
        servers += [Server(zone, port, transport, made, serve) for transport, zone, port in group]
    return Configuration(servers, text)


def syntax_digest(text: str, file: str = "/etc/coredns/Corefile", read: Reader = lambda path: None) -> str:
    """A digest of a Corefile that comments and white space do not change; CorefileError where it is no Corefile."""
    blocks = parse(text, file, None, read)
    shape = [
        [b.keys, {name: [token.text for token in tokens] for name, tokens in b.directives.items()}] for b in blocks
    ]
    return hashlib.sha512(orjson.dumps(shape)).hexdigest()


def _set_up(name: str, block: ServerBlock, building: Building, file: str) -> Handler | None:
    setup = _SETUPS.get(name, observing.without_effect)
    try:
        return setup(Cursor(block.directives[name], file), building)
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
    following: Following = partial(answering.LastResort().serve, following=_nowhere)
    for handler in reversed(handlers):
        if not isinstance(handler, Setting):
            following = partial(handler.serve, following=following)
    return following


def _nowhere(exchange: Exchange) -> Reply:
    return Reply(REFUSED)
