"""Hosts outside the cluster: a name server, some well-known sites, and the machine that the cluster runs on.

Every site is a `Host`, so that links to it can be cut and policies apply to it. A name that is not in the table does
not exist; an address that is not in it does not respond.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from srearena.cluster.embedded.clock import Clock, Task
from srearena.cluster.embedded.machine.networking.certificates import TlsIdentity
from srearena.cluster.embedded.machine.networking.http_message import HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.networking.reachability import DnsRecord
from srearena.cluster.embedded.machine.networking.sockets import HttpHandler, Listener, NetworkNamespace
from srearena.cluster.embedded.network.addresses import GATEWAY
from srearena.cluster.embedded.network.dns.messages import (
    NOERROR,
    NXDOMAIN,
    Question,
    Reply,
    address_kind,
    qualified,
    reverse_name,
)
from srearena.cluster.embedded.network.hosts import Host, HostKind, Hosts
from srearena.cluster.embedded.network.resolver import DNS_PORT, NameServer

SITE_TTL = 300
NEGATIVE_TTL = 900
SITES: dict[str, tuple[str, ...]] = {
    "example.com": ("93.184.215.14",),
    "example.org": ("93.184.215.15",),
    "google.com": ("142.250.74.46",),
    "dns.google": ("8.8.8.8", "8.8.4.4"),
    "one.one.one.one": ("1.1.1.1",),
    "quad9.net": ("9.9.9.9",),
    "github.com": ("140.82.121.4",),
    "api.github.com": ("140.82.121.6",),
    "registry.k8s.io": ("34.96.108.209",),
    "registry-1.docker.io": ("44.208.254.194",),
    "auth.docker.io": ("44.208.254.195",),
    "docker.io": ("44.208.254.196",),
    "quay.io": ("3.216.152.103",),
    "ghcr.io": ("140.82.121.33",),
    "gcr.io": ("142.250.74.82",),
    "storage.googleapis.com": ("142.250.74.91",),
    "kubernetes.io": ("15.197.167.90",),
    "pypi.org": ("151.101.0.223",),
    "registry.npmjs.org": ("104.16.27.34",),
    "deb.debian.org": ("151.101.2.132",),
    "dl-cdn.alpinelinux.org": ("151.101.2.133",),
    "archive.ubuntu.com": ("185.125.190.36",),
    "hooks.slack.com": ("18.184.9.71",),
    "api.stripe.com": ("54.187.174.169",),
    "pool.ntp.org": ("162.159.200.1",),
}
ALIASES = {
    "www.example.com": "example.com",
    "www.google.com": "google.com",
    "www.github.com": "github.com",
}
RESOLVERS = frozenset({GATEWAY, "8.8.8.8", "8.8.4.4", "1.1.1.1", "9.9.9.9"})


class Daemon:
    """A stand-in for a process: owns the sockets of external hosts, and of the control plane's host."""

    def __init__(self, clock: Clock, name: str) -> None:
        self._clock = clock
        self._name = name
        self.pid = 1

    @property
    def name(self) -> str:
        return self._name

    def spawn_thread(self, coroutine: Coroutine[Any, Any, Any]) -> Task[Any]:
        return self._clock.spawn(coroutine)

    def take_descriptor(self) -> bool:
        return True

    def give_descriptor_back(self) -> None:
        """Descriptors are not counted."""

    def keep_sockets(self, change: int) -> None:
        """Descriptors are not counted."""


class ExternalHosts:
    """Names and sites outside the cluster; `serve_dns` registers a listener as a name server."""

    def __init__(
        self,
        clock: Clock,
        hosts: Hosts,
        serve_dns: Callable[[Listener, NameServer], object],
    ) -> None:
        self._clock = clock
        self._hosts = hosts
        self._serve_dns = serve_dns
        self.names: dict[str, tuple[str, ...]] = {}
        self.aliases = {qualified(name): qualified(target) for name, target in ALIASES.items()}
        self._reverse: dict[str, str] = {}
        self.host = self._attach((GATEWAY,))
        """The machine the cluster runs on; the operator's own requests come from here."""
        self._resolver(self.host)
        for name, addresses in SITES.items():
            self.add_site(name, addresses)

    def add_site(self, name: str, addresses: tuple[str, ...], http: HttpHandler | None = None) -> Host:
        """Add a site that responds on ports 80 and 443, with a greeting or with `http`."""
        full = qualified(name)
        self.names[full] = addresses
        for address in addresses:
            self._reverse.setdefault(reverse_name(address), full)
        host = self._attach(addresses)
        owner = Daemon(self._clock, name)
        identity = TlsIdentity((name, f"*.{name}"), "Let's Encrypt")
        host.sockets.listen(owner, 80, http=http or _greeting)
        host.sockets.listen(owner, 443, http=http or _greeting, tls=identity)
        if RESOLVERS.intersection(addresses):
            self._resolver(host)
        return host

    def answer(self, question: Question, client: str) -> Reply:
        """The reply of a public name server."""
        name, records = question.name, []
        if question.kind == "PTR":
            found = self._reverse.get(name)
            if found is None:
                return Reply(NXDOMAIN, negative_ttl=NEGATIVE_TTL)
            return Reply(NOERROR, (DnsRecord(name, "PTR", found, SITE_TTL),))
        target = self.aliases.get(name)
        if target is not None:
            records.append(DnsRecord(name, "CNAME", target, SITE_TTL))
            name = target
        addresses = self.names.get(name)
        if addresses is None:
            return Reply(NXDOMAIN, negative_ttl=NEGATIVE_TTL)
        records += [
            DnsRecord(name, question.kind, address, SITE_TTL)
            for address in addresses
            if address_kind(address) == question.kind
        ]
        return Reply(NOERROR, tuple(records), seconds=0.002, negative_ttl=NEGATIVE_TTL)

    def _attach(self, addresses: tuple[str, ...]) -> Host:
        sockets = NetworkNamespace(self._clock, addresses)
        return self._hosts.attach_external(Host(HostKind.OUTSIDE, "", sockets, addresses))

    def _resolver(self, host: Host) -> None:
        listener = host.sockets.listen(Daemon(self._clock, "named"), DNS_PORT, protocol="UDP")
        self._serve_dns(listener, self.answer)


async def _greeting(request: HttpRequest) -> HttpResponse:
    host = request.header("Host", "localhost")
    return HttpResponse.text(f"<html><body><h1>{host}</h1></body></html>\n", content_type="text/html")
