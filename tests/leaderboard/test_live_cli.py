"""Coding CLIs on live problems: the episode's tools over MCP, all its questions, and no access to anything else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from itbench_leaderboard.cli import main
from srearena import bubblewrap
from tests.zero.scripted_model import Call, Conversation, Turn, scripted
from tests.zero.watching import comes, goes

pytestmark = [pytest.mark.kubectl, pytest.mark.timeout(600)]
PROBLEM = "scale_pod_zero_social_net"
KEY = "not-a-real-key-4711"


@pytest.fixture(autouse=True)
def _surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SREARENA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SCRIPTED_KEY", KEY)


def run(place: Path, agent: dict[str, Any], *options: str, stages: str = '"detection", "localization"') -> Path:
    """The run's directory, after a campaign of one agent on one live problem."""
    path = place / "model_leaderboard.toml"
    table = "\n".join(f"{key} = {json.dumps(value)}" for key, value in {"name": "one", **agent}.items())
    path.write_text(f'problems = ["{PROBLEM}"]\nstages = [{stages}]\nretries = 0\n[[agents]]\n{table}\n')
    assert main(["--config", str(path), *options]) == 0
    return place / "leaderboard_results" / "one" / PROBLEM / "1"


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def at_zero(shown: str) -> list[str]:
    return [line.split()[1] for line in shown.replace("\\n", "\n").splitlines() if " 0/0 " in line]


class Engineer:
    """Looks around the machine and the system, answers one question, stops too early, and goes on when told to."""

    def __call__(self, talk: Conversation) -> Turn:
        if not any(name.endswith("submit") for name in talk.tools):
            return Turn("ready")
        done = len(talk.results)
        reminded = any("You are not done yet" in text for text in talk.messages)
        if done == 0:
            return Turn("I look at my own machine.", (Call("exec_command", {"cmd": "pwd; env; ls / /root /home"}),))
        if done == 1:
            return Turn("I look at the system.", (Call("kubectl", {"command": "get deployments -A"}),))
        if done == 2:
            return Turn("Something is wrong.", (Call("submit", {"solution": "Yes"}),))
        if done == 3:
            return (
                Turn("There.", (Call("submit", {"solution": at_zero(talk.results[1])}),)) if reminded else Turn("Bye.")
            )
        return Turn("Done.")


def test_the_real_codex_answers_a_live_problem_to_the_last_question(
    coding_cli: Callable[[str], str], tmp_path: Path
) -> None:
    program = coding_cli("codex")
    enclosed = "off" if bubblewrap.unavailable_reason() else "require"
    with scripted(Engineer()) as model:
        place = run(
            tmp_path,
            {
                "program": program,
                "provider": "mine",
                "base_url": f"{model.url}/v1",
                "api_key_env": "SCRIPTED_KEY",
                "model": "scripted-1",
                "sandbox": enclosed,
            },
        )
        assert model.failures == []
    state = read(place / "state.json")
    assert (state["state"], state["outcome"]) == ("judged", "answered"), state
    assert state["attempts"][0]["prompt_tokens"] > 0
    assert read(place / "judge_output.json")["flat_scores"]["score"] == 1.0
    assert read(place / "agent_output.json")["stages"]["detection"] == "Yes"
    zero_run = read(place / "traces" / "run.json")
    assert len(zero_run["attempts"]) == 2, "it stopped early and was told to go on"
    assert "Stage 2 of 2" in zero_run["attempts"][0]["complaints"][0]
    called = [
        call["function_name"]
        for step in read(place / "traces" / "trajectory.json")["steps"]
        for call in step.get("tool_calls", [])
    ]
    assert called == ["shell", "live.kubectl", "live.submit", "live.submit"]
    entries = [json.loads(line) for line in (place / "traces" / "session.jsonl").read_text().splitlines()]
    assert [each["tool"] for each in entries if each["what"] == "tool call"] == ["kubectl", "submit", "submit"]
    # Nothing that reached the agent names the problem, not even the path it works in.
    heard = json.dumps([talk.raw for talk in model.talks])
    assert PROBLEM not in heard and "leaderboard_results" not in heard
    assert (place / "AGENTS.md").is_file() and (place / "config.toml").is_file()
    files = (path for path in place.rglob("*") if path.is_file())
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []


# An agent of the user's own, which uses MCP through the official SDK and tries other addresses too.
AGENT = """
import json, os, pathlib, socket, sys
import anyio, httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

attempt, query, config, forbidden = sys.argv[1:5]
server = json.loads(pathlib.Path(config).read_text())["mcpServers"]["live"]
headers = {"authorization": "Bearer " + os.environ["SREARENA_MCP_TOKEN"]}
seen = {"cwd": os.getcwd(), "arguments": sys.argv, "query": query, "readable": os.path.exists(forbidden),
        "environment": dict(os.environ)}

async def work():
    async with httpx2.AsyncClient(headers=headers, timeout=120) as http, \\
            Client(streamable_http_client(server["url"], http_client=http)) as client:
        async def ask(name, **arguments):
            return (await client.call_tool(name, arguments)).content[0].text
        seen["task"] = await ask("task")
        seen["submitted"] = await ask("submit", solution="Yes")

anyio.run(work)
pathlib.Path(f"seen-{attempt}.json").write_text(json.dumps(seen))
"""


def _scripted_agent(place: Path, attempts: int) -> dict[str, Any]:
    program = place / "agents" / "agent.py"
    program.parent.mkdir()
    program.write_text(AGENT)
    return {
        "cli": "command",
        "command": f"{sys.executable} {program} {{attempt}} {{query}} {{mcp_config}} {place / 'cache'}",
        "expose": [str(program.parent)],
        "max_retries": attempts - 1,
        "sandbox": "off" if bubblewrap.unavailable_reason() else "require",
    }


def test_an_agent_that_stops_before_the_last_question_gave_no_answer(needs_sandbox: None, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    place = run(tmp_path, _scripted_agent(tmp_path, 1))
    state = read(place / "state.json")
    assert state["outcome"] == "no_answer", state
    assert read(place / "judge_output.json")["flat_scores"]["detection"] == 1.0
    assert read(place / "judge_output.json")["flat_scores"]["score"] == 0.5
    seen = read(place / "seen-1.json")
    assert "Stage 1 of 2" in seen["task"] and "Stage 2 of 2" in seen["submitted"]
    assert not seen["readable"], "the rest of the disk is out of reach"
    assert PROBLEM not in json.dumps({key: value for key, value in seen.items() if key != "readable"})


WAITS = """
import os, pathlib, sys, time
draft = pathlib.Path(sys.argv[1] + ".draft")
draft.write_text(str(os.getpid()))
draft.rename(sys.argv[1])
time.sleep(600)
"""


@pytest.mark.parametrize("others", [(), ("two",)], ids=["from scratch", "in a copy of a healthy system"])
def test_a_leaderboard_killed_in_a_live_run_leaves_nothing_behind(tmp_path: Path, others: tuple[str, ...]) -> None:
    """The agent, its tools and its cluster end; the run is planned again, and the attempt is no try."""
    program, sign = tmp_path / "agent.py", tmp_path / "sign"
    program.write_text(WAITS)
    config = tmp_path / "model_leaderboard.toml"
    agent = f'cli = "command"\ncommand = "{sys.executable} {program} {sign}"\nsandbox = "off"\n'
    tables = "".join(f'[[agents]]\nname = "{name}"\n{agent}' for name in ("one", *others))
    config.write_text(f'problems = ["{PROBLEM}"]\nstages = ["detection"]\nretries = 0\n{tables}')
    mark = f"killed-{os.getpid()}"
    board = subprocess.Popen(
        [sys.executable, "-m", "itbench_leaderboard", "--config", str(config)],
        env={**os.environ, "LEADERBOARD_TEST": mark},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    comes(sign, 300)
    ours = [pid for pid in _with(f"LEADERBOARD_TEST={mark}") if pid != board.pid]
    assert len(ours) >= 3, "a worker, a cluster and a tool server at least, or a healthy system and its copy"
    ours.append(int(sign.read_text()))  # the agent, which gets none of our variables
    board.kill()
    board.wait()
    for pid in ours:
        goes(pid)
    state = read(tmp_path / "leaderboard_results" / "one" / PROBLEM / "1" / "state.json")
    assert (state["state"], len(state["attempts"])) == ("running", 1)
    program.write_text("import sys; sys.exit('no idea')")
    assert main(["--config", str(config)]) == 0
    state = read(tmp_path / "leaderboard_results" / "one" / PROBLEM / "1" / "state.json")
    assert [each["outcome"] for each in state["attempts"]] == ["interrupted", "agent_failed"]


def _with(variable: str) -> list[int]:
    """The processes whose environment holds a variable."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if variable.encode() in (place / "environ").read_bytes().split(b"\0"):
                found.append(int(place.name))
    return found
