"""The WebSocket side of exec, attach and port-forward: subprotocols, and channels in the first byte of each message."""

from __future__ import annotations

import base64
from typing import Final, Protocol

from srearena.cluster.embedded.api.requests import Disconnected, Message, Request, Send

V5: Final = "v5.channel.k8s.io"
V4: Final = "v4.channel.k8s.io"
CHANNEL_PROTOCOLS: Final = (V5, V4, "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io")
STATUS_PROTOCOLS: Final = frozenset({V5, V4})
"""Those in which the error channel ends with a Status."""
BINARY: Final = "binary.k8s.io"
"""A stream without channels."""
_BASE64: Final = "base64.channel.k8s.io"
STDIN, STDOUT, STDERR, ERROR, RESIZE = range(5)
"""Channels of exec and attach."""
TUNNEL: Final = "SPDY/3.1+portforward.k8s.io"
"""SPDY inside the binary messages of a WebSocket."""
CLOSE: Final = 255
"""In v5, a message on this channel closes the one named by its first byte."""
NORMAL_CLOSURE: Final = 1000
PROTOCOL_ERROR: Final = 1002


class Socket(Protocol):
    """A connection of channels, whatever protocol carries them."""

    request: Request
    protocol: str

    def choose(self, supported: tuple[str, ...]) -> bool:
        """Agree on the first of the client's subprotocols that is supported; whether there is one."""

    async def accept(self) -> None: ...

    async def send(self, channel: int, data: bytes) -> None: ...

    async def send_raw(self, data: bytes) -> None: ...

    async def receive(self) -> tuple[int, bytes] | None:
        """The next message and its channel; None when the client is gone."""

    async def receive_raw(self) -> bytes | None: ...

    def closes(self, channel: int) -> bool:
        """Whether messages on this channel close the channel named by their first byte."""

    async def close(self, code: int = NORMAL_CLOSURE, reason: str = "") -> None: ...


class WebSocket:
    """The connection of a request that asked to become one."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self._receive = request.receive
        self._send = request.send
        self.protocol = ""
        self._text = False

    def choose(self, supported: tuple[str, ...]) -> bool:
        """Agree on the first of the client's subprotocols that is supported; none asked for is the oldest."""
        offered: list[str] = list(self.request.scope.get("subprotocols") or ())
        for protocol in offered:
            plain = protocol.replace("base64.", "")
            if plain in supported:
                self.protocol = protocol
                self._text = "base64." in protocol
                return True
        return not offered

    async def accept(self) -> None:
        await self._receive()  # websocket.connect
        message: dict[str, object] = {"type": "websocket.accept"}
        if self.protocol:
            message["subprotocol"] = self.protocol
        await self._transmit(message)
        self.request.upgraded()

    async def send(self, channel: int, data: bytes) -> None:
        await self.send_raw(bytes((channel,)) + data)

    async def send_raw(self, data: bytes) -> None:
        if self._text:
            text = f"{data[0]}{base64.b64encode(data[1:]).decode()}"
            await self._transmit({"type": "websocket.send", "text": text})
        else:
            await self._transmit({"type": "websocket.send", "bytes": data})

    async def receive(self) -> tuple[int, bytes] | None:
        """The next message and its channel; None when the client is gone."""
        raw = await self.receive_raw()
        while raw is not None and not raw:
            raw = await self.receive_raw()
        return None if raw is None else (raw[0], raw[1:])

    async def receive_raw(self) -> bytes | None:
        message = await self._receive()
        if message["type"] != "websocket.receive":
            return None
        data: bytes | None = message.get("bytes")
        if data is not None:
            return data
        text: str = message.get("text") or ""
        if not self._text:
            return text.encode()
        try:
            return bytes((int(text[:1] or "0"),)) + base64.b64decode(text[1:])
        except ValueError:
            return None

    def closes(self, channel: int) -> bool:
        return channel == CLOSE and self.protocol == V5

    async def close(self, code: int = NORMAL_CLOSURE, reason: str = "") -> None:
        await self._transmit({"type": "websocket.close", "code": code, "reason": reason[:120]})

    async def _transmit(self, message: dict[str, object]) -> None:
        if self.request.gone:
            raise Disconnected
        try:
            await self._send(message)
        except OSError:  # uvicorn's ClientDisconnected is one
            raise Disconnected from None


def refusing(send: Send) -> Send:
    """Lets an ordinary response be sent on a connection that asked to become a WebSocket and will not."""

    async def send_either(message: Message) -> None:
        if message["type"].startswith("http."):
            message = {**message, "type": f"websocket.{message['type']}"}
        await send(message)

    return send_either
