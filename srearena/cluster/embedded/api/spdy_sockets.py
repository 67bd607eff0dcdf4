"""exec, attach and port-forward for clients that upgrade to SPDY/3.1: kubectl before 1.31, and many programs in Go.

Such a connection has the interface of a WebSocket (`sockets`), so that the handlers know no difference. A channel is a
SPDY stream that the client opens and labels with its kind. Port-forwarding speaks SPDY itself and gets the bytes.
"""

from __future__ import annotations

import asyncio
from typing import Final

from srearena.cluster.embedded.api.connections import RawConnection
from srearena.cluster.embedded.api.requests import Disconnected, Request
from srearena.cluster.embedded.api.sockets import (
    CHANNEL_PROTOCOLS,
    CLOSE,
    ERROR,
    NORMAL_CLOSURE,
    RESIZE,
    STDERR,
    STDIN,
    STDOUT,
    TUNNEL,
)
from srearena.cluster.embedded.api.spdy import (
    DataReceived,
    Event,
    Pinged,
    SpdyConnection,
    SpdyError,
    StreamOpened,
    StreamReset,
)

_VERSION: Final = "SPDY/3.1"
_PROTOCOL_HEADER: Final = "x-stream-protocol-version"
_FORWARDING: Final = "portforward.k8s.io"
_CHANNELS: Final = {"stdin": STDIN, "stdout": STDOUT, "stderr": STDERR, "error": ERROR, "resize": RESIZE}
_WITHOUT_RESIZE: Final = frozenset(("channel.k8s.io", "v2.channel.k8s.io"))
_SUBRESOURCES: Final = frozenset(("exec", "attach", "portforward"))
_STREAM_SECONDS: Final = 30.0
"""How long a client may take to open its streams, as in the kubelet."""


def asks_for_spdy(request: Request) -> bool:
    tokens = [token.strip().lower() for token in request.header("connection").split(",")]
    return (
        request.info.subresource in _SUBRESOURCES
        and "upgrade" in tokens
        and request.header("upgrade").lower() == _VERSION.lower()
        and request.connection is not None
        and request.connection.can_be_taken_over
    )


class SpdySocket:
    """The connection of a request that asked for SPDY."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.protocol = ""
        self._raw: RawConnection | None = None
        self._spdy = SpdyConnection()
        self._streams: dict[int, int] = {}
        """The stream of each channel."""
        self._events: list[Event] = []

    def choose(self, supported: tuple[str, ...]) -> bool:
        """Agree on the first of the client's protocols that is supported; none asked for is the oldest."""
        values = self.request.header_values(_PROTOCOL_HEADER)
        offered = [token.strip() for value in values for token in value.split(",")]
        if TUNNEL in supported:
            supported, oldest = (_FORWARDING,), _FORWARDING
        else:
            oldest = CHANNEL_PROTOCOLS[-1]
        chosen = next((protocol for protocol in offered or [oldest] if protocol in supported), "")
        self.protocol = TUNNEL if chosen == _FORWARDING else chosen
        return bool(chosen)

    async def accept(self) -> None:
        assert self.request.connection is not None
        if self.request.gone:
            raise Disconnected
        self._raw = self.request.connection.take_over()
        self.request.upgraded()
        protocol = _FORWARDING if self.protocol == TUNNEL else self.protocol
        head = ("HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", f"Upgrade: {_VERSION}")
        lines = (*head, f"X-Stream-Protocol-Version: {protocol}", "", "")
        await self.send_raw("\r\n".join(lines).encode("latin-1"))
        if self.protocol != TUNNEL:
            await self._await_streams()

    async def send(self, channel: int, data: bytes) -> None:
        stream = self._streams.get(channel)
        if stream is not None and data:
            await self.send_raw(self._spdy.data(stream, data))

    async def send_raw(self, data: bytes) -> None:
        assert self._raw is not None
        if self.request.gone:
            raise Disconnected
        await self._raw.write(data)

    async def receive(self) -> tuple[int, bytes] | None:
        """The next message and its channel; None when the client is gone, or breaks the protocol."""
        while True:
            while self._events:
                message = await self._message(self._events.pop(0))
                if message is not None:
                    return message
            try:
                if not await self._read():
                    return None
            except SpdyError:
                return None

    async def receive_raw(self) -> bytes | None:
        assert self._raw is not None
        return await self._raw.read() or None

    def closes(self, channel: int) -> bool:
        return channel == CLOSE

    async def close(self, code: int = NORMAL_CLOSURE, reason: str = "") -> None:
        """End all streams, say that there will be none more, and close; SPDY has no place for a code or a reason."""
        assert self._raw is not None
        for stream in self._streams.values():
            await self.send_raw(self._spdy.data(stream, b"", fin=True))
        await self.send_raw(self._spdy.go_away())
        self.hang_up()

    def hang_up(self) -> None:
        """Close the connection when what was written is sent; it serves no further request."""
        if self._raw is not None:
            self._raw.close()

    async def _await_streams(self) -> None:
        """Wait until the client has opened the streams that its query names."""
        query = self.request.query
        wanted = {ERROR} | {_CHANNELS[name] for name in ("stdin", "stdout", "stderr") if query.flag(name)}
        if query.flag("tty") and self.protocol not in _WITHOUT_RESIZE:
            wanted.add(RESIZE)
        early: list[Event] = []
        try:
            async with asyncio.timeout(_STREAM_SECONDS):
                while not wanted <= self._streams.keys():
                    if not self._events and not await self._read():
                        raise Disconnected
                    for event in self._events:
                        if isinstance(event, StreamOpened):
                            await self._message(event)
                        else:
                            early.append(event)
                    self._events.clear()
        except (TimeoutError, SpdyError):
            raise Disconnected from None
        self._events = early

    async def _read(self) -> bool:
        """Whether the client is still there."""
        data = await self.receive_raw()
        if data is not None:
            self._events += self._spdy.receive(data)
        return data is not None

    async def _message(self, event: Event) -> tuple[int, bytes] | None:
        if isinstance(event, StreamOpened):
            channel = _CHANNELS.get(event.headers.get("streamtype", ""))
            if channel is None or channel in self._streams:
                await self.send_raw(self._spdy.reset(event.stream))
            else:
                self._streams[channel] = event.stream
                await self.send_raw(self._spdy.reply(event.stream))
        elif isinstance(event, Pinged) and event.number % 2:
            await self.send_raw(self._spdy.ping(event.number))
        elif isinstance(event, DataReceived):
            return await self._data(event)
        elif isinstance(event, StreamReset):
            return self._closed(event.stream)
        return None

    async def _data(self, event: DataReceived) -> tuple[int, bytes] | None:
        channel = next((one for one, stream in self._streams.items() if stream == event.stream), None)
        if channel is None:
            return None
        if not event.fin:
            return channel, event.data
        if event.data:
            self._events.insert(0, DataReceived(event.stream, b"", True))
            return channel, event.data
        return self._closed(event.stream)

    def _closed(self, stream: int) -> tuple[int, bytes] | None:
        """What a WebSocket says where a client closes a channel."""
        channel = next((one for one, number in self._streams.items() if number == stream), None)
        return None if channel is None else (CLOSE, bytes((channel,)))
