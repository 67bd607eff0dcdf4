"""port-forward: connections from a client to what listens in a pod.

Two dialects. kubectl speaks SPDY, since 1.31 through a WebSocket: each forwarded connection is a pair of streams, one
for data and one for an error. Older clients name their ports up front and get a pair of channels for each. Either way a
connection enters the pod on its loopback interface, where no network policy is in the way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from srearena.cluster.embedded.api.pod_containers import reachable_agent, stored_pod
from srearena.cluster.embedded.api.remote_commands import UPGRADE_REQUIRED
from srearena.cluster.embedded.api.requests import Disconnected, Request
from srearena.cluster.embedded.api.sockets import PROTOCOL_ERROR, TUNNEL, V4, Socket
from srearena.cluster.embedded.api.spdy import (
    DataReceived,
    GoneAway,
    Pinged,
    SpdyConnection,
    SpdyError,
    StreamOpened,
    StreamReset,
)
from srearena.cluster.embedded.machine.files.streams import CHUNK
from srearena.cluster.embedded.machine.networking.sockets import Connection
from srearena.cluster.embedded.objects import Obj, dig, name_of
from srearena.cluster.embedded.registry.errors import ApiError, BadRequest, InternalError
from srearena.cluster.embedded.registry.resources import Resource

if TYPE_CHECKING:
    from srearena.cluster.embedded.api.backend import Backend

_LOOPBACK: Final = "127.0.0.1"
_MOST_CONNECTIONS: Final = 256
_QUEUE: Final = 32

Deliver = Callable[[bytes], Awaitable[None]]


class CannotForward(Exception):
    """Nothing in the pod takes the connection; the text is the container runtime's."""


def connect(backend: Backend, namespace: str, name: str, port: int) -> Connection:
    """A connection to a port of the pod, as it is now."""
    pod = backend.store.get("pods", namespace, name)
    sockets = backend.agent.sockets(pod) if pod is not None and backend.agent is not None else None
    if pod is None or sockets is None:
        raise CannotForward(f"error forwarding port {port} to pod {name}, uid : network namespace is closed")
    listener = sockets.find(_LOOPBACK, port)
    if listener is None:
        sandbox = dig(pod, "metadata", "uid", default="").replace("-", "")
        raise CannotForward(
            f"error forwarding port {port} to pod {sandbox}, uid : failed to execute portforward in network "
            f'namespace "/var/run/netns/cni-{sandbox[:8]}": failed to connect to localhost:{port} inside namespace '
            f'"{sandbox}", IPv4: dial tcp4 127.0.0.1:{port}: connect: connection refused IPv6 dial tcp6 '
            f"[::1]:{port}: connect: connection refused "
        )
    return listener.connect((_LOOPBACK, sockets.ephemeral_port()), (_LOOPBACK, port))


async def forward(backend: Backend, socket: Socket) -> None:
    request = socket.request
    pod = stored_pod(backend, request.info.namespace, request.info.name)
    if not dig(pod, "spec", "nodeName"):
        raise BadRequest(f"pod {name_of(pod)} does not have a host assigned")
    if not socket.choose((TUNNEL, V4)):
        raise BadRequest("unable to negotiate a subprotocol: none of those offered is supported")
    ports = [] if socket.protocol == TUNNEL else _ports(request)
    _check_running(backend, pod, request)
    await socket.accept()
    relay = _Relay(backend, request.info.namespace, request.info.name)
    try:
        if socket.protocol == TUNNEL:
            await _Tunnel(socket, relay).run()
        else:
            await _Channels(socket, relay, ports).run()
    except Disconnected:
        return
    except SpdyError as error:
        await socket.close(PROTOCOL_ERROR, str(error))
    finally:
        relay.close()


async def upgrade_required(backend: Backend, request: Request, row: Resource) -> None:
    stored_pod(backend, request.info.namespace, request.info.name)
    raise BadRequest(UPGRADE_REQUIRED)


def _check_running(backend: Backend, pod: Obj, request: Request) -> None:
    action = f"/portForward/{request.info.namespace}/{name_of(pod)}"
    try:
        reachable_agent(backend, pod, action)
    except ApiError as error:
        raise InternalError(f"error dialing backend: {error.message.partition(': ')[2]}") from None


def _ports(request: Request) -> list[int]:
    port_texts = [text for value in request.query.all("ports") for text in value.split(",")]
    if not port_texts:
        raise BadRequest('query parameter "port" is required')
    ports = []
    for text in port_texts:
        if not (text.isascii() and text.isdigit() and len(text) < 6 and 0 < int(text) < 65536):
            raise BadRequest(f"port {text[:20]!r} cannot be forwarded: must be between 1 and 65535")
        ports.append(int(text))
    if len(ports) > 100:
        raise BadRequest("too many ports")
    return ports


@dataclass(slots=True)
class _Relay:
    """Connections into the pod and the tasks that carry their bytes."""

    backend: Backend
    namespace: str
    name: str
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    connections: list[Connection] = field(default_factory=list)

    def open(self, port: int) -> Connection:
        if len(self.connections) >= _MOST_CONNECTIONS:
            self.connections = [connection for connection in self.connections if not connection.closed]
        if len(self.connections) >= _MOST_CONNECTIONS:
            raise CannotForward("too many connections")
        connection = connect(self.backend, self.namespace, self.name, port)
        self.connections.append(connection)
        return connection

    def start(self, work: Awaitable[None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled():
            task.exception()  # a client that went away is no news

    def close(self) -> None:
        for task in list(self.tasks):
            task.cancel()
        for connection in self.connections:
            connection.close()


async def _from_pod(connection: Connection, deliver: Deliver) -> None:
    """Deliver what the pod sends until it has said everything."""
    wake = asyncio.Event()
    pipe = connection.incoming
    pipe.watch(wake.set)
    try:
        while True:
            wake.clear()
            data = pipe.read_now(CHUNK)
            if data:
                await deliver(data)
            elif data == b"":
                return
            else:
                await wake.wait()
    finally:
        pipe.watch(None)


async def _to_pod(connection: Connection, queue: asyncio.Queue[bytes | None]) -> None:
    """Hand the pod what the client sends; None in the queue is its end."""
    room = asyncio.Event()
    pipe = connection.outgoing
    while (data := await queue.get()) is not None:
        while data and pipe.reader_open and pipe.writer_open:
            room.clear()
            data = data[pipe.write_now(data) :]
            if data:
                pipe.watch(room.set)
                await room.wait()
        pipe.watch(None)
    connection.close_writing()


@dataclass(slots=True)
class _Pair:
    """The two streams of one forwarded connection."""

    error: int = 0
    data: int = 0
    queue: asyncio.Queue[bytes | None] = field(default_factory=lambda: asyncio.Queue(_QUEUE))


class _Tunnel:
    """kubectl's dialect."""

    def __init__(self, socket: Socket, relay: _Relay) -> None:
        self._socket = socket
        self._relay = relay
        self._spdy = SpdyConnection()
        self._pairs: dict[str, _Pair] = {}
        self._by_stream: dict[int, _Pair] = {}

    async def run(self) -> None:
        while (raw := await self._socket.receive_raw()) is not None:
            for event in self._spdy.receive(raw):
                if isinstance(event, StreamOpened):
                    await self._opened(event)
                elif isinstance(event, DataReceived):
                    await self._received(event)
                elif isinstance(event, StreamReset):
                    self._forget(event.stream)
                elif isinstance(event, Pinged) and event.number % 2:
                    await self._socket.send_raw(self._spdy.ping(event.number))
                elif isinstance(event, GoneAway):
                    continue

    async def _opened(self, event: StreamOpened) -> None:
        port, kind = event.headers.get("port", ""), event.headers.get("streamtype", "")
        key = event.headers.get("requestid", "") or str(event.stream - 2 if kind == "data" else event.stream)
        if kind not in ("error", "data") or not port.isdigit() or not 0 < int(port[:6]) < 65536:
            await self._socket.send_raw(self._spdy.reset(event.stream))
            return
        await self._socket.send_raw(self._spdy.reply(event.stream))
        pair = self._pairs.setdefault(key, _Pair())
        self._by_stream[event.stream] = pair
        if kind == "error":
            pair.error = event.stream
        else:
            pair.data = event.stream
        if pair.error and pair.data:
            del self._pairs[key]
            self._relay.start(self._carry(pair, int(port)))

    async def _received(self, event: DataReceived) -> None:
        pair = self._by_stream.get(event.stream)
        if pair is None or pair.data != event.stream:
            return
        if event.data:
            await pair.queue.put(event.data)
        if event.fin:
            await pair.queue.put(None)

    def _forget(self, stream: int) -> None:
        pair = self._by_stream.pop(stream, None)
        if pair is not None and pair.data == stream and not pair.queue.full():
            pair.queue.put_nowait(None)

    async def _carry(self, pair: _Pair, port: int) -> None:
        spdy, socket = self._spdy, self._socket
        feeding: asyncio.Task[None] | None = None
        trouble = b""
        try:
            connection = self._relay.open(port)
            feeding = self._relay.start(_to_pod(connection, pair.queue))

            async def deliver(data: bytes) -> None:
                await socket.send_raw(spdy.data(pair.data, data))

            await _from_pod(connection, deliver)
            connection.close()
        except CannotForward as failure:
            trouble = str(failure).encode()
        finally:
            if feeding is not None:
                feeding.cancel()
            self._by_stream.pop(pair.data, None)
            self._by_stream.pop(pair.error, None)
        if trouble:
            await socket.send_raw(spdy.data(pair.error, trouble))
        await socket.send_raw(spdy.data(pair.data, b"", fin=True))
        await socket.send_raw(spdy.data(pair.error, b"", fin=True))


class _Channels:
    """The older dialect: channels 2n and 2n+1 are data and error of the n-th port."""

    def __init__(self, socket: Socket, relay: _Relay, ports: list[int]) -> None:
        self._socket = socket
        self._relay = relay
        self._ports = ports
        self._queues: list[asyncio.Queue[bytes | None]] = [asyncio.Queue(_QUEUE) for _ in ports]

    async def run(self) -> None:
        for number, port in enumerate(self._ports):
            for channel in (2 * number, 2 * number + 1):
                await self._socket.send(channel, port.to_bytes(2, "little"))
        for number, port in enumerate(self._ports):
            self._relay.start(self._carry(number, port))
        while (message := await self._socket.receive()) is not None:
            channel, data = message
            if channel % 2 == 0 and channel // 2 < len(self._queues):
                await self._queues[channel // 2].put(data)

    async def _carry(self, number: int, port: int) -> None:
        async def deliver(data: bytes) -> None:
            await self._socket.send(2 * number, data)

        try:
            connection = self._relay.open(port)
        except CannotForward as failure:
            await self._socket.send(2 * number + 1, str(failure).encode())
            return
        self._relay.start(_to_pod(connection, self._queues[number]))
        await _from_pod(connection, deliver)
        connection.close()
