"""Parsers of /etc/resolv.conf and /etc/hosts; the kubelet writes those of pods."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from srearena.cluster.embedded.network.addresses import is_address

HOST_RESOLV_CONF = "nameserver 172.18.0.1\noptions ndots:0\n"
HOST_HOSTS = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"
MAX_NAMESERVERS = 3
MAX_NDOTS = 15
MAX_TIMEOUT = 30
MAX_ATTEMPTS = 5


@dataclass(slots=True)
class ResolverSettings:
    """The settings in /etc/resolv.conf; immutable by convention."""

    nameservers: tuple[str, ...] = ()
    search: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    ndots: int = field(init=False)
    timeout: float = field(init=False)
    attempts: int = field(init=False)

    def __post_init__(self) -> None:
        self.ndots = self._option("ndots", 1, MAX_NDOTS)
        self.timeout = max(1, self._option("timeout", 5, MAX_TIMEOUT))
        self.attempts = max(1, self._option("attempts", 2, MAX_ATTEMPTS))

    def _option(self, name: str, default: int, most: int) -> int:
        for option in self.options:
            key, _, value = option.partition(":")
            if key == name and value.isdigit():
                return min(int(value[:6]), most)
        return default

    def candidates(self, name: str) -> list[str]:
        """The full names a lookup tries, in order, as the C library does it."""
        if name.endswith("."):
            return [name]
        as_is = f"{name}."
        searched = [f"{name}.{domain.rstrip('.')}." if domain != "." else as_is for domain in self.search]
        if name.count(".") >= self.ndots:
            return list(dict.fromkeys((as_is, *searched)))
        return list(dict.fromkeys((*searched, as_is)))


@lru_cache(maxsize=1024)
def parsed_settings(text: str) -> ResolverSettings:
    """Read a resolv.conf; invalid lines are ignored. Without a name server, localhost is one."""
    nameservers: list[str] = []
    search: tuple[str, ...] = ()
    options: list[str] = []
    for line in text.splitlines():
        words = line.partition("#")[0].partition(";")[0].split()
        if len(words) < 2:
            continue
        if words[0] == "nameserver" and is_address(words[1]):
            nameservers.append(words[1])
        elif words[0] in ("search", "domain"):
            search = tuple(words[1:])
        elif words[0] == "options":
            options += words[1:]
    return ResolverSettings(tuple(nameservers[:MAX_NAMESERVERS]) or ("127.0.0.1",), search, tuple(options))


@lru_cache(maxsize=1024)
def parsed_hosts(text: str) -> dict[str, tuple[str, ...]]:
    """Read a hosts file: addresses by name, in lower case. Callers must not change the result."""
    found: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if len(words) > 1 and is_address(words[0]):
            for name in words[1:]:
                addresses = found.get(name.lower(), ())
                if words[0] not in addresses:
                    found[name.lower()] = (*addresses, words[0])
    return found
