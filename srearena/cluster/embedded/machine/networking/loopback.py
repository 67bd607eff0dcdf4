"""The network of an isolated machine: only its own addresses.

Used for pods that are not connected yet, and in tests.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address

from srearena.cluster.embedded.machine.networking.http_message import HttpRequest
from srearena.cluster.embedded.machine.networking.reachability import (
    ConnectResult,
    DnsRecord,
    DnsStatus,
    FileReader,
    GrpcResult,
    HttpResult,
    Outcome,
    PingResult,
    Resolution,
)
from srearena.cluster.embedded.machine.networking.sockets import LOOPBACK, Listener, NetworkNamespace, within


class LoopbackNetwork:
    """Implements `NetworkFacade` inside one namespace."""

    def __init__(self, namespace: NetworkNamespace, hosts: Iterable[tuple[str, str]] = ()) -> None:
        self.namespace = namespace
        self.hosts = {"localhost": LOOPBACK, **dict(hosts)}
        self.latency = 0.0001

    async def resolve(
        self, name: str, kind: str = "A", *, search: bool = True, server: str | None = None
    ) -> Resolution:
        await self.namespace.clock.sleep(self.latency)
        if _is_address(name):
            return Resolution(DnsStatus.NOERROR, name, (DnsRecord(name, "A", name),))
        found = self.hosts.get(name.rstrip("."))
        if found is None or kind != "A":
            return Resolution(DnsStatus.NXDOMAIN, name)
        return Resolution(DnsStatus.NOERROR, name, (DnsRecord(name, "A", found),))

    async def connect(
        self, host: str, port: int, protocol: str = "TCP", *, timeout: float | None = None
    ) -> ConnectResult:
        started = self.namespace.clock.now
        outcome, address, listener = await self._find(host, port, protocol)
        connection = None
        if listener is not None:
            connection = listener.connect(self._client(), (address, port))
        return ConnectResult(outcome, address, connection, self.namespace.clock.now - started)

    async def http(
        self,
        host: str,
        port: int,
        request: HttpRequest,
        *,
        connect_timeout: float | None = None,
        timeout: float | None = None,
    ) -> HttpResult:
        clock = self.namespace.clock
        started = clock.now
        outcome, address, listener = await self._find(host, port, "TCP")
        connected_at = clock.now
        if listener is None:
            result: HttpResult | None = HttpResult(outcome)
        else:
            client = self._client()
            request.peer = client[0]
            result = await within(clock, timeout, listener.answer_http(request, client, (address, port)))
        if result is None:
            result = HttpResult(Outcome.TIMEOUT, connected=True)
        result.address = address
        result.connect_seconds = connected_at - started
        result.seconds = clock.now - started
        return result

    async def grpc_health(self, host: str, port: int, service: str = "", *, timeout: float | None = None) -> GrpcResult:
        outcome, address, listener = await self._find(host, port, "TCP")
        result = GrpcResult(outcome) if listener is None else await listener.answer_grpc_health(service)
        result.address = address
        return result

    async def datagram(self, host: str, port: int, data: bytes, *, timeout: float = 5.0) -> bytes | None:
        _, _, listener = await self._find(host, port, "UDP")
        if listener is None or listener.datagram is None:
            return None
        return await listener.datagram(data, self._client()[0])

    async def ping(self, host: str, *, timeout: float = 10.0) -> PingResult:
        resolution = await self.resolve(host)
        if not resolution.addresses:
            return PingResult(resolution.outcome)
        address = resolution.addresses[0]
        known = self.namespace.is_local(address)
        return PingResult(Outcome.CONNECTED if known else Outcome.UNREACHABLE, address, self.latency)

    def with_files(self, read: FileReader) -> LoopbackNetwork:
        return self

    async def _find(self, host: str, port: int, protocol: str) -> tuple[Outcome, str, Listener | None]:
        resolution = await self.resolve(host)
        if not resolution.addresses:
            return resolution.outcome, "", None
        address = resolution.addresses[0]
        if not self.namespace.is_local(address):
            return Outcome.UNREACHABLE, address, None
        listener = self.namespace.find(address, port, protocol)
        return (Outcome.REFUSED if listener is None else Outcome.CONNECTED), address, listener

    def _client(self) -> tuple[str, int]:
        return (self.namespace.address or LOOPBACK, self.namespace.ephemeral_port())


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
