"""Listening sockets of a network namespace, and the delivery of connections and requests to them.

A `NetworkNamespace` is shared by the containers of a pod (or by all host-network pods of a node). Programs listen
in it; the `network` package decides whether and how fast a client reaches it and then delivers through `Listener`.
Programs and shells connect to others only through a `NetworkFacade` (see `reachability`).
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, NamedTuple, Protocol

from srearena.cluster.embedded.clock import Clock, Task
from srearena.cluster.embedded.machine.files.streams import Change, os_error
from srearena.cluster.embedded.machine.networking.certificates import TlsIdentity
from srearena.cluster.embedded.machine.networking.connections import (
    Connection,
    ConnectionFile,
    connection_pair,
    socket_inode,
)
from srearena.cluster.embedded.machine.networking.http_message import HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.networking.http_wire import (
    BAD_REQUEST,
    HttpHandler,
    http_over,
    serve_http,
    within,
)
from srearena.cluster.embedded.machine.networking.interface_counters import Carried
from srearena.cluster.embedded.machine.networking.reachability import (
    ConnectResult,
    DnsRecord,
    DnsStatus,
    GrpcHealth,
    GrpcResult,
    HttpResult,
    NetworkFacade,
    Outcome,
    PingResult,
    Resolution,
)

__all__ = [
    "ANY_ADDRESS",
    "ConnectResult",
    "Connection",
    "ConnectionFile",
    "DnsRecord",
    "DnsStatus",
    "GrpcHealth",
    "GrpcResult",
    "HttpHandler",
    "HttpRequest",
    "HttpResponse",
    "HttpResult",
    "Listener",
    "NetworkFacade",
    "NetworkNamespace",
    "Outcome",
    "PingResult",
    "Resolution",
    "SocketOwner",
    "TlsIdentity",
    "connection_pair",
    "http_over",
    "within",
]

ANY_ADDRESS = "0.0.0.0"
LOOPBACK = "127.0.0.1"
EPHEMERAL_PORTS = range(32768, 61000)
DEFAULT_BACKLOG = 4096


class SocketOwner(Protocol):
    """The process that owns a socket: it runs the handlers, and its end closes the socket."""

    pid: int

    @property
    def name(self) -> str: ...

    def spawn_thread(self, coroutine: Coroutine[Any, Any, Any]) -> Task[Any]: ...

    def take_descriptor(self) -> bool:
        """Count one more open socket; False where the process may open no more files."""
        ...

    def give_descriptor_back(self) -> None: ...

    def keep_sockets(self, change: int) -> None:
        """Count more or fewer sockets that are no accepted connections: it listens on them, or connected them."""
        ...


StreamHandler = Callable[[Connection], Coroutine[Any, Any, None]]
GrpcHealthHandler = Callable[[str], Coroutine[Any, Any, GrpcHealth]]
DatagramHandler = Callable[[bytes, str], Coroutine[Any, Any, "bytes | None"]]


class BulkConnection(NamedTuple):
    """One end of a connection of bulk traffic, which opens none one by one."""

    local: tuple[str, int]
    peer: tuple[str, int]
    owner: SocketOwner | None
    """None: it waits in the accept queue."""
    is_client: bool = False
    requests: float = 0.0
    """Requests a second over it."""
    seconds: float = 0.0
    """Mean time until the response."""
    response_bytes: int = 0


class BulkConnections(Protocol):
    """The connections of bulk traffic that end in a network namespace, at this moment."""

    def entries(self) -> Iterator[BulkConnection]: ...

    def count(self, owner: SocketOwner) -> int:
        """How many descriptors of a process are such connections."""
        ...


class SocketEntry(NamedTuple):
    """A socket as the kernel lists it."""

    protocol: str
    local: tuple[str, int]
    peer: tuple[str, int]
    owner: object | None
    listener: Listener | None = None

    @property
    def inode(self) -> int:
        return socket_inode(self.protocol, self.local, self.peer, self.owner)


NOBODY = (ANY_ADDRESS, 0)
"""The peer of a listening socket."""
FIRST_RETRY, LAST_RETRY = 0.005, 1.0
"""Seconds until Go's servers accept again after an error: the first time, and doubled up to this."""


@dataclass(eq=False, slots=True)
class Listener:
    """A listening socket. Its handlers define its protocols; missing ones are derived or refused."""

    namespace: NetworkNamespace
    owner: SocketOwner
    port: int
    address: str = ANY_ADDRESS
    protocol: str = "TCP"
    http: HttpHandler | None = None
    stream: StreamHandler | None = None
    grpc_health: GrpcHealthHandler | None = None
    datagram: DatagramHandler | None = None
    tls: TlsIdentity | None = None
    identify: Callable[[str], TlsIdentity] | None = None
    """The TLS identity for a client's server name (SNI); without it one identity for all."""
    backlog: int = DEFAULT_BACKLOG
    accepted: int = 0
    """Connections being served."""
    waiting: int = 0
    """Connections in the accept queue."""
    open: bool = True
    on_starved: Callable[[float], object] | None = None
    """Called at each failure to accept a queued connection for lack of a descriptor, with the seconds to the next."""
    retry: float = 0.0
    """Seconds between the last failure to accept and the next; 0 while there is none."""
    bad_request: HttpResponse = field(default_factory=lambda: BAD_REQUEST)
    server: object | None = None
    """The server model behind the socket, for bulk traffic that bypasses the byte protocol (see `datastore`)."""
    _descriptor_freed: Change | None = None

    def covers(self, address: str) -> bool:
        return self.address in (ANY_ADDRESS, "::", address) or (address == "::1" and self.address == LOOPBACK)

    def close(self) -> None:
        if self.open:
            self.open = False
            self.owner.keep_sockets(-1)
            self.namespace.forget(self)
            if self._descriptor_freed is not None:
                self._descriptor_freed.notify()

    async def accept(self) -> Outcome:
        """Wait until the process accepts the connection; after CONNECTED the caller must call `leave` at the end."""
        if not self.open:
            return Outcome.REFUSED
        if self.owner.take_descriptor():
            self.accepted += 1
            return Outcome.CONNECTED
        if self.waiting >= self.backlog:
            return Outcome.TIMEOUT
        self.waiting += 1
        if self.waiting == 1:
            self._starvation_changed()
            if self.on_starved is not None and not self.retry:
                self._failed(FIRST_RETRY)
        try:
            while not self.owner.take_descriptor():
                await self._freed().wait()
                if self.namespace.find(self.address, self.port, self.protocol) is not self:
                    return Outcome.RESET
            self.accepted += 1
            if self.retry:
                self.retry = FIRST_RETRY / 2
            return Outcome.CONNECTED
        finally:
            self.waiting -= 1
            if not self.waiting:
                self._starvation_changed()

    def _failed(self, retry: float) -> None:
        """Report that the process could not accept a queued connection; it will try again."""
        self.retry = retry
        if self.on_starved is not None:
            self.on_starved(retry)
        self.namespace.clock.after(retry, self._accept_again)

    def _accept_again(self) -> None:
        if self.open and self.waiting:
            self._failed(min(2 * self.retry, LAST_RETRY))
        else:
            self.retry = 0.0

    @property
    def starved(self) -> bool:
        """Whether queued connections cannot be accepted for lack of descriptors."""
        return self.waiting > 0

    def _starvation_changed(self) -> None:
        if self.namespace.changed is not None:
            self.namespace.changed()

    def leave(self) -> None:
        self.accepted -= 1
        self.owner.give_descriptor_back()
        if self._descriptor_freed is not None:
            self._descriptor_freed.notify()

    def _freed(self) -> Change:
        if self._descriptor_freed is None:
            self._descriptor_freed = Change(self.namespace.clock)
        return self._descriptor_freed

    def connect(self, client: tuple[str, int], server: tuple[str, int]) -> Connection:
        """Deliver an established connection to the process and return the client's end."""
        clock = self.namespace.clock
        near, far = connection_pair(clock, client, server)
        self.namespace.connections[far] = None
        clock.spawn(self._serve(near, far))
        return near

    async def _serve(self, near: Connection, far: Connection) -> None:
        outcome = await self.accept()
        try:
            if outcome is Outcome.CONNECTED:
                far.owner = self.owner
                task = self.owner.spawn_thread(self._converse(far))
                await task.done.wait()
                if task.done.value is not True:
                    near.mark_reset()
                self.leave()
            else:
                near.mark_reset()
        finally:
            far.close()
            self.namespace.connections.pop(far, None)

    async def _converse(self, connection: Connection) -> bool:
        try:
            if self.stream is not None:
                await self.stream(connection)
            elif self.http is not None:
                await serve_http(connection, self.http, self.bad_request)
            elif self.grpc_health is not None:
                await connection.read()
        except OSError:
            return False
        return True

    async def answer_http(self, request: HttpRequest, peer: tuple[str, int], server: tuple[str, int]) -> HttpResult:
        """One request over its own connection, without encoding to bytes where both sides use HTTP."""
        if request.tls and self.tls is None:
            return HttpResult(Outcome.TLS_ERROR, connected=True)
        if self.tls is not None and not request.tls:
            text = "Client sent an HTTP request to an HTTPS server.\n"
            return HttpResult(Outcome.CONNECTED, HttpResponse.text(text, 400), connected=True)
        identity = self.tls
        if identity is not None:
            identity = self.identify(request.server_name) if self.identify is not None else identity
            if request.accepts is not None and not request.accepts(identity):
                return HttpResult(Outcome.TLS_ERROR, connected=True, identity=identity)
        if self.http is None:
            return await http_over(self.connect(peer, server), request)
        outcome = await self.accept()
        if outcome is not Outcome.CONNECTED:
            return HttpResult(outcome, connected=outcome is not Outcome.TIMEOUT)
        task = self.owner.spawn_thread(self.http(request))
        try:
            await task.done.wait()
        finally:
            self.leave()
        response = task.done.value
        if not isinstance(response, HttpResponse):
            return HttpResult(Outcome.RESET, connected=True)
        if request.method == "HEAD" and response.body:
            response = HttpResponse(response.status, b"", response.headers, response.reason)
        return HttpResult(Outcome.CONNECTED, response, connected=True, identity=identity)

    async def answer_grpc_health(self, service: str) -> GrpcResult:
        """The result of `grpc.health.v1.Health/Check`; a server without gRPC resets the stream."""
        if self.grpc_health is None:
            if self.http is not None or self.stream is not None:
                return GrpcResult(Outcome.PROTOCOL_ERROR, connected=True)
            return GrpcResult(Outcome.CONNECTED, GrpcHealth.UNIMPLEMENTED, connected=True)
        outcome = await self.accept()
        if outcome is not Outcome.CONNECTED:
            return GrpcResult(outcome)
        task = self.owner.spawn_thread(self.grpc_health(service))
        try:
            await task.done.wait()
        finally:
            self.leave()
        if task.done.value is None:
            return GrpcResult(Outcome.RESET, connected=True)
        return GrpcResult(Outcome.CONNECTED, task.done.value, connected=True)


@dataclass(eq=False, slots=True)
class NetworkNamespace:
    """The sockets of one pod sandbox, or of a node."""

    clock: Clock
    addresses: tuple[str, ...] = ()
    """Addresses of the interfaces other than lo, primary first."""
    interface: str = "eth0"
    dummies: list[str] = field(default_factory=list)
    """Interfaces of type dummy, made with `ip link add`."""
    connections: dict[Connection, None] = field(default_factory=dict)
    """Ends of established connections, oldest first."""
    changed: Callable[[], object] | None = None
    """Called after each change of the listeners, so that the network can cache them."""
    bulk: BulkConnections | None = None
    """Connections of bulk traffic."""
    carried: Carried = field(default_factory=Carried)
    tracked: Callable[[], tuple[int, int]] | None = None
    """Entries of the connection tracking table that concern the namespace, and the limit of the node's table."""
    settings: dict[str, str] = field(default_factory=dict)
    """Parameters in /proc/sys/net that were set."""
    configure: Callable[[str, str], bool] | None = None
    """Makes a new value of a parameter effective; False where it cannot be set here."""
    discipline: str = ""
    """Parameters of the netem queueing discipline of its interface, as tc prints them; empty without one."""
    _listeners: dict[tuple[str, int], list[Listener]] = field(default_factory=dict)
    _next_port: int = EPHEMERAL_PORTS.start

    @property
    def address(self) -> str:
        return self.addresses[0] if self.addresses else ""

    def listen(
        self,
        owner: SocketOwner,
        port: int,
        *,
        address: str = ANY_ADDRESS,
        protocol: str = "TCP",
        http: HttpHandler | None = None,
        stream: StreamHandler | None = None,
        grpc_health: GrpcHealthHandler | None = None,
        datagram: DatagramHandler | None = None,
        tls: TlsIdentity | None = None,
        identify: Callable[[str], TlsIdentity] | None = None,
        backlog: int = DEFAULT_BACKLOG,
    ) -> Listener:
        """Bind and listen. OSError EADDRINUSE, EADDRNOTAVAIL or EINVAL, as bind(2) returns them."""
        if address in ("", "*", "[::]"):
            address = ANY_ADDRESS
        if address == "localhost":
            address = LOOPBACK
        if not 0 <= port <= 65535:
            raise os_error(errno.EINVAL)
        if port == 0:
            port = self.ephemeral_port(protocol)
        taken = self._listeners.get((protocol, port), ())
        if any(ANY_ADDRESS in (other.address, address) or "::" in (other.address, address) for other in taken):
            raise os_error(errno.EADDRINUSE)
        if any(other.address == address for other in taken):
            raise os_error(errno.EADDRINUSE)
        if not self.is_local(address):
            raise os_error(errno.EADDRNOTAVAIL)
        listener = Listener(
            self, owner, port, address, protocol, http, stream, grpc_health, datagram, tls, identify, max(1, backlog)
        )
        owner.keep_sockets(1)
        self._listeners.setdefault((protocol, port), []).append(listener)
        if self.changed is not None:
            self.changed()
        return listener

    def is_local(self, address: str) -> bool:
        if address in (ANY_ADDRESS, "::") or address in self.addresses:
            return True
        return _is_loopback(address)

    def find(self, address: str, port: int, protocol: str = "TCP") -> Listener | None:
        """The listener on that address and port of this namespace."""
        found = self._listeners.get((protocol, port), ())
        return next((listener for listener in found if listener.covers(address)), None)

    def listeners(self) -> list[Listener]:
        return [listener for group in self._listeners.values() for listener in group]

    def sockets(self) -> Iterator[SocketEntry]:
        """Every socket: listening ones first, then established connections."""
        for listener in self.listeners():
            yield SocketEntry(listener.protocol, (listener.address, listener.port), NOBODY, listener.owner, listener)
        for one in self.connections:
            if not one.closed:
                yield SocketEntry("TCP", one.local, one.peer, one.owner)
        for bulk in self.bulk.entries() if self.bulk is not None else ():
            yield SocketEntry("TCP", bulk.local, bulk.peer, bulk.owner)

    def forget(self, listener: Listener) -> None:
        key = (listener.protocol, listener.port)
        rest = [other for other in self._listeners.get(key, ()) if other is not listener]
        if rest:
            self._listeners[key] = rest
        else:
            self._listeners.pop(key, None)
        if self.changed is not None:
            self.changed()

    def close_owned_by(self, owner: SocketOwner) -> None:
        for listener in self.listeners():
            if listener.owner is owner:
                listener.close()

    def ephemeral_port(self, protocol: str = "TCP") -> int:
        """A free ephemeral port."""
        for _ in EPHEMERAL_PORTS:
            port = self._next_port
            self._next_port = port + 1 if port + 1 in EPHEMERAL_PORTS else EPHEMERAL_PORTS.start
            if (protocol, port) not in self._listeners:
                return port
        raise os_error(errno.EADDRNOTAVAIL)


def _is_loopback(text: str) -> bool:
    try:
        return ip_address(text).is_loopback
    except ValueError:
        return False
