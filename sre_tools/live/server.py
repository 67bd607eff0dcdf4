"""The live tools as an MCP server on the official SDK, over stdio or streamable HTTP."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anyio.to_thread
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from starlette.types import ASGIApp

from sre_tools.errors import ToolError
from sre_tools.live.analysis_tools import AnalysisTools
from sre_tools.live.changes import Changes
from sre_tools.live.connection import Connection
from sre_tools.live.episode_tools import EpisodeTools
from sre_tools.live.kubectl_tools import KubectlTools
from sre_tools.live.telemetry_tools import TelemetryTools
from sre_tools.live.toolset import LiveTool, Toolset
from sre_tools.offline_incident_analysis.server import RequireToken
from srearena.conductor.actions.kubectl_process import KubectlProcess
from srearena.service.kubernetes import Kubernetes

NAME = "srearena"
_INSTRUCTIONS = (
    "You are the engineer on call for a running system that may be broken. `task` says what is asked. Look with "
    "kubectl, prometheus_*, loki_*, jaeger_* and the analysis tools; answer each question with `submit`."
)


@contextmanager
def toolset(connection: Connection, mode: str) -> Iterator[Toolset]:
    """All tools over one episode."""
    episode = EpisodeTools(connection)
    process = KubectlProcess(connection.kubeconfig)
    kubernetes = Kubernetes(connection.kubeconfig)
    telemetry = TelemetryTools(connection)
    analysis = AnalysisTools(connection)
    try:
        kubectl = KubectlTools(process, Changes(kubernetes), mode, episode.pass_time)
        parts = (episode, kubectl, telemetry, analysis)
        yield Toolset([tool for part in parts for tool in part.tools()], connection.audit)
    finally:
        analysis.close()
        telemetry.close()
        kubernetes.close()
        process.close()


def _described(tool: LiveTool) -> types.Tool:
    hints = types.ToolAnnotations(read_only_hint=tool.reads, destructive_hint=not tool.reads, open_world_hint=False)
    return types.Tool(name=tool.name, description=tool.description, input_schema=tool.schema, annotations=hints)


def _said(text: str, *, failed: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=failed)


def make_server(tools: Toolset) -> Server[Any]:
    async def list_tools(
        context: ServerRequestContext[Any], parameters: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(tool) for tool in tools.tools.values()])

    async def call(context: ServerRequestContext[Any], parameters: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            return _said(await anyio.to_thread.run_sync(tools.call, parameters.name, parameters.arguments))
        except ToolError as problem:
            return _said(f"Error: {problem}", failed=True)
        except Exception as problem:
            traceback.print_exc(file=sys.stderr)
            return _said(f"Error: {parameters.name} failed ({type(problem).__name__}); try something else", failed=True)

    return Server(NAME, version="1", instructions=_INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call)


def http_app(tools: Toolset, token: str, host: str = "127.0.0.1") -> ASGIApp:
    return RequireToken(make_server(tools).streamable_http_app(host=host), token)
