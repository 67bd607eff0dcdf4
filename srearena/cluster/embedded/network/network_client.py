"""The network as seen from one host: implements the `NetworkFacade` that programs and shells use.

Every step takes simulated time: names are resolved, packets are retransmitted, and the cluster may change while the
client waits.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from srearena.cluster.embedded.clock import Task
from srearena.cluster.embedded.machine.networking.http_message import HttpRequest
from srearena.cluster.embedded.machine.networking.reachability import (
    ConnectResult,
    FileReader,
    GrpcResult,
    HttpResult,
    Outcome,
    PingResult,
    Resolution,
)
from srearena.cluster.embedded.network.dialer import ConnectAttempt, Waits
from srearena.cluster.embedded.network.flows import Flow
from srearena.cluster.embedded.network.hosts import Host
from srearena.cluster.embedded.network.resolv import ResolverSettings, parsed_hosts, parsed_settings
from srearena.cluster.embedded.network.tcp_connections import open_connection

if TYPE_CHECKING:
    from srearena.cluster.embedded.network.network import Network

T = TypeVar("T")
RESOLV_CONF = "/etc/resolv.conf"
HOSTS = "/etc/hosts"


class NetworkClient:
    """The connections of one host.

    `read` returns the current /etc/resolv.conf and /etc/hosts of the host; `resolv_conf` and `hosts` are the defaults
    where it has none.
    """

    def __init__(
        self, network: Network, host: Host, resolv_conf: str, hosts: str, read: FileReader | None = None
    ) -> None:
        self.network = network
        self.host = host
        self._resolv_conf = resolv_conf
        self._hosts = hosts
        self._read = read

    def with_files(self, read: FileReader) -> NetworkClient:
        return NetworkClient(self.network, self.host, self._resolv_conf, self._hosts, read)

    @property
    def settings(self) -> ResolverSettings:
        text = self._read(RESOLV_CONF) if self._read is not None else None
        return parsed_settings(self._resolv_conf if text is None else text)

    @property
    def hosts(self) -> dict[str, tuple[str, ...]]:
        text = self._read(HOSTS) if self._read is not None else None
        return parsed_hosts(self._hosts if text is None else text)

    # NetworkFacade

    async def resolve(
        self, name: str, kind: str = "A", *, search: bool = True, server: str | None = None
    ) -> Resolution:
        return await self._run(self.resolving(name, kind, search, server))

    async def connect(
        self, host: str, port: int, protocol: str = "TCP", *, timeout: float | None = None
    ) -> ConnectResult:
        clock = self.network.clock
        started = clock.now
        attempt = await self._run_within(self._connecting(host, port, protocol), timeout)
        seconds = clock.now - started
        if attempt is None:
            return ConnectResult(Outcome.TIMEOUT, seconds=seconds)
        address, reached = attempt
        if isinstance(reached, Outcome):
            return ConnectResult(reached, address, seconds=seconds)
        listener, flow = reached.path.listener, reached.flow
        if listener is None or flow is None:
            return ConnectResult(reached.outcome, address, seconds=seconds)
        connection = open_connection(self.network, self.host, reached.path, listener, (address, port), flow)
        return ConnectResult(Outcome.CONNECTED, address, connection, seconds)

    async def http(
        self,
        host: str,
        port: int,
        request: HttpRequest,
        *,
        connect_timeout: float | None = None,
        timeout: float | None = None,
    ) -> HttpResult:
        clock = self.network.clock
        started = clock.now
        limit_seconds = min((limit for limit in (connect_timeout, timeout) if limit is not None), default=None)
        attempt = await self._run_within(self._connecting(host, port, "TCP"), limit_seconds)
        connect_seconds = clock.now - started
        if attempt is None:
            return HttpResult(Outcome.TIMEOUT, None, "", connect_seconds, connect_seconds)
        address, reached = attempt
        if isinstance(reached, Outcome) or reached.flow is None:
            outcome = reached if isinstance(reached, Outcome) else reached.outcome
            return HttpResult(outcome, None, address, connect_seconds, connect_seconds)
        left = None if timeout is None else max(0.0, timeout - connect_seconds)
        answer = await self._await_response(self._exchange(reached, (address, port), request), reached.flow, left)
        result = answer or HttpResult(Outcome.TIMEOUT, connected=True)
        result.address, result.connect_seconds, result.seconds = address, connect_seconds, clock.now - started
        return result

    async def _exchange(self, reached: ConnectAttempt, server: tuple[str, int], request: HttpRequest) -> HttpResult:
        """Send a request over an open connection and wait for the response."""
        dialer, path = self.network.dialer, reached.path
        listener, flow = path.listener, reached.flow
        assert listener is not None and flow is not None
        if not await self._run(dialer.transfer(self.host, path, len(request.body) + 200)):
            return HttpResult(Outcome.TIMEOUT, connected=True)
        request.peer = path.source
        result = await listener.answer_http(request, (path.source, flow.local_port), server)
        size = len(result.response.body) + 200 if result.response is not None else 40
        now = self.network.fabric.routes.again(self.host, path, "TCP")
        if not await self._run(dialer.transfer(self.host, now, size, back=True)):
            return HttpResult(Outcome.TIMEOUT, connected=True)
        return result

    async def grpc_health(self, host: str, port: int, service: str = "", *, timeout: float | None = None) -> GrpcResult:
        clock = self.network.clock
        started = clock.now
        attempt = await self._run_within(self._connecting(host, port, "TCP"), timeout)
        if attempt is None:
            return GrpcResult(Outcome.TIMEOUT)
        address, reached = attempt
        if isinstance(reached, Outcome) or reached.flow is None or reached.path.listener is None:
            return GrpcResult(reached if isinstance(reached, Outcome) else reached.outcome, address=address)
        left = None if timeout is None else max(0.0, timeout - (clock.now - started))
        answer = await self._await_response(self._check_health(reached, service), reached.flow, left)
        result = answer or GrpcResult(Outcome.TIMEOUT, connected=True)
        result.address = address
        return result

    async def _check_health(self, reached: ConnectAttempt, service: str) -> GrpcResult:
        dialer, listener = self.network.dialer, reached.path.listener
        assert listener is not None
        if not await self._run(dialer.transfer(self.host, reached.path, 200)):
            return GrpcResult(Outcome.TIMEOUT, connected=True)
        result = await listener.answer_grpc_health(service)
        if not await self._run(dialer.transfer(self.host, reached.path, 200, back=True)):
            return GrpcResult(Outcome.TIMEOUT, connected=True)
        return result

    async def datagram(self, host: str, port: int, data: bytes, *, timeout: float = 5.0) -> bytes | None:
        clock = self.network.clock
        deadline = clock.now + timeout
        resolution = await self._run_within(self.resolving(host), timeout)
        if resolution is None or not resolution.addresses:
            return None
        path, arrived = await self._run(self.network.dialer.send(self.host, resolution.addresses[0], port))
        if not arrived and path.outcome not in (Outcome.TIMEOUT, Outcome.CONNECTED):
            return None
        listener = path.listener
        if arrived and listener is not None and listener.datagram is not None:
            task = listener.owner.spawn_thread(listener.datagram(data, path.source))
            await task.done.wait(max(0.0, deadline - clock.now))
            answer = _outcome_of(task)
            if isinstance(answer, bytes):
                return answer
        await clock.sleep(max(0.0, deadline - clock.now))
        return None

    async def ping(self, host: str, *, timeout: float = 10.0) -> PingResult:
        clock = self.network.clock
        started = clock.now
        resolution = await self._run_within(self.resolving(host), timeout)
        if resolution is None:
            return PingResult(Outcome.DNS_FAILURE)
        if not resolution.addresses:
            return PingResult(resolution.outcome)
        address = resolution.addresses[0]
        outcome, seconds = self.network.dialer.echo(self.host, address)
        if outcome is Outcome.TIMEOUT:
            seconds = max(0.0, timeout - (clock.now - started))
        await clock.sleep(seconds)
        return PingResult(outcome, address, seconds)

    # Steps

    def resolving(
        self, name: str, kind: str = "A", search: bool = True, server: str | None = None
    ) -> Waits[Resolution]:
        return self.network.resolver.resolve(
            self.host, name, kind, self.settings, self.hosts, search=search, server=server
        )

    def _connecting(self, host: str, port: int, protocol: str) -> Waits[tuple[str, ConnectAttempt | Outcome]]:
        """Resolve, then try the addresses in turn until one is reachable."""
        resolution = yield from self.resolving(host)
        addresses = resolution.addresses
        if not addresses:
            return "", resolution.outcome
        dialer = self.network.dialer
        for address in addresses:
            if protocol == "UDP":
                return address, dialer.connect_udp(self.host, address, port)
            reached = yield from dialer.dial(self.host, address, port)
            if reached.outcome is Outcome.CONNECTED or address == addresses[-1]:
                return address, reached
        return "", Outcome.NXDOMAIN

    async def _await_response(self, exchange: Coroutine[Any, Any, T], flow: Flow, limit: float | None) -> T | None:
        """Wait for the response over a connection, then end it; None where the limit is exceeded."""
        task = self.network.clock.spawn(exchange)
        try:
            await task.done.wait(limit)
        finally:
            task.cancel()
            flow.end()
        return _outcome_of(task)

    async def _run(self, waits: Waits[T]) -> T:
        """Run steps that take time, and return their result."""
        clock = self.network.clock
        while True:
            try:
                seconds = next(waits)
            except StopIteration as stop:
                value: T = stop.value
                return value
            await clock.sleep(seconds)

    async def _run_within(self, waits: Waits[T], limit: float | None) -> T | None:
        """Run steps with a time limit; None once it is exceeded."""
        clock = self.network.clock
        deadline = float("inf") if limit is None else clock.now + limit
        try:
            while True:
                try:
                    seconds = next(waits)
                except StopIteration as stop:
                    value: T = stop.value
                    return value
                if clock.now + seconds > deadline:
                    await clock.sleep(max(0.0, deadline - clock.now))
                    return None
                await clock.sleep(seconds)
        finally:
            waits.close()


def _outcome_of(task: Task[T]) -> T | None:
    """The result of a task; None where it has not ended."""
    return task.done.value if task.done.is_set else None
