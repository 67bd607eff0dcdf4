"""Tasks that Harbor's own checks accept, played by their own scripts; trajectories that its models accept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from srearena.cli import cli
from srearena.conductor.episode.spec import EpisodeSpec
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.conductor.trials.trial import Trial, perform
from srearena.config import Config
from srearena.frameworks.harbor import export_tasks
from srearena.interpreters import python_module
from tests.kubectl.operator import KUBECTL

PROBLEM = "wrong_service_selector_hotel_reservation"


def harbor_says(code: str, path: Path) -> str:
    """What a program prints that imports harbor, which needs Python 3.12."""
    python = os.environ.get("SREARENA_TEST_HARBOR", "/nonexistent")
    if not os.access(python, os.X_OK):
        pytest.skip("harbor is not installed (it needs Python 3.12)")
    done = subprocess.run([python, "-c", code, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_harbor_accepts_the_tasks_of_a_suite_and_the_trajectories_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SREARENA_RESULTS", str(tmp_path / "results"))
    run = tmp_path / "results" / "first"
    spec = EpisodeSpec(seed=1, stages=("detection",), config=Config())
    script = tmp_path / "script"
    script.write_text('get_alerts()\n\nsubmit("Yes")')
    perform(Trial(PROBLEM, "scripted", str(run), agent_options={"script": str(script)}, isolation="none", spec=spec))
    folder = tmp_path / "export"
    done = CliRunner().invoke(cli, ["export", str(folder), "--as", "harbor", "--suite", "lite", "--run", "first"])
    assert done.exit_code == 0, done.output
    tasks = sorted((folder / "tasks").iterdir())
    assert len(tasks) == 21
    registry = ProblemRegistry()
    for task in tasks:
        instruction = (task / "instruction.md").read_text()
        assert "engineer on call" in instruction and "You are asked" in instruction
        assert not [name for name in registry.get_problem_ids() if name in instruction + task.name]
        assert (task / "tests" / "key").read_text().strip() not in instruction + (
            task / "environment/Dockerfile"
        ).read_text()
    (document,) = (folder / "trajectories" / "first").iterdir()
    steps = json.loads(document.read_text())["steps"]
    assert [step["source"] for step in steps] == ["system", "agent", "agent"]
    assert "get_alerts" in steps[1]["message"] and steps[1]["observation"]["results"][0]["content"]
    read = "import sys; from harbor.models.trajectories import Trajectory as T; "
    assert harbor_says(read + "print(len(T.model_validate_json(open(sys.argv[1]).read()).steps))", document) == "3\n"
    check = (
        "import sys, pathlib; from harbor.models.task.task import Task\n"
        "for folder in pathlib.Path(sys.argv[1]).iterdir():\n"
        "    task = Task(folder)\n"
        "    assert Task.is_valid_dir(folder) and task.instruction and task.paths.solve_path.exists()\n"
        "    print(task.name)\n"
    )
    assert harbor_says(check, folder / "tasks").count("srearena/incident-") == 21


@contextmanager
def served(task: Path, shared: Path) -> Iterator[dict[str, str]]:
    """The arena of a task as its second container runs it, and the variables of the first one."""
    services = json.loads((task / "environment" / "docker-compose.yaml").read_text())["services"]
    arena = services["arena"]
    words = [str(shared) if word == "/arena" else word for word in arena["command"]]
    variables = {**os.environ, **arena["environment"], "SREARENA_RESULTS": str(shared / "results")}
    tools = f"{task / 'environment'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    client = {**os.environ, "ARENA": str(shared), "KUBECONFIG": str(shared / "kubeconfig"), "PATH": tools}
    command = python_module("srearena", *words)
    with subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert "url" in json.loads(process.stdout.readline())
            yield {**client, "LOGS": str(shared / "logs")}
        finally:
            process.terminate()


def script(path: Path, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([path], env=variables, capture_output=True, text=True, check=False)


@pytest.mark.kubectl
@pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")
def test_the_solution_of_a_task_earns_its_reward_and_nothing_else_does(tmp_path: Path) -> None:
    (task,) = export_tasks(tmp_path / "tasks", [PROBLEM], seed=1)
    with served(task, tmp_path / "solved") as variables:
        question = script_words(["arena", "question"], variables)
        assert "Stage 1 of 3" in question.stdout
        solved = script(task / "solution" / "solve.sh", variables)
        assert solved.returncode == 0, solved.stderr
        verified = script(task / "tests" / "test.sh", variables)
        assert verified.returncode == 0, verified.stderr
    assert (tmp_path / "solved/logs/reward.txt").read_text() == "1.0\n"
    assert json.loads((tmp_path / "solved/logs/grade.json").read_text())["scores"]["mitigation"] == 1.0
    with served(task, tmp_path / "given-up") as variables:
        wrong_key = tmp_path / "key"
        wrong_key.write_text("0" * 32)
        refused = script_words(["arena", "grade", str(wrong_key)], variables)
        assert refused.returncode == 1 and "not for agents" in refused.stderr
        assert "You are asked" in script_words(["arena", "task"], variables).stdout
        assert script(task / "tests" / "test.sh", variables).returncode == 0  # the agent has answered nothing
    assert (tmp_path / "given-up/logs/reward.txt").read_text() == "0.0\n"


def script_words(words: list[str], variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, env=variables, capture_output=True, text=True, check=False)
