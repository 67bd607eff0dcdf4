"""The API for the harness in the same process: requests go to the application without a socket, TLS or HTTP's text.

They run in the loop that serves the API, as those from outside do, with the same authentication, RBAC, admission and
handlers, and with the headers that an HTTP client would have sent. What is left out is half of what a request costs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from urllib.parse import unquote

from srearena.cluster.embedded.api.application import Application
from srearena.cluster.embedded.api.connections import EXTENSION, Connection
from srearena.cluster.embedded.api.requests import Message, Scope
from srearena.cluster.embedded.registry.identity import AUTHENTICATED, User

Head = tuple[int, list[tuple[str, str]]]
"""Status and headers of a response."""


class NoResponse(Exception):
    """The server has stopped before it answered, or has dropped the connection."""


class DirectRequests:
    """Carries requests of one user to the application."""

    def __init__(self, application: Application, user: User) -> None:
        self._application = application
        self._user = user

    async def request(
        self, method: str, target: str, headers: Mapping[str, str], content: bytes | None
    ) -> tuple[Head, bytes]:
        """One request; the response of any status."""
        exchange = _Exchange(self._user, [{"type": "http.request", "body": content or b"", "more_body": False}])
        scope = self._scope(exchange, "http", target, headers)
        await self._application({**scope, "method": method}, exchange.receive, exchange.send)
        return exchange.head(), b"".join(exchange.body)

    async def converse(
        self,
        target: str,
        headers: Mapping[str, str],
        subprotocols: Sequence[str],
        messages: Sequence[bytes],
        patience: float | None,
    ) -> tuple[Head, list[bytes]]:
        """A WebSocket on which these messages are sent; those that came back until the server closed it.

        The status is 101, or that of a refusal, whose body is the only message. TimeoutError where nothing comes for
        `patience` real seconds.
        """
        sent: list[Message] = [{"type": "websocket.receive", "bytes": message} for message in messages]
        exchange = _Exchange(self._user, [{"type": "websocket.connect"}, *sent])
        scope = {**self._scope(exchange, "websocket", target, headers), "subprotocols": list(subprotocols)}
        serving = asyncio.ensure_future(self._application(scope, exchange.receive, exchange.send))
        try:
            while not serving.done():
                before = len(exchange.body)
                await asyncio.wait({serving}, timeout=patience)
                if not serving.done() and len(exchange.body) == before:
                    raise TimeoutError
            await serving
        finally:
            serving.cancel()
            await asyncio.wait({serving})
        return exchange.head(), exchange.body

    def _scope(self, exchange: _Exchange, kind: str, target: str, headers: Mapping[str, str]) -> Scope:
        path, _, query = target.partition("?")
        return {
            "type": kind,
            "path": unquote(path),
            "query_string": query.encode("ascii"),
            "headers": [(name.lower().encode("latin-1"), text.encode("latin-1")) for name, text in headers.items()],
            "extensions": {EXTENSION: {"connection": Connection(exchange)}},
        }


class _Exchange(asyncio.Transport):
    """The client's side of one request, as ASGI sees it, and the connection that it would have."""

    def __init__(self, user: User, messages: Sequence[Message]) -> None:
        groups = [(("organizationName", group),) for group in user.groups if group != AUTHENTICATED]
        super().__init__({"peercert": {"subject": (*groups, (("commonName", user.name),))}})
        self._unread = list(reversed(messages))
        self._aborted = False
        self._head: Head | None = None
        self.body: list[bytes] = []

    async def receive(self) -> Message:
        if not self._unread:
            await asyncio.Event().wait()  # the client waits for the response; its patience is the caller's business
        return self._unread.pop()

    async def send(self, message: Message) -> None:
        match message["type"]:
            case "http.response.start" | "websocket.http.response.start":
                fields: list[tuple[bytes, bytes]] = list(message["headers"])
                headers = [(name.decode("latin-1"), text.decode("latin-1")) for name, text in fields]
                self._head = int(message["status"]), headers
            case "http.response.body" | "websocket.http.response.body":
                self.body.append(message.get("body", b""))
            case "websocket.accept":
                self._head = 101, []
            case "websocket.send":
                self.body.append(message["bytes"])

    def abort(self) -> None:
        """The server drops the connection."""
        self._aborted = True

    def head(self) -> Head:
        if self._head is None or self._aborted:
            raise NoResponse
        return self._head
