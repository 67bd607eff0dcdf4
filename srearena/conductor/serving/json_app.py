"""The ground of our JSON APIs: routes, a bearer token, bounded bodies, errors in words, the loopback interface."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from hmac import compare_digest
from typing import Any

import uvicorn

_LARGEST_BODY = 1_048_576
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Handler = Callable[..., Awaitable[dict[str, Any]]]


class Refused(Exception):
    """A request that is answered with an error status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class JsonApp:
    """An ASGI application: each route is a handler of the body, and of what stands at `{...}` in its path."""

    def __init__(self, token: str, routes: Mapping[tuple[str, str], Handler], public: tuple[str, ...] = ()) -> None:
        self._token = token
        self._public = public
        """Paths that need no token."""
        self._routes = [(method, _pattern(path), handler) for (method, path), handler in routes.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            status, answer = 200, await self._respond(scope, receive)
        except Refused as refused:
            status, answer = refused.status, {"error": str(refused)}
        body = json.dumps(answer, default=str).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})
        self.answered()

    def answered(self) -> None:
        """Called after every response."""

    async def handle(self, handler: Handler, body: Any, parameters: dict[str, str]) -> dict[str, Any]:
        return await handler(body, **parameters)

    async def _respond(self, scope: Scope, receive: Receive) -> dict[str, Any]:
        method, path = scope["method"], scope["path"]
        matches = [(verb, found, handler) for verb, pattern, handler in self._routes if (found := pattern(path))]
        chosen = [(found, handler) for verb, found, handler in matches if verb == method]
        if not chosen:
            raise Refused(405 if matches else 404, f"there is no {method} {path[:200]}: see /openapi.json")
        if path not in self._public:
            self._authenticate(scope)
        found, handler = chosen[0]
        return await self.handle(handler, await read_body(receive), found.groupdict())

    def _authenticate(self, scope: Scope) -> None:
        header = dict(scope["headers"]).get(b"authorization", b"")
        if not compare_digest(header, f"Bearer {self._token}".encode()):
            raise Refused(401, "send the header `Authorization: Bearer TOKEN` with the token that was printed")


def _pattern(path: str) -> Callable[[str], re.Match[str] | None]:
    """A matcher of whole paths, in which `{name}` stands for one segment."""
    segments = (f"(?P<{part[1:-1]}>[^/]+)" if part.startswith("{") else re.escape(part) for part in path.split("/"))
    return re.compile("/".join(segments)).fullmatch


async def read_body(receive: Receive) -> Any:
    """The body as JSON, None where there is none; Refused where it is too long or something else."""
    data = b""
    while True:
        message = await receive()
        data += message.get("body", b"")
        if len(data) > _LARGEST_BODY:
            raise Refused(413, f"a body has at most {_LARGEST_BODY} bytes")
        if not message.get("more_body"):
            break
    if not data:
        return None
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as problem:
        raise Refused(400, f"the body is not JSON: {problem}") from problem


TEXT, TRUTH, NUMBER = {"type": "string"}, {"type": "boolean"}, {"type": "number"}


def operation(
    summary: str, sent: dict[str, Any] | None = None, optional: dict[str, Any] | None = None, **fields: Any
) -> dict[str, Any]:
    """An operation of an OpenAPI document: the properties of its body, and those of its response."""
    schema = {"type": "object", "properties": fields}
    described: dict[str, Any] = {
        "summary": summary,
        "security": [{"token": []}],
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": schema}}}},
    }
    if sent is not None:
        body = {"type": "object", "properties": {**sent, **(optional or {})}, "required": list(sent)}
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    return described


def document(title: str, paths: Mapping[str, Any]) -> dict[str, Any]:
    """An OpenAPI document of an API with a bearer token."""
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": "1"},
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "paths": dict(paths),
    }


async def serve(app: JsonApp, port: int, ready: Callable[[int], None], stop: asyncio.Event) -> None:
    """Serve until `stop` is set; `ready` is called with the port."""
    config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    task = asyncio.create_task(server.serve())
    while not server.started and not task.done():
        await asyncio.sleep(0.02)
    if server.started:
        ready(server.servers[0].sockets[0].getsockname()[1])
        waiting = asyncio.create_task(stop.wait())
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        await asyncio.sleep(0.1)  # send the last response
        server.should_exit = True
    await task
