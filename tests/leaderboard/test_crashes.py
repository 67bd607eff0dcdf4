"""Killed at any moment and restarted: no run is lost, repeated or counted partially."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.leaderboard.incidents import make_snapshots, write_configuration
from tests.selection import all_problems, rotation_seed

KILLS = 50 if all_problems() else 20
# What may differ between two runs: times and paths.
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
def test_kills_at_random_moments_change_nothing(tmp_path: Path) -> None:
    """Half of the kills are at random moments, which differ every day, the other half while a run is active."""
    calm, rough = tmp_path / "calm", tmp_path / "rough"
    calm.mkdir()
    rough.mkdir()
    assert start(prepared(calm)).wait() == 0
    config = prepared(rough)
    rng = random.Random(rotation_seed())
    kills, hits = 0, 0
    while kills < KILLS:
        process = start(config)
        under_way = _killed_in_a_run(process, rough, rng) if kills % 2 else _killed(process, rough, rng)
        if under_way is None:
            assert process.returncode == 0
            _set_back(rough, tmp_path, rng)  # it was done before it could be killed: take away some runs
        else:
            kills += 1
            hits += under_way
    assert hits >= KILLS // 2
    assert start(config).wait() == 0
    assert results_of(rough) == results_of(calm)
    for state in _states(rough):
        assert state["state"] == "judged"
        ended = [each for each in state["attempts"] if each["outcome"] != "interrupted"]
        assert len(ended) == 1, "a run that had ended was repeated"


def _killed(process: subprocess.Popen[bytes], place: Path, rng: random.Random) -> bool | None:
    """Kill at a random moment; returns whether a run was active, None if all was done before."""
    earlier = _under_way(place)
    try:
        process.wait(rng.uniform(0.0, 2.5))
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return bool(_under_way(place) - earlier)
    return None


def _killed_in_a_run(process: subprocess.Popen[bytes], place: Path, rng: random.Random) -> bool | None:
    """Kill while a run is active: the process is stopped, inspected, and then killed or continued."""
    earlier = _under_way(place)
    while process.poll() is None:
        if not _under_way(place) - earlier:
            time.sleep(0.01)
            continue
        with suppress(subprocess.TimeoutExpired):
            process.wait(rng.uniform(0.0, 0.5))
            break
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        if _under_way(place) - earlier:
            process.kill()
            process.wait()
            return True
        process.send_signal(signal.SIGCONT)
    return None


def _states(place: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in (place / "leaderboard_results").glob("*/*/*/state.json")]


def _under_way(place: Path) -> set[tuple[str, str, int, int]]:
    """Attempts that have started and not ended, including those that a kill interrupted."""
    return {
        (state["agent"], state["incident"], state["run"], len(state["attempts"]))
        for state in _states(place)
        if state["state"] == "running"
    }


def _set_back(place: Path, elsewhere: Path, rng: random.Random) -> None:
    """Delete half of the runs."""
    runs = sorted((place / "leaderboard_results").glob("*/Scenario-*/*"))
    for run in rng.sample(runs, len(runs) // 2):
        away = run.rename(Path(tempfile.mkdtemp(dir=elsewhere)))  # a worker that is ending may still write there
        shutil.rmtree(away, ignore_errors=True)
