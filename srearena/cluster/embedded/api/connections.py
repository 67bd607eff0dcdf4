"""What is particular to a client's connection: who it proved to be in TLS, how slow it may be, when it is gone.

uvicorn's protocols parse and write; the subclasses here add what they leave to the deployment. A client that is slow
to send its request or stops reading the response is disconnected; headers are bounded; handlers of long responses
can be notified of a disconnect (`Connection.on_lost`) without a task of their own. Nothing is logged: errors of
clients are reported to the clients only.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request as HandshakeRequest

REQUEST_SECONDS = 60.0
"""How long a client may take to send one request, body included."""
STALL_SECONDS = 30.0
"""How long a client may leave a full buffer unread."""
KEEP_ALIVE_SECONDS = 180
HEADER_LIMIT = 64 * 1024
"""Bytes of request line and headers together."""
_LINGER_SECONDS = 0.5
_READ_AHEAD = 256 * 1024
"""Bytes of a raw connection that may wait to be read."""
EXTENSION = "srearena.connection"
_SUBPROTOCOLS = "Sec-WebSocket-Protocol"

_log = logging.getLogger(__name__)
_log.addFilter(lambda record: record.exc_info is not None)
"""Only exceptions: uvicorn also reports clients that disconnect and requests that it cannot parse."""


class Connection:
    """One client's connection, as requests on it see it (`scope["extensions"]["srearena.connection"]`)."""

    __slots__ = (
        "_in_use",
        "_lost_callbacks",
        "_take_over",
        "_transport",
        "certificate_digest",
        "common_name",
        "lost",
        "organizations",
    )

    def __init__(
        self,
        transport: asyncio.Transport,
        in_use: Callable[[], bool] = lambda: True,
        take_over: Callable[[], RawConnection] | None = None,
    ) -> None:
        self._transport = transport
        self._in_use = in_use
        self._take_over = take_over
        self._lost_callbacks: list[Callable[[], object]] = []
        self.lost = False
        self.common_name = ""
        self.organizations: tuple[str, ...] = ()
        # The certificate was verified against our authority in the handshake; there is none otherwise.
        certificate: dict[str, Any] = transport.get_extra_info("peercert") or {}
        subject = [pair for part in certificate.get("subject", ()) for pair in part]
        self.common_name = next((value for key, value in subject if key == "commonName"), "")
        self.organizations = tuple(value for key, value in subject if key == "organizationName")
        tls = transport.get_extra_info("ssl_object") if certificate else None
        encoded = tls.getpeercert(binary_form=True) if tls is not None else b""
        self.certificate_digest = hashlib.sha256(encoded).hexdigest() if encoded else ""
        """SHA-256 of the client's certificate, by which the server tells credentials of one user apart."""

    def on_lost(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call back once the client is gone; call the result when it does not matter any more."""
        if self.lost:
            callback()
            return lambda: None
        self._lost_callbacks.append(callback)

        def forget() -> None:
            if callback in self._lost_callbacks:
                self._lost_callbacks.remove(callback)

        return forget

    @property
    def can_be_taken_over(self) -> bool:
        return self._take_over is not None

    def take_over(self) -> RawConnection:
        """Leave HTTP in the middle of a request: what is read and written from now on is the caller's business."""
        assert self._take_over is not None
        self._in_use = lambda: True
        return self._take_over()

    def lose(self) -> None:
        self.lost = True
        callbacks, self._lost_callbacks = self._lost_callbacks, []
        for callback in callbacks:
            callback()

    def abort(self) -> None:
        """Drop the connection at once, whatever is still unsent."""
        self._transport.abort()

    def abort_request(self) -> None:
        """Drop the connection if a request is in progress; the client may be about to reuse an idle one."""
        if self._in_use():
            self.abort()


class RawConnection(asyncio.Protocol):
    """A connection that has left HTTP for another protocol: bytes as they come, with back-pressure both ways."""

    def __init__(self, transport: asyncio.Transport, connection: Connection, connections: set[Any]) -> None:
        self.transport = transport
        self._connection = connection
        self._connections = connections
        self._received = bytearray()
        self._arrived = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._stalled: asyncio.TimerHandle | None = None
        self._ended = False
        connections.add(self)

    async def read(self) -> bytes:
        """What has come since the last call; empty once the client has ended the connection."""
        while not self._received and not self._ended:
            self._arrived.clear()
            await self._arrived.wait()
        data = bytes(self._received)
        self._received.clear()
        if not self._connection.lost:
            self.transport.resume_reading()
        return data

    async def write(self, data: bytes) -> None:
        await self._writable.wait()
        if not self._connection.lost:
            self.transport.write(data)

    def close(self) -> None:
        """Close when all that was written is sent."""
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        self._received += data
        if len(self._received) > _READ_AHEAD:
            self.transport.pause_reading()
        self._arrived.set()

    def eof_received(self) -> None:
        self._ended = True
        self._arrived.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.eof_received()
        self._writable.set()
        if self._stalled is not None:
            self._stalled.cancel()
        self._connections.discard(self)
        self._connection.lose()

    def pause_writing(self) -> None:
        self._writable.clear()
        self._stalled = asyncio.get_running_loop().call_later(STALL_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        self._writable.set()
        if self._stalled is not None:
            self._stalled.cancel()


class HttpConnection(HttpToolsProtocol):
    """HTTP/1.1 with the limits above."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.logger = self.access_logger = _log
        self.access_log = False
        self._connection: Connection | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._in_headers = True
        self._header_bytes = 0
        self._refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._connection = Connection(transport, self._has_request, self._take_over)
        self._deadline = self.loop.call_later(REQUEST_SECONDS, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel(self._deadline)
        self._cancel(self._stalled)
        super().connection_lost(exc)
        if self._connection is not None:
            self._connection.lose()

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        if self._in_headers:
            self._header_bytes += len(data)
        super().data_received(data)
        if self._in_headers and self._header_bytes > HEADER_LIMIT and not self.transport.is_closing():
            self._refuse_headers()

    def handle_websocket_upgrade(self) -> None:
        self._cancel(self._deadline)
        super().handle_websocket_upgrade()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {EXTENSION: {"connection": self._connection}}
        if self._deadline is None:
            self._deadline = self.loop.call_later(REQUEST_SECONDS, self.transport.abort)

    def on_headers_complete(self) -> None:
        self._in_headers = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._cancel(self._deadline)
        self._deadline = None
        self._in_headers = True
        self._header_bytes = 0
        super().on_message_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stalled = self.loop.call_later(STALL_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._cancel(self._stalled)

    def _has_request(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _take_over(self) -> RawConnection:
        self._cancel(self._deadline)
        self._cancel(self._stalled)
        self._unset_keepalive_if_required()
        # uvicorn would answer a request that its application has not.
        self.cycle.response_started = self.cycle.response_complete = True
        self.connections.discard(self)
        assert self._connection is not None
        raw = RawConnection(self.transport, self._connection, self.connections)
        self.transport.set_protocol(raw)
        return raw

    def _refuse_headers(self) -> None:
        text = b"431 Request Header Fields Too Large"
        head = b"HTTP/1.1 %s\r\ncontent-type: text/plain; charset=utf-8\r\nconnection: close\r\n\r\n%s"
        self.transport.write(head % (text, text))
        # Closing while the client still sends would reset the connection, and the answer with it.
        self._refused = True
        self._cancel(self._deadline)
        self._deadline = self.loop.call_later(_LINGER_SECONDS, self.transport.abort)

    @staticmethod
    def _cancel(timer: asyncio.TimerHandle | None) -> None:
        if timer is not None:
            timer.cancel()


class WebSocketConnection(WebSocketsSansIOProtocol):
    """WebSocket under the same rules; uvicorn pings idle clients and drops those that do not answer."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.logger = _log
        self._connection: Connection | None = None
        self._stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._connection = Connection(self.transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
        super().connection_lost(exc)
        if self._connection is not None:
            self._connection.lose()

    def handle_connect(self, event: HandshakeRequest) -> None:
        # The library refuses subprotocols with a slash in them, such as kubectl's SPDY/3.1+portforward.k8s.io;
        # so it does not see them, and the application chooses.
        offered = [token.strip() for value in event.headers.get_all(_SUBPROTOCOLS) for token in value.split(",")]
        if offered:
            del event.headers[_SUBPROTOCOLS]
        super().handle_connect(event)
        if self.response.status_code == 101:
            self.scope["subprotocols"] = offered

    async def run_asgi(self) -> None:
        extensions: dict[str, Any] = self.scope["extensions"]
        extensions[EXTENSION] = {"connection": self._connection}
        await super().run_asgi()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stalled = self.loop.call_later(STALL_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stalled is not None:
            self._stalled.cancel()
