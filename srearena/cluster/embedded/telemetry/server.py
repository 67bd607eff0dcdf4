"""HTTP server of the telemetry: Prometheus, Loki, Jaeger and Alertmanager, each on a loopback port of its own.

All require the same token, as a bearer token or as the password of any user, so that `http://user:token@host:port`
works with clients that support nothing else. `before_request` advances virtual time before a query is evaluated.
Responses are compressed where the client accepts it, and scripts of other origins may read those of Prometheus and
Alertmanager, as by default in the real programs.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import gzip
import hmac
import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any
from urllib.parse import parse_qs

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from srearena.cluster.embedded.listening import HOST, Listener
from srearena.cluster.embedded.telemetry.front_page import front_page
from srearena.cluster.embedded.telemetry.query_api import FollowableApi, QueryApi, Response, text_response

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

MAX_BODY = 1 << 20
"""Bytes. Chosen: far above any query."""
KEEP_ALIVE_SECONDS = 60
COMPRESSED_FROM = 1024
"""Bytes of a body from which on compressing it is worth the time. Chosen."""
FOLLOWING_SECONDS = 0.5
"""Real seconds between two looks at what a client follows. Chosen: Loki sends what is new about once a second."""
_FORM = b"application/x-www-form-urlencoded"
_CROSS_ORIGIN = frozenset(("prometheus", "alertmanager"))
_CORS = {
    "access-control-allow-headers": "Accept, Authorization, Content-Type, Origin",
    "access-control-allow-methods": "GET, POST, OPTIONS",
    "access-control-allow-origin": "*",
    "access-control-expose-headers": "Date",
}
_UNAUTHORIZED = "Unauthorized: send the telemetry token as a bearer token, or as the password of any user\n"
_log = logging.getLogger(__name__)


class TelemetryServer:
    """Serves query APIs by name. The ports are assigned at start."""

    def __init__(
        self,
        apis: Mapping[str, QueryApi],
        token: str,
        connection: type[HttpToolsProtocol] = HttpToolsProtocol,
        *,
        cluster: str = "",
    ) -> None:
        """With the name of a `cluster`, `/` of each address is a page that says where to look."""
        self._token = token
        self.before_request: Callable[[], object] = lambda: None
        self._connection = connection
        self._endpoints = {
            name: (
                _Endpoint(
                    api,
                    token,
                    lambda: self.before_request(),
                    cross_origin=name in _CROSS_ORIGIN,
                    page=front_page(name, cluster) if cluster else None,
                ),
                Listener(),
            )
            for name, api in apis.items()
        }

    def url(self, name: str) -> str:
        return f"http://{HOST}:{self._endpoints[name][1].port}"

    def urls(self) -> dict[str, str]:
        return {name: self.url(name) for name in self._endpoints}

    async def start(self) -> None:
        for endpoint, listener in self._endpoints.values():
            await listener.start(
                endpoint,
                self._connection,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                ws=WebSocketsSansIOProtocol,
                ws_per_message_deflate=False,
            )

    async def stop(self) -> None:
        for _, listener in self._endpoints.values():
            await listener.stop()

    @property
    def token(self) -> str:
        return self._token

    @token.setter
    def token(self, value: str) -> None:
        self._token = value
        for endpoint, _ in self._endpoints.values():
            endpoint.token = value.encode()

    @property
    def listeners(self) -> list[Listener]:
        return [listener for _, listener in self._endpoints.values()]


class _Endpoint:
    """One API as an ASGI application."""

    def __init__(
        self,
        api: QueryApi,
        token: str,
        before_request: Callable[[], object],
        *,
        cross_origin: bool = False,
        page: Response | None = None,
    ) -> None:
        self._api = api
        self._cross_origin = cross_origin
        self._page = page
        self.token = token.encode()
        self._before_request = before_request

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._follow(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        status, headers, body = await self._respond(scope, receive)
        names = dict(headers)
        received: dict[bytes, bytes] = dict(scope["headers"])
        if self._cross_origin:
            names["vary"] = "Origin"
            if b"origin" in received:
                names |= _CORS
        if len(body) >= COMPRESSED_FROM and b"gzip" in received.get(b"accept-encoding", b""):
            names["content-encoding"] = "gzip"
            names["vary"] = "Accept-Encoding, Origin" if self._cross_origin else "Accept-Encoding"
            body = gzip.compress(body, compresslevel=1, mtime=0)
        names["content-length"] = str(len(body))
        if status == 401:
            names["www-authenticate"] = 'Basic realm="telemetry"'
        wire = [(name.encode(), value.encode()) for name, value in names.items()]
        await send({"type": "http.response.start", "status": status, "headers": wire})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    async def _respond(self, scope: Scope, receive: Receive) -> Response:
        headers: dict[bytes, bytes] = dict(scope["headers"])
        if self._cross_origin and scope["method"] == "OPTIONS":
            return 204, {}, b""  # browsers ask without credentials what they may send
        if self._page is not None and scope["path"] == "/" and scope["method"] in ("GET", "HEAD"):
            return self._page  # without the token: it holds no data
        if not self._admits(headers.get(b"authorization", b"")):
            return text_response(_UNAUTHORIZED, 401)
        params = _parameters(scope["query_string"])
        if scope["method"] == "POST":
            body = await _body(receive)
            if body is None:
                return text_response(f"request body is larger than {MAX_BODY} bytes\n", 413)
            if headers.get(b"content-type", b"").split(b";")[0].strip().lower() == _FORM:
                params = _parameters(body) | params
        try:
            self._before_request()
            return self._api.handle(scope["method"], scope["path"], params)
        except Exception:
            _log.exception("a telemetry query failed: %s %s", scope["method"], scope["path"])
            return text_response("Internal Server Error\n", 500)

    async def _follow(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send what comes up at a path through a WebSocket, until the client leaves."""
        headers: dict[bytes, bytes] = dict(scope["headers"])
        await receive()
        following = None
        if self._admits(headers.get(b"authorization", b"")) and isinstance(self._api, FollowableApi):
            following = self._api.follow(scope["path"], _parameters(scope["query_string"]))
        if following is None:
            await send({"type": "websocket.close", "code": 1008})  # before it is accepted: a 403
            return
        await send({"type": "websocket.accept"})
        leaving = asyncio.ensure_future(_disconnected(receive))
        try:
            while not leaving.done():
                self._before_request()
                if message := following.message():
                    await send({"type": "websocket.send", "text": message.decode()})
                await asyncio.wait([leaving], timeout=FOLLOWING_SECONDS)
        finally:
            leaving.cancel()

    def _admits(self, authorization: bytes) -> bool:
        scheme, _, credentials = authorization.partition(b" ")
        token = credentials.strip()
        if scheme.lower() == b"basic":
            try:
                token = base64.b64decode(token, validate=True).partition(b":")[2]
            except binascii.Error:
                return False
        elif scheme.lower() != b"bearer":
            return False
        return hmac.compare_digest(token, self.token)


def _parameters(text: bytes) -> dict[str, list[str]]:
    return parse_qs(text.decode("utf-8", "replace"), keep_blank_values=True, errors="replace")


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "websocket.disconnect":
        pass  # what clients send is of no interest


async def _body(receive: Receive) -> bytes | None:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        part = message.get("body", b"")
        size += len(part)
        if size > MAX_BODY:
            return None
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)
