"""A real MCP client, from the official SDK, against the server over stdio and over HTTP."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import jsonschema
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from sre_tools.offline_incident_analysis import Workspace, all_tools, call_tool

MODULE = "sre_tools.offline_incident_analysis"
TWELVE = {
    "alert_summary",
    "alert_analysis",
    "event_analysis",
    "metric_analysis",
    "get_metric_anomalies",
    "log_analysis",
    "get_trace_error_tree",
    "build_topology",
    "topology_analysis",
    "k8s_spec_change_analysis",
    "get_k8_spec",
    "get_context_contract",
}
REQUIRED: dict[str, dict[str, Any]] = {
    "get_metric_anomalies": {"k8_object_name": "Deployment/payment"},
    "topology_analysis": {"entity": "checkout"},
    "get_k8_spec": {"k8_object_name": "Deployment/payment"},
    "get_context_contract": {"k8_object": "checkout"},
}


async def _session(client: Client) -> None:
    listed = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert TWELVE | {"incident_timeline", "change_impact"} == set(listed)
    for name, tool in listed.items():
        assert tool.annotations is not None and tool.annotations.open_world_hint is False
        assert tool.output_schema is not None and tool.description and "xample" in tool.description
        result = await client.call_tool(name, REQUIRED.get(name, {}))
        assert not result.is_error, result.content
        jsonschema.validate(result.structured_content, tool.output_schema)
        assert json.loads(result.content[0].text) == result.structured_content  # type: ignore[union-attr]
        assert result.structured_content["data"], f"{name} found nothing"
    for name, arguments in (
        ("alert_summary", {"limit": "many"}),
        ("alert_summary", {"base_dir": "/etc"}),
        ("event_analysis", {"filters": {"colour": "red"}}),
        ("log_analysis", {"body_contains": "("}),
        ("get_k8_spec", {}),
        ("no_such_tool", {}),
    ):
        failed = await client.call_tool(name, arguments)
        assert failed.is_error
        assert failed.content[0].text.startswith("Error: ")  # type: ignore[union-attr]
    again = await client.call_tool("alert_summary", {})
    assert again.structured_content["total_count"] == 2, "the server keeps running"


def test_a_client_lists_and_calls_every_tool_over_stdio(directory: Path, tmp_path: Path) -> None:
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", MODULE, "--snapshot", str(directory), "--cache", str(tmp_path / "cache")],
    )

    async def talk() -> None:
        async with Client(stdio_client(parameters)) as client:
            await _session(client)

    anyio.run(talk)


@contextmanager
def _http_server(directory: Path, tmp_path: Path, token: str | None) -> Iterator[tuple[str, str]]:
    command = [sys.executable, "-m", MODULE, "--http", "--snapshot", str(directory), "--cache", str(tmp_path / "cache")]
    environment = {key: value for key, value in os.environ.items() if key != "SRE_TOOLS_TOKEN"}
    if token:
        environment["SRE_TOOLS_TOKEN"] = token
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        match = re.search(r"at (http://\S+); bearer token: (\S+)", line)
        assert match, line
        yield match[1], token or match[2]
    finally:
        process.terminate()
        process.communicate(timeout=20)


def test_a_client_lists_and_calls_every_tool_over_http(directory: Path, tmp_path: Path) -> None:
    with _http_server(directory, tmp_path, None) as (url, token):

        async def talk() -> None:
            async with (
                httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=30) as http,
                Client(streamable_http_client(url, http_client=http)) as client,
            ):
                await _session(client)

        anyio.run(talk)


def test_http_needs_the_token(directory: Path, tmp_path: Path) -> None:
    with _http_server(directory, tmp_path, "a-token-of-ours") as (url, _):
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "a-token-of-ours"}):
            answer = httpx2.post(url, json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, headers=headers)
            assert answer.status_code == 401


def test_ten_agents_at_once_get_the_same_answers(workspace: Workspace) -> None:
    expected = {name: call_tool(workspace, name, REQUIRED.get(name, {})) for name in all_tools()}
    found: list[bool] = []

    async def agent() -> None:
        for name, reply in expected.items():
            got = await anyio.to_thread.run_sync(call_tool, workspace, name, REQUIRED.get(name, {}))
            found.append(got == reply)

    async def crowd() -> None:
        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(agent)

    anyio.run(crowd)
    assert len(found) == 10 * len(expected) and all(found)


@pytest.mark.parametrize("arguments", [["--snapshot", "/nowhere"], ["--http", "--snapshot", "/nowhere"]])
def test_a_wrong_directory_is_one_line(arguments: list[str]) -> None:
    answer = subprocess.run([sys.executable, "-m", MODULE, *arguments], capture_output=True, text=True, timeout=60)
    assert answer.returncode == 1
    assert answer.stderr.startswith("Error: no directory at") and answer.stderr.count("\n") == 1
