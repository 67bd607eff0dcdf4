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
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.service.apps import all_applications
from tests.arena.episodes import PORT, QUIET, TIMELINE, ZERO

FOLDER = Path(__file__).parents[2] / "clients" / "rules"


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


def test_it_knows_no_application_and_no_problem() -> None:
    text = "\n".join(path.read_text() for path in FOLDER.glob("*.py"))
    names = {name for name in ProblemRegistry().get_problem_ids() if len(name) > 4}
    for app in all_applications():
        names |= {app.namespace, app.name}
        names |= {m.name for m in app.manifests if m.kind == "Deployment" and "-" in m.name}
    assert [name for name in sorted(names) if re.search(rf"\b{re.escape(name)}\b", text)] == []
