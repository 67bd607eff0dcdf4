"""Campaigns from the command line: run, resume, judge again, limits, failures, Python agents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import itbench_leaderboard
from itbench_leaderboard.cli import main
from srearena.conductor.trials.workers import WarmWorker
from tests.leaderboard.incidents import make_snapshots, write_configuration

HERE = "tests.leaderboard.contestants"
PROBLEM = "scale_pod_zero_social_net"


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SREARENA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))


def leaderboard(place: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((place / "leaderboard_results" / "results" / "leaderboard.json").read_text())
    return document


def python_agents(place: Path, *agents: tuple[str, str], head: str = "", incidents: int = 1) -> list[str]:
    """The command line for agents of `contestants`, each (name, further lines)."""
    make_snapshots(place / "snapshots", incidents)
    tables = [f'[[agents]]\nname = "{name}"\nkind = "python"\nmax_steps = 4\n{more}' for name, more in agents]
    path = place / "model_leaderboard.toml"
    path.write_text(f'scenarios_dir = "snapshots"\n{head}\n' + "\n".join(tables) + "\n")
    return ["--config", str(path)]


def scores(place: Path) -> dict[str, float]:
    return {row["agent"]: row["score"] for row in leaderboard(place)["rankings"]}


def test_python_agents_use_the_tools_and_are_judged(tmp_path: Path) -> None:
    command = python_agents(
        tmp_path,
        ("finder", f'agent = "{HERE}:Finder"'),
        ("babbler", f'agent = "{HERE}:Babbler"'),
        ("crasher", f'agent = "{HERE}:Crasher"'),
        head="concurrent = true\nretries = 1",
    )
    assert main(command) == 0
    assert scores(tmp_path) == {"finder": 1.0, "babbler": 0.0, "crasher": 0.0}
    rows = {row["agent"]: row for row in leaderboard(tmp_path)["rankings"]}
    assert rows["babbler"]["outcomes"] == {"turns": 1}
    assert rows["crasher"]["outcomes"] == {"agent_failed": 1}
    state = json.loads((tmp_path / "leaderboard_results/crasher/Scenario-1/1/state.json").read_text())
    assert [each["reason"] for each in state["attempts"]] == ["RuntimeError: no credit left"] * 2
    trajectory = json.loads((tmp_path / "leaderboard_results/finder/Scenario-1/1/traces/trajectory.json").read_text())
    assert trajectory["final_metrics"]["total_prompt_tokens"] == 100


def test_files_follow_the_published_schemas(tmp_path: Path) -> None:
    command = python_agents(tmp_path, ("finder", f'agent = "{HERE}:Finder"'), ("crasher", f'agent = "{HERE}:Crasher"'))
    assert main(command) == 0
    board = tmp_path / "leaderboard_results"
    kinds = {
        "leaderboard": [board / "results" / "leaderboard.json"],
        "agent": [board / "results" / "finder.json", board / "results" / "crasher.json"],
        "state": list(board.glob("*/*/*/state.json")),
        "judge_output": list(board.glob("*/*/*/judge_output.json")),
    }
    for kind, paths in kinds.items():
        schema = json.loads((Path(itbench_leaderboard.__file__).parent / "schemas" / f"{kind}.schema.json").read_text())
        assert paths
        for path in paths:
            jsonschema.validate(json.loads(path.read_text()), schema)


def test_the_same_command_again_runs_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = python_agents(tmp_path, ("finder", f'agent = "{HERE}:Finder"'))
    assert main(command) == 0
    output = tmp_path / "leaderboard_results/finder/Scenario-1/1/agent_output.json"
    before = output.stat().st_mtime_ns
    assert main(command) == 0
    assert "1 of 1 runs are done already" in capsys.readouterr().err
    assert output.stat().st_mtime_ns == before
    assert main([*command, "--runs", "2"]) == 0
    assert leaderboard(tmp_path)["rankings"][0]["graded"] == 2


def test_judging_again_follows_the_output_and_summing_up_the_verdict(tmp_path: Path) -> None:
    command = python_agents(tmp_path, ("finder", f'agent = "{HERE}:Finder"'))
    assert main(command) == 0
    run = tmp_path / "leaderboard_results/finder/Scenario-1/1"
    (run / "agent_output.json").write_text('{"entities": [], "propagations": [], "alerts_explained": []}')
    assert main([*command, "--aggregate-only"]) == 0
    assert scores(tmp_path) == {"finder": 1.0}
    assert main([*command, "--rejudge"]) == 0
    assert scores(tmp_path) == {"finder": 0.0}


def test_no_run_is_begun_once_the_budget_is_spent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = python_agents(tmp_path, ("finder", f'agent = "{HERE}:Finder"\noptions = {{ price = 0.6 }}'), incidents=3)
    assert main([*command, "--budget-usd", "1"]) == 3
    row = leaderboard(tmp_path)["rankings"][0]
    assert (row["graded"], row["missing"], row["cost_usd"]) == (2, 1, 1.2)
    assert "1 run(s) are left" in capsys.readouterr().err
    assert main([*command, "--budget-usd", "5"]) == 0
    assert leaderboard(tmp_path)["rankings"][0]["graded"] == 3


def test_another_agent_under_an_old_name_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(python_agents(tmp_path, ("one", f'agent = "{HERE}:Babbler"'))) == 0
    path = tmp_path / "model_leaderboard.toml"
    path.write_text(path.read_text().replace("Babbler", "Finder"))
    assert main(["--config", str(path)]) == 1
    assert "another configuration" in capsys.readouterr().err


def test_a_corrected_agent_keeps_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Runs that only failed are no results: they are set aside, and the corrected agent runs under the same name."""
    assert main(python_agents(tmp_path, ("one", f'agent = "{HERE}:Crasher"'), head="retries = 0")) == 0
    path = tmp_path / "model_leaderboard.toml"
    path.write_text(path.read_text().replace("Crasher", "Finder"))
    assert main(["--config", str(path)]) == 0
    assert scores(tmp_path) == {"one": 1.0}
    assert "one is configured differently now" in capsys.readouterr().err
    assert (tmp_path / "leaderboard_results/.earlier/one-1/Scenario-1/1/state.json").is_file()


def test_judging_again_before_any_run_leaves_nothing_behind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = python_agents(tmp_path, ("finder", f'agent = "{HERE}:Finder"'))
    before = sorted(tmp_path.rglob("*"))
    assert main([*command, "--rejudge"]) == 1
    assert "there are no runs to judge" in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before


def test_what_is_not_there_is_said_before_anything_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(python_agents(tmp_path, ("ghost", 'agent = "nowhere:Agent"'))) == 1
    assert "agent ghost: the agent nowhere:Agent cannot be created" in capsys.readouterr().err
    assert not (tmp_path / "leaderboard_results" / "ghost" / "Scenario-1").exists()


def test_a_timeout_is_an_outcome_and_a_zero(tmp_path: Path) -> None:
    make_snapshots(tmp_path / "snapshots", 1)
    config = write_configuration(tmp_path, agents=("good",), runs=1)
    config.write_text(config.read_text().replace("agent.py good", "agent.py sleep"))
    program = tmp_path / "agent.py"
    program.write_text("import time\ntime.sleep(60)\n")
    assert main(["--config", str(config), "--timeout", "2"]) == 0
    row = leaderboard(tmp_path)["rankings"][0]
    assert (row["outcomes"], row["score"], row["graded"]) == ({"timeout": 1}, 0.0, 1)


def test_recordings_and_live_problems_in_one_table(tmp_path: Path) -> None:
    head = 'problems = ["scale_pod_zero_social_net"]\nstages = ["detection"]'
    assert main(python_agents(tmp_path, ("alarmist", f'agent = "{HERE}:Alarmist"'), head=head)) == 0
    board = leaderboard(tmp_path)
    assert {name: one["kind"] for name, one in board["incidents"].items()} == {
        "Scenario-1": "snapshot",
        PROBLEM: "live",
    }
    metrics = board["rankings"][0]["metrics"]
    assert metrics["resolved"] == {"mean": 1.0, "ci95": [1.0, 1.0], "n": 1}
    assert metrics["score"]["mean"] == 0.5
    assert (tmp_path / "leaderboard_results/alarmist/scale_pod_zero_social_net/1/traces/session.jsonl").is_file()


def test_agents_on_one_live_application_share_its_healthy_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm: list[str] = []
    original = WarmWorker.communicate

    def communicate(worker: WarmWorker, line: str, timeout: float) -> tuple[int, str]:
        warm.append(json.loads(line)["agent_name"])
        return original(worker, line, timeout)

    monkeypatch.setattr(WarmWorker, "communicate", communicate)
    names = ["first", "second"]
    head = f'problems = ["{PROBLEM}"]\nstages = ["detection"]'
    command = python_agents(tmp_path, *((name, f'agent = "{HERE}:Alarmist"') for name in names), head=head)
    assert main([*command, "--scenarios", PROBLEM]) == 0
    assert sorted(warm) == names
    for name in names:
        result = json.loads((tmp_path / "leaderboard_results" / name / PROBLEM / "1" / "arena_result.json").read_text())
        assert (result["outcome"], result["agent"]) == ("pass", name)
