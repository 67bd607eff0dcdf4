from __future__ import annotations

from pathlib import Path

import pytest

from srearena.conductor.episode.spec import Timeline
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.observer.recorder import Recorder, Recording

PROBLEM = "missing_service_hotel_reservation"


@pytest.fixture(scope="session")
def problem() -> Problem:
    return ProblemRegistry().get_problem(PROBLEM)


@pytest.fixture(scope="session")
def recording(problem: Problem, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """A Service deleted under a real application, recorded."""
    place = tmp_path_factory.mktemp("recorded")
    recorder = Recorder(seed=3, timeline=Timeline(before=180, after=300))
    return recorder.record(problem, place / "Scenario-1", place / "answers" / "Scenario-1")


@pytest.fixture(autouse=True, scope="session")
def columns(tmp_path_factory: pytest.TempPathFactory) -> None:
    patch = pytest.MonkeyPatch()
    patch.setenv("SREARENA_CACHE", str(tmp_path_factory.mktemp("columns")))


def relative(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
