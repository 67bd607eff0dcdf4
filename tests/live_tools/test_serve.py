"""`srearena serve` from outside: its output is sufficient for the official SDK and for real coding CLIs."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.zero.scripted_model import Call, Conversation, Turn, scripted

pytestmark = [pytest.mark.kubectl, pytest.mark.timeout(600)]
PROBLEM = "scale_pod_zero_social_net"
KEY = "not-a-real-key-4711"
CODEX = """
model = "scripted-1"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[features]
apps = false
plugins = false
remote_plugin = false
[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
"""


@contextmanager
def serving(folder: Path, *words: str) -> Iterator[tuple[dict[str, Any], subprocess.Popen[str]]]:
    """The first line of its output, and the process."""
    environment = {**os.environ, "SREARENA_RESULTS": str(folder / "results")}
    command = [sys.executable, "-m", "srearena", "serve", PROBLEM, "--seed", "0", "--fixed", "--json", *words]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline()), process
        finally:
            process.terminate()
            process.wait(30)


def graded(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    result: dict[str, Any] = json.loads(process.stdout.readline())["result"]
    return result


def at_zero(shown: str) -> list[str]:
    return [line.split()[1] for line in shown.splitlines() if " 0/0 " in line]


def investigator(talk: Conversation) -> Turn:
    """Look once, then answer each question."""
    if not any(name.endswith("submit") for name in talk.tools):
        return Turn("A title")
    if not talk.results:
        return Turn("I look.", (Call("kubectl", {"command": "get deployments -A"}),))
    if len(talk.results) == 1:
        return Turn("Something is.", (Call("submit", {"solution": "Yes"}),))
    if len(talk.results) == 2:
        # A CLI may wrap the reply of a tool in JSON.
        return Turn("There.", (Call("submit", {"solution": at_zero(talk.results[0].replace("\\n", "\n"))}),))
    return Turn("Done.")


def claude(program: str, url: str, announced: dict[str, Any], folder: Path) -> tuple[list[str], dict[str, str]]:
    (folder / ".mcp.json").write_text(announced["mcp"]["configurations"]["Claude Code (.mcp.json)"])
    allowed = ["--mcp-config", ".mcp.json", "--strict-mcp-config", "--allowed-tools", "mcp__srearena"]
    variables = {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CONFIG_DIR": str(folder / ".claude"),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "MCP_CONNECTION_NONBLOCKING": "0",
        "MCP_TIMEOUT": "60000",
    }
    return [program, "-p", "--model", "scripted-1", *allowed, "--", "You are on call. Go."], variables


def codex(program: str, url: str, announced: dict[str, Any], folder: Path) -> tuple[list[str], dict[str, str]]:
    printed = announced["mcp"]["configurations"]["Codex (~/.codex/config.toml)"]
    assert tomllib.loads(printed)["mcp_servers"]["srearena"]["url"] == announced["mcp"]["url"]
    (folder / "config.toml").write_text(CODEX.replace("{url}", url) + printed)
    command = [program, "exec", "--skip-git-repo-check", "--", "You are on call. Go."]
    return command, {"CODEX_HOME": str(folder), "SCRIPTED_KEY": KEY}


def gemini(program: str, url: str, announced: dict[str, Any], folder: Path) -> tuple[list[str], dict[str, str]]:
    printed = json.loads(announced["mcp"]["configurations"]["Gemini CLI (.gemini/settings.json)"])
    (folder / ".gemini").mkdir()
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": False}}
    (folder / ".gemini" / "settings.json").write_text(json.dumps({**printed, **settings}))
    variables = {"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": url, "GEMINI_CLI_NO_RELAUNCH": "1"}
    return [program, "--skip-trust", "-m", "gemini-2.5-pro", "-p", "You are on call. Go."], variables


@pytest.mark.parametrize("configured", [claude, codex, gemini], ids=["claude", "codex", "gemini"])
@pytest.mark.daily_cases(1)
def test_a_real_coding_cli_works_with_the_printed_configuration(
    configured: Callable[..., tuple[list[str], dict[str, str]]],
    coding_cli: Callable[[str], str],
    tmp_path: Path,
) -> None:
    program = coding_cli(configured.__name__)
    with (
        serving(tmp_path, "--stages", "detection,localization") as (announced, process),
        scripted(investigator) as model,
    ):
        command, variables = configured(program, model.url, announced, tmp_path)
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env={**os.environ, "HOME": str(tmp_path), **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert len(model.talks) >= 4, done.stdout[-2000:] + done.stderr[-2000:]
        result = graded(process)
    assert result["outcome"] == "pass", (result["reason"], model.failures, done.stdout[-2000:])
    assert result["usage"]["steps"] >= 1


def test_traces_and_analysis_of_a_real_application(tmp_path: Path) -> None:
    with serving(tmp_path, "--mcp", "read-only") as (announced, _):

        async def talk() -> None:
            headers = {"authorization": f"Bearer {announced['token']}"}
            async with (
                httpx2.AsyncClient(headers=headers, timeout=120) as http,
                Client(streamable_http_client(announced["mcp"]["url"], http_client=http)) as client,
            ):

                async def ask(name: str, **arguments: Any) -> str:
                    result = await client.call_tool(name, arguments)
                    assert not result.is_error, (name, result.content)
                    return str(result.content[0].text)  # type: ignore[union-attr]

                services = (await ask("jaeger_services")).splitlines()
                assert "nginx-web-server" in services or len(services) > 3, services
                traces = await ask("jaeger_traces", service=services[0], limit=2)
                assert traces.startswith("trace ")
                found = traces.split()[1]
                assert found in await ask("jaeger_traces", trace_id=found)
                assert "->" in await ask("jaeger_dependencies")
                assert await ask("jaeger_operations", service=services[0]) != "(none)"
                assert json.loads(await ask("get_trace_error_tree"))["data"]
                assert json.loads(await ask("event_analysis"))["data"]

        anyio.run(talk)
        configurations = announced["mcp"]["configurations"]
        assert [name.split(" (")[0] for name in configurations][:5] == [
            "Claude Code",
            "Codex",
            "Gemini CLI",
            "Cursor",
            "VS Code",
        ]
        assert PROBLEM not in json.dumps(announced)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_the_tool_server_ends_with_its_parent(tmp_path: Path, number: signal.Signals) -> None:
    with serving(tmp_path) as (announced, process):
        place = urlsplit(announced["mcp"]["url"])
        assert place.hostname is not None
        socket.create_connection((place.hostname, place.port), 5).close()
        process.send_signal(number)
        process.wait(30)
        for _ in range(100):
            try:
                socket.create_connection((place.hostname, place.port), 5).close()
            except ConnectionRefusedError:
                break
            sleep(0.1)
        else:
            pytest.fail("the server still runs")
