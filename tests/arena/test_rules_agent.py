"""The rule-based agent solves what general runbooks can solve, without knowledge of applications or problems."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from clients.rules import RulesAgent
from srearena.conductor import Conductor, EpisodeSpec
from tests.arena.episodes import PORT, QUIET, TIMELINE, ZERO


@pytest.mark.kubectl
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
@pytest.mark.parametrize("problem", [PORT, QUIET])
def test_it_goes_through_the_stages(problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    passes(problem, tmp_path, monkeypatch)


@pytest.mark.parametrize("problem", [ZERO, QUIET])
def test_it_needs_no_kubectl(problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    passes(problem, tmp_path, monkeypatch)


@pytest.mark.kubectl
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_its_actions_are_the_same_without_kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    actions = [("action", "text"), ("action", "step"), ("submission", "value")]
    recorded = []
    for path in (os.environ["PATH"], str(tmp_path)):
        monkeypatch.setenv("PATH", path)
        history = passes(PORT, tmp_path / str(len(recorded)), monkeypatch)
        recorded.append([entry[key] for entry in history for what, key in actions if entry["what"] == what])
    assert recorded[0] == recorded[1]


def passes(problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    monkeypatch.setenv("SREARENA_RESULTS", str(tmp_path))
    conductor = Conductor(EpisodeSpec(timeline=TIMELINE, in_process=True))
    conductor.register_agent(RulesAgent())
    conductor.init_problem(problem)
    result = asyncio.run(conductor.start_problem(max_steps=40))
    assert result["outcome"] == "pass", result["reason"]
    assert conductor.session is not None
    return conductor.session.history


@pytest.mark.parametrize("problem", ["noop_hotel_reservation", "noop_online_boutique", "noop_fleetcast"])
def test_it_changes_nothing_in_a_healthy_system(problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever others have rolled out, edited and added meanwhile."""
    monkeypatch.setenv("SREARENA_RESULTS", str(tmp_path))
    conductor = Conductor(EpisodeSpec(timeline=TIMELINE, in_process=True, noise=True, seed=5))
    conductor.register_agent(RulesAgent())
    conductor.init_problem(problem)
    result = asyncio.run(conductor.start_problem(max_steps=30))
    assert result["outcome"] == "pass", result["reason"]
    assert result["noise"] and result["collateral"] == []
    assert conductor.session is not None
    actions = [entry["text"] for entry in conductor.session.history if entry["what"] == "action"]
    calls = [re.search(r"```\n(\w+)", action) for action in actions]
    assert {match[1] for match in calls if match} <= {"get_alerts", "get_metrics", "get_traces", "submit"}
    answers = [entry["value"] for entry in conductor.session.history if entry["what"] == "submission"]
    assert answers == ["No", [], None]
