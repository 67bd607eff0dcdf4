"""MCP servers on the official SDK, over stdio or streamable HTTP: the part that all tool servers share.

Tools run in threads, so a slow call does not block the others. A ToolError becomes an error result that tells the agent
what to do. Any other exception becomes an error result too, and the server keeps running. Over HTTP every request must
carry the bearer token.
"""

from __future__ import annotations

import hmac
import socket
import sys
import traceback
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

import anyio
import anyio.to_thread
import mcp_types as types
import orjson
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from starlette.types import ASGIApp, Receive, Scope, Send

from sre_tools.errors import ToolError
from sre_tools.registry import Tool


class Toolset(Protocol):
    """The tools of one server."""

    name: str
    instructions: str
    concurrency: int | None
    """How many calls run at once; None for the default of the event loop."""

    @property
    def tools(self) -> Mapping[str, Tool]: ...

    def call(self, name: str, arguments: Mapping[str, Any] | None) -> str | dict[str, Any]:
        """The reply: text, or a JSON object that is sent as text and as structured content."""


def _description(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title or None,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=types.ToolAnnotations(
            title=tool.title or None,
            read_only_hint=tool.read_only,
            destructive_hint=tool.destructive,
            idempotent_hint=True if tool.output_schema else None,  # a query: the same call gives the same rows
            open_world_hint=False,
        ),
    )


def _result(reply: str | dict[str, Any]) -> types.CallToolResult:
    if isinstance(reply, str):
        return types.CallToolResult(content=[types.TextContent(type="text", text=reply)])
    text = orjson.dumps(reply, default=str).decode()
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], structured_content=orjson.loads(text)
    )


def _error(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=f"Error: {text}")], is_error=True)


def make_server(toolset: Toolset) -> Server[Any]:
    limiter = anyio.CapacityLimiter(toolset.concurrency) if toolset.concurrency else None

    async def list_tools(
        context: ServerRequestContext[Any], parameters: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_description(tool) for tool in toolset.tools.values()])

    async def call(context: ServerRequestContext[Any], parameters: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            reply = await anyio.to_thread.run_sync(toolset.call, parameters.name, parameters.arguments, limiter=limiter)
        except ToolError as problem:
            return _error(str(problem))
        except Exception as problem:
            traceback.print_exc(file=sys.stderr)
            return _error(f"{parameters.name} failed ({type(problem).__name__}); try other arguments or another tool")
        return _result(reply)

    return Server(
        toolset.name,
        version="1",
        instructions=toolset.instructions,
        on_list_tools=list_tools,
        on_call_tool=call,
    )


def serve_stdio(toolset: Toolset) -> None:
    """Serve over standard input and output until the client closes them."""
    anyio.run(_serve_stdio, toolset)


async def _serve_stdio(toolset: Toolset) -> None:
    server = make_server(toolset)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def serve_http(
    toolset: Toolset, token: str, host: str, port: int, ready: Callable[[str], None], grace: int | None = None
) -> None:
    """Serve streamable HTTP until the process is stopped; `ready` gets the server's URL once the port is bound.

    `grace` is how many seconds open connections have to finish after a signal.
    """
    import uvicorn

    listener = socket.create_server((host, port))
    ready(f"http://{host}:{listener.getsockname()[1]}/mcp")
    app = RequireToken(make_server(toolset).streamable_http_app(host=host), token)
    uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=grace)).run(sockets=[listener])


class RequireToken:
    """ASGI middleware that answers 401 to requests without the bearer token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            authorization = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(authorization, self._expected):
                await _unauthorized(send)
                return
        await self._app(scope, receive, send)


async def _unauthorized(send: Callable[[Any], Awaitable[None]]) -> None:
    headers = [(b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain")]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": b"a bearer token is required\n"})
