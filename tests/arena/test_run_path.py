"""Trials as `srearena run` performs them: graded inside an event loop, and failures named by their exception."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from clients.nothing import NothingAgent
from srearena.conductor.episode.episode import Episode
from srearena.conductor.episode.spec import EpisodeSpec
from srearena.conductor.errors import ArenaError
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.conductor.trials.processes import in_processes
from srearena.conductor.trials.suite import Suite
from srearena.conductor.trials.trial import Trial, perform
from srearena.config import Config
from srearena.coroutines import run_blocking
from tests.arena.episodes import PORT, TIMELINE

needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
COMMANDS_IN_PODS = (
    "kafka_queue_problems",
    "kafka_producer_leak",
    "kafka_poison_pill_hol_block",
    "secret_rotation_stale_env_credentials_astronomy_shop",
)
"""Problems whose oracle runs commands in pods, over a WebSocket client that needs an event loop."""


async def _sum(*numbers: int) -> int:
    await asyncio.sleep(0)
    return sum(numbers)


def test_a_coroutine_runs_to_its_end_with_and_without_a_loop_in_the_thread() -> None:
    async def inside() -> int:
        return run_blocking(_sum(3, 4))

    assert run_blocking(_sum(1, 2)) == 3
    assert asyncio.run(inside()) == 7


def trial_of(problem: str, run: Path, agent: str = "nothing", **options: Any) -> Trial:
    spec = EpisodeSpec(1, ("mitigation",), config=Config())
    return Trial(problem, agent, str(run), agent_options=options, spec=spec)


@pytest.mark.kubectl
@needs_kubectl
@pytest.mark.timeout(600)
@pytest.mark.parametrize("problem", COMMANDS_IN_PODS)
@pytest.mark.daily_cases(2)
def test_grading_that_runs_commands_in_pods_works_inside_a_trial(problem: str, tmp_path: Path) -> None:
    remedy = ProblemRegistry().get_problem(problem, 1).remedy  # the target of the seed of `trial_of`
    trial = trial_of(problem, tmp_path / "run", "shell", commands=remedy)
    (result,) = Suite([trial], tmp_path / "run").perform()
    assert result["outcome"] == "pass", result["reason"]


def test_the_reason_of_a_failed_trial_is_its_exception(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def explode(self: Episode) -> None:
        raise RuntimeError("the grader has a bug")

    monkeypatch.setattr(Episode, "grade", explode)
    trial = Trial(PORT, "nothing", str(tmp_path), spec=EpisodeSpec(1, timeline=TIMELINE, config=Config()))
    result = perform(trial, create_agent=NothingAgent)
    assert (result["outcome"], result["reason"]) == ("environment error", "RuntimeError: the grader has a bug")
    assert "in explode" in (trial.folder / "traceback.txt").read_text()
    assert json.loads((trial.folder / "session.jsonl").read_text().splitlines()[0])["what"]
    assert not list((tmp_path / ".live").iterdir())


class _Unpicklable(Exception):
    def __init__(self, first: int, second: int) -> None:
        super().__init__(f"{first} and {second}")
        self.handle = lambda: None


def _refuse(item: int) -> int:
    raise _Unpicklable(item, item)


def test_an_exception_that_cannot_be_sent_is_reported_by_its_name() -> None:
    with pytest.raises(ArenaError, match="_Unpicklable: 7 and 7"):
        list(in_processes(_refuse, [7], 1))
