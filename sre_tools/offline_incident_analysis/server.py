"""The tools as an MCP server on the official SDK, over stdio or streamable HTTP.

Tools run in threads, so that one slow question does not keep others waiting. An error of a tool is an answer that says
what to do; whatever else goes wrong is told as such, and the server lives on. Over HTTP every request must carry the
token.
"""

from __future__ import annotations

import hmac
import os
import sys
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import anyio.to_thread
import mcp_types as types
import orjson
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from starlette.types import ASGIApp, Receive, Scope, Send

from sre_tools.errors import ToolError
from sre_tools.offline_incident_analysis.registry import Tool, all_tools, call_tool
from sre_tools.offline_incident_analysis.workspace import Workspace

NAME = "offline_incident_analysis"
_AT_ONCE = min(4, os.cpu_count() or 1)  # calls; more would not be quicker, only larger
_INSTRUCTIONS = (
    "Diagnostic tools over one recorded Kubernetes incident. Begin with alert_summary, then incident_timeline or "
    "change_impact; get_context_contract tells all about one object. Leave paths out. Times are UTC. Replies are "
    "short; next_cursor continues one."
)


def describe(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.name != "build_topology",  # it can write the graph where the server allows it
            destructive_hint=False,
            idempotent_hint=True,
            open_world_hint=False,
        ),
    )


def _failed(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=f"Error: {text}")], is_error=True)


def make_server(workspace: Workspace) -> Server[Any]:
    tools = all_tools()
    room = anyio.Semaphore(_AT_ONCE)

    async def list_tools(
        context: ServerRequestContext[Any], parameters: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[describe(tool) for tool in tools.values()])

    async def call(context: ServerRequestContext[Any], parameters: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            async with room:
                reply = await anyio.to_thread.run_sync(call_tool, workspace, parameters.name, parameters.arguments)
        except ToolError as problem:
            return _failed(str(problem))
        except Exception as problem:
            traceback.print_exc(file=sys.stderr)
            return _failed(f"{parameters.name} failed ({type(problem).__name__}); try other arguments or another tool")
        text = orjson.dumps(reply, default=str).decode()
        content = [types.TextContent(type="text", text=text)]
        return types.CallToolResult(content=list(content), structured_content=orjson.loads(text))

    return Server(NAME, version="1", instructions=_INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call)


async def serve_stdio(workspace: Workspace) -> None:
    server = make_server(workspace)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


class RequireToken:
    """Lets through what carries the token; everything else is told so, without a look at the request."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(given, self._expected):
                await _refuse(send)
                return
        await self._app(scope, receive, send)


async def _refuse(send: Callable[[Any], Awaitable[None]]) -> None:
    headers = [(b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain")]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": b"a bearer token is required\n"})


def http_app(workspace: Workspace, token: str, host: str = "127.0.0.1") -> ASGIApp:
    return RequireToken(make_server(workspace).streamable_http_app(host=host), token)
