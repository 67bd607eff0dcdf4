"""Killed at any moment, begun again: nothing lost, nothing repeated, nothing half-counted."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.leaderboard.incidents import make_snapshots, write_configuration

KILLS = 50
# What two runs of the same thing may differ in: clocks, and places.
_VOLATILE = {"generated_at", "updated", "duration_seconds", "mean_seconds", "error", "figures"}


def results_of(place: Path) -> dict[str, Any]:
    """All of `results/`, without times."""
    found = {}
    for path in sorted((place / "leaderboard_results" / "results").rglob("*.json")):
        found[path.name] = _steady(json.loads(path.read_text()))
    return found


def _steady(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _steady(each) for key, each in value.items() if key not in _VOLATILE}
    return [_steady(each) for each in value] if isinstance(value, list) else value


def start(config: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "itbench_leaderboard", "--config", str(config), "--no-connection-test"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "SREARENA_CACHE": str(config.parent / "cache")},
    )


def prepared(place: Path, **more: Any) -> Path:
    """A dozen runs, half of which fail."""
    make_snapshots(place / "snapshots", 2)
    return write_configuration(place, agents=("good", "broken"), runs=3, retries=0, **more)


@pytest.mark.timeout(1500)
def test_fifty_kills_at_random_moments_change_nothing(tmp_path: Path) -> None:
    calm, rough = tmp_path / "calm", tmp_path / "rough"
    calm.mkdir()
    rough.mkdir()
    assert start(prepared(calm)).wait() == 0
    config = prepared(rough)
    rng = random.Random(8)
    kills = 0
    while kills < KILLS:
        process = start(config)
        try:
            code = process.wait(rng.uniform(0.2, 5.0))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
        else:
            assert code == 0
            _set_back(rough, rng)  # it was done before it could be killed: take away some runs
    assert start(config).wait() == 0
    assert results_of(rough) == results_of(calm)
    for state in _states(rough):
        assert state["state"] == "judged"
        ended = [each for each in state["attempts"] if each["outcome"] != "interrupted"]
        assert len(ended) == 1, "a run that had ended was repeated"
    assert any(len(state["attempts"]) > 1 for state in _states(rough)), "no kill ever hit a run under way"


def _states(place: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in (place / "leaderboard_results").glob("*/*/*/state.json")]


def _set_back(place: Path, rng: random.Random) -> None:
    """Take half of the runs away, as if they had never been."""
    runs = sorted((place / "leaderboard_results").glob("*/Scenario-*/*"))
    for run in rng.sample(runs, len(runs) // 2):
        shutil.rmtree(run)
