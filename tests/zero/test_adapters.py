"""Adapters: parsing of arguments, configuration files, and parsing of the CLI's output."""

from __future__ import annotations

import json
import tomllib
import warnings
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zero import adapters
from zero.adapters import registry
from zero.adapters.base import Adapter, Invocation, Plan
from zero.adapters.codex import Codex
from zero.errors import RequestError
from zero.providers import Provider
from zero.servers import Server
from zero.trajectory import Trajectory, Usage

NAMES = ["claude", "codex", "gemini", "opencode"]
LOCAL = Server("tools", command="python", args=("-m", "tools"), env=(("A", "b"),), env_vars=("TOOL_KEY",))
REMOTE = Server("live", url="http://127.0.0.1:9/mcp", bearer_token_env_var="LIVE_TOKEN")
SECRETS = {"KEY_NAME": "the-key", "TOOL_KEY": "the-tool-key", "LIVE_TOKEN": "the-token"}


def plan(adapter: Adapter, *arguments: str, **changes: Any) -> Plan:
    run_plan = Plan(
        workspace=Path("/workspace"),
        program=adapter.program,
        version="1",
        invocation=adapter.parse(arguments, "1"),
        instructions="Do it",
        output=Path("/workspace/agent_output.json"),
        servers=[LOCAL, REMOTE],
        provider=Provider("mine", "http://127.0.0.1:1/v1", "KEY_NAME"),
        otel_url="http://127.0.0.1:2",
    )
    return replace(run_plan, **changes)


@pytest.mark.parametrize("name", NAMES)
def test_secrets_reach_the_process_and_no_file_or_argument(name: str) -> None:
    adapter = adapters.find(name)
    run_plan = plan(adapter, "exec", "-m", "gpt")
    written = json.dumps(dict(adapter.files(run_plan)))
    assert "the-key" in adapter.environment(run_plan, SECRETS).values()
    for where in (written, *adapter.start(run_plan), *adapter.resume(run_plan, "s", "m")):
        assert not any(secret in where for secret in SECRETS.values())
    assert "LIVE_TOKEN" in written and "TOOL_KEY" in written, "named, so that the CLI can fill them in"


@pytest.mark.parametrize("name", NAMES)
def test_the_query_is_never_taken_for_an_option(name: str) -> None:
    adapter = adapters.find(name)
    run_plan = plan(adapter, "exec", "-m", "gpt", "--", "--delete everything")
    assert run_plan.invocation.query == "--delete everything"
    command = adapter.start(run_plan)
    assert command[-2:] in (["--", "--delete everything"], ["-p", "--delete everything"])
    assert "gpt" in " ".join(command)
    again = adapter.resume(run_plan, "session-1", "--again")
    assert "session-1" in again and again[-1] == "--again"


@pytest.mark.parametrize("name", NAMES)
@given(
    line=st.text(max_size=60)
    | st.recursive(
        st.none()
        | st.integers()
        | st.text(max_size=8)
        | st.sampled_from(["type", "item", "assistant", "result", "part"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["type", "item", "message", "content", "usage", "part", "state", "stats", "error"]),
                inner,
                max_size=4,
            )
        ),
        max_leaves=8,
    ).map(json.dumps)
)
def test_no_line_of_output_makes_it_fail(name: str, line: str) -> None:
    adapter = adapters.find(name)
    trajectory = Trajectory(name, "1")
    adapter.read(line, trajectory)
    document = trajectory.document()
    assert json.loads(json.dumps(document)) == document


@pytest.mark.parametrize(
    "arguments", [("exec", "-m", "gpt", "Look at", "payment"), ("e", "--model=gpt", "Look at payment")]
)
def test_arguments_are_parsed(arguments: tuple[str, ...]) -> None:
    assert Codex().parse(arguments, "1") == Invocation(False, "gpt", "Look at payment")


def test_without_exec_it_is_a_session_with_the_user() -> None:
    run_plan = plan(Codex(), "-m", "openai/gpt-5.1")
    assert run_plan.invocation.interactive
    assert Codex().start(run_plan) == ["codex", "-m", "openai/gpt-5.1"]


@pytest.mark.parametrize("argument", ["-C", "--cd=/", "--json", "--json=1"])
def test_what_zero_sets_itself_is_refused(argument: str) -> None:
    with pytest.raises(RequestError, match="set by Zero"):
        Codex().parse(["exec", argument, "x"], "1")


def test_old_flags_of_codex_are_translated_with_a_note() -> None:
    codex = Codex()
    run_plan = plan(
        codex, "exec", "--full-auto", "-a", "on-failure", "-c", 'model_providers.x.wire_api="chat"', "--oss", "go"
    )
    assert run_plan.invocation.extra == ("--oss",)
    assert len(run_plan.invocation.notes) == 3
    assert run_plan.invocation.query == "go"
    config = tomllib.loads(codex.files(run_plan)["config.toml"])
    assert (config["sandbox_mode"], config["approval_policy"]) == ("workspace-write", "on-request")


def test_codexs_configuration_is_complete() -> None:
    codex = Codex()
    config = tomllib.loads(codex.files(plan(codex, "exec", workspace=Path('/workspace "quoted"')))["config.toml"])
    assert config["mcp_servers"]["tools"]["required"] is True
    assert config["mcp_servers"]["live"]["bearer_token_env_var"] == "LIVE_TOKEN"
    provider = config["model_providers"][config["model_provider"]]
    assert (provider["wire_api"], provider["env_key"]) == ("responses", "KEY_NAME")
    assert config["projects"]['/workspace "quoted"']["trust_level"] == "trusted"
    assert config["otel"]["exporter"]["otlp-http"]["endpoint"] == "http://127.0.0.1:2/v1/logs"
    sandboxed = tomllib.loads(codex.files(plan(codex, "exec", sandboxed=True))["config.toml"])
    assert sandboxed["sandbox_mode"] == "danger-full-access", "inside Zero's own sandbox"


def test_codexs_tokens_add_up_over_a_resumed_session() -> None:
    codex, trajectory = Codex(), Trajectory("codex", "1")

    def attempt(tokens: int) -> Usage:
        codex.read('{"type": "thread.started", "thread_id": "t"}', trajectory)
        usage = {"input_tokens": tokens, "cached_input_tokens": tokens // 2, "output_tokens": tokens // 10}
        codex.read(json.dumps({"type": "turn.completed", "usage": usage}), trajectory)
        return trajectory.end_attempt()

    assert attempt(1000) == Usage(1000, 100, 500)
    assert attempt(3000) == Usage(2000, 200, 1000), "Codex tells the sum of the session"
    assert trajectory.usage == Usage(3000, 300, 1500)


def test_a_broken_plug_in_is_skipped_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = EntryPoint("theirs", "no_such_module:x", registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [broken])
    with pytest.warns(UserWarning, match="the adapter theirs"):
        assert "codex" in registry.adapters()


def test_a_plug_in_is_found_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    class Mine(Codex):
        name = "mine"

    monkeypatch.setattr(registry, "_adapters", dict(registry.adapters()))
    registry.adapter(Mine)
    with warnings.catch_warnings():
        assert isinstance(adapters.find("mine"), Mine)
