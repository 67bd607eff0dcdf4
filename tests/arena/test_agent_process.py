"""An agent's process: it gets the texts and its kubeconfig, finds nothing else, and cannot outlive its trial."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from click.testing import CliRunner

from srearena import bubblewrap
from srearena.cli import cli
from srearena.conductor.agent_process import isolation
from srearena.conductor.agent_process.client import AgentProcess
from srearena.conductor.agent_process.isolation import agent_variables
from srearena.conductor.episode.limits import Limits
from srearena.conductor.episode.spec import EpisodeSpec
from srearena.conductor.errors import ArenaError
from srearena.conductor.trials.trial import Trial, perform
from srearena.config import Config
from srearena.session import read_session
from tests.arena.episodes import PORT, TIMELINE

AGENTS = "tests.arena.prying_agents"


def trial_of(agent: str, run: Path, isolation: str = "process", seconds: float = 60, **options: Any) -> Trial:
    limits = Limits(wall_seconds=seconds)
    spec = EpisodeSpec(1, ("detection",), limits, TIMELINE, config=Config())
    return Trial(PORT, f"{AGENTS}:{agent}", str(run), agent_options=options, isolation=isolation, spec=spec)


def notes(trial: Trial, what: str) -> list[dict[str, Any]]:
    return [entry for entry in read_session(trial.folder / "session.jsonl") if entry["what"] == what]


def test_an_agent_in_a_sandbox_finds_neither_the_answer_nor_the_harness(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if reason := bubblewrap.unavailable_reason():
        pytest.skip(reason)
    monkeypatch.setenv("SREARENA_RESULTS", str(tmp_path / "results"))
    monkeypatch.setenv("A_SECRET_OF_THE_HARNESS", "hidden-value")
    run = tmp_path / "results" / "run"
    earlier = run / "trials" / "earlier" / "0"
    earlier.mkdir(parents=True)
    (earlier / "result.json").write_text("{}")
    trial = trial_of("Spy", run, "bubblewrap", results=str(tmp_path))
    result = perform(trial)
    assert (result["outcome"], result["isolation"]) == ("pass", "bubblewrap"), result["reason"]
    found = {entry["kind"]: "" for entry in notes(trial, "spy")}
    for entry in notes(trial, "spy"):
        found[entry["kind"]] += entry["found"] + "\n"
    assert "token" in found["kubeconfig"] and "current-context: oncall" in found["kubeconfig"]
    assert found["memory"].strip() == ""
    assert "hidden-value" not in found["environment"] + found["process"]
    assert "results" not in found["environment"] + found["process"]
    everything = "".join(found.values())
    for secret in (PORT, "result.json", ".live", "episode-", "targetPort", "trials.worker"):
        assert secret not in everything.replace(str(tmp_path), ""), secret


def test_without_a_sandbox_the_memory_and_the_environment_still_hold_nothing(tmp_path: Path) -> None:
    trial = trial_of("Spy", tmp_path)
    assert perform(trial)["isolation"] == "process"
    found = {entry["kind"]: entry["found"] for entry in notes(trial, "spy")}
    assert found["memory"] == ""
    assert "PYTEST" not in found["environment"]


@pytest.mark.parametrize(
    ("agent", "reason"),
    [
        ("Raising", "the agent failed: ValueError: no idea"),
        ("Dying", "the agent failed: its process ended with status 7: about to fail"),
        ("Wrong", "the agent failed: TypeError: the agent's action is a int, not a text"),
    ],
)
def test_failures_of_an_agent_are_its_own(agent: str, reason: str, tmp_path: Path) -> None:
    trial = trial_of(agent, tmp_path)
    result = perform(trial)
    assert (result["outcome"], result["reason"]) == ("agent error", reason)
    assert (trial.folder / "agent.log").read_text()


def test_an_agent_that_blocks_is_ended_at_the_limit_with_its_children(tmp_path: Path) -> None:
    marker = "98765.4321"
    result = perform(trial_of("Hanging", tmp_path, seconds=3, marker=marker))
    assert result["outcome"] == "timeout"
    assert result["usage"]["wall_seconds"] < 10
    deadline = monotonic() + 5
    while f"sleep {marker}" in _command_lines() and monotonic() < deadline:
        sleep(0.05)
    assert f"sleep {marker}" not in _command_lines()


def _command_lines() -> str:
    return subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout


def test_what_an_agent_prints_is_kept_and_is_no_message(tmp_path: Path) -> None:
    trial = trial_of("Printing", tmp_path)
    result = perform(trial)
    assert result["outcome"] == "pass"
    assert "forged" in (trial.folder / "agent.log").read_text()
    assert (result["usage"]["tokens_in"], result["usage"]["cost"]) == (10, 0.5)
    (context,) = notes(trial, "context")
    assert "engineer on call" in context["description"] and "kubectl" in context["actions"]
    assert notes(trial, "closed")


def test_an_agent_that_cannot_be_created_is_an_error_with_its_reason(tmp_path: Path) -> None:
    with (
        AgentProcess("nobody-has-this-name", isolation="process") as agent,
        pytest.raises(ArenaError, match="no agent"),
    ):
        agent.check()
    with AgentProcess("scripted", isolation="process") as agent, pytest.raises(ArenaError, match="needs a script"):
        agent.check()


def test_files_that_options_name_are_readable_in_the_sandbox(tmp_path: Path) -> None:
    if reason := bubblewrap.unavailable_reason():
        pytest.skip(reason)
    script = tmp_path / "actions.txt"
    script.write_text('submit("No")\n')
    with AgentProcess("scripted", {"script": str(script)}, isolation="bubblewrap") as agent:
        agent.check()


def test_agents_get_keys_of_models_and_nothing_else() -> None:
    kept = {"PATH": "/bin", "OPENAI_API_KEY": "k", "SREARENA_MODEL": "m", "https_proxy": "p", "LC_ALL": "C"}
    left = {"SREARENA_RESULTS": "r", "PYTHONPATH": "x", "KUBECONFIG": "k", "PYTEST_CURRENT_TEST": "t", "WANDB_KEY": "w"}
    assert agent_variables({**kept, **left}) == kept


def test_compiled_modules_of_what_the_sandbox_shows_are_there_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = Path(isolation.__file__).parents[2]
    for folder in (package, package.parent / "private"):
        (tmp_path / folder.relative_to("/")).mkdir(parents=True)
    monkeypatch.setattr("sys.pycache_prefix", str(tmp_path))
    shown = [word for word in isolation._mounts("nothing", []) if word.startswith(str(tmp_path))]
    assert shown == [str(tmp_path / package.relative_to("/"))] * 2


def test_nothing_in_parallel_is_refused() -> None:
    done = CliRunner().invoke(cli, ["run", "noop_social_net", "--parallel", "0"])
    assert done.exit_code == 2
    assert "--parallel" in done.output and "0" in done.output


@pytest.mark.timeout(300)
def test_no_process_of_a_run_names_the_problem(tmp_path: Path) -> None:
    problem = "scale_pod_zero_social_net"
    command = [sys.executable, "-m", "srearena", "run", problem, "--agent", f"{AGENTS}:Spy", "--isolation", "process"]
    variables = {**os.environ, "SREARENA_RESULTS": str(tmp_path / "results"), "NO_COLOR": "1"}
    done = subprocess.run(
        [*command, "--stages", "detection", "--run", "spied"],
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\x1b" not in done.stdout
    folder = tmp_path / "results" / "spied" / "trials" / problem / "0"
    spied = [entry for entry in read_session(folder / "session.jsonl") if entry["what"] == "spy"]
    processes = [entry["found"] for entry in spied if entry["kind"] == "process"]
    # Processes of other tests, which the machine runs at the same time, may name it: they are not of this run's home.
    others = [text for text in processes if "HOME=" in text and f"HOME={os.environ['HOME']}" not in text]
    own = [text for text in processes if "srearena" in text and text not in others]
    assert any("srearena.conductor.trials.worker" in text for text in own)
    assert not [text for text in own if problem in text]
    assert json.loads((folder / "result.json").read_text())["isolation"] == "process"
