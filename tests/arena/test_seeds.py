"""Seeds of runs: drawn where none is given, kept for resuming, recorded with every result."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from srearena.cli import cli
from srearena.conductor.results.store import run_seed
from srearena.conductor.trials.suite import Suite
from srearena.conductor.trials.trial import Trial


def test_a_drawn_seed_stays_with_its_run(tmp_path: Path) -> None:
    runs = [tmp_path / str(number) for number in range(4)]
    for run in runs:
        run.mkdir()
    seeds = [run_seed(run) for run in runs]
    assert len(set(seeds)) > 1
    assert [run_seed(run) for run in runs] == seeds


@pytest.fixture
def planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Trial]:
    """The trials of all runs, which are not performed."""
    trials: list[Trial] = []

    def perform(self: Suite, watch: object) -> list[dict[str, Any]]:
        trials.extend(self.trials)
        return []

    monkeypatch.setenv("SREARENA_RESULTS", str(tmp_path))
    monkeypatch.setattr(Suite, "perform", perform)
    return trials


def test_runs_draw_their_seed_and_resume_with_it(planned: list[Trial]) -> None:
    words = ["run", "noop_social_network", "noop_hotel_reservation", "--json"]
    for more in ([], [], ["--fresh"], ["--seed", "7", "--trials", "2"]):
        done = CliRunner().invoke(cli, [*words, *more])
        assert done.exit_code == 0, done.output
        assert json.loads(done.output)["trials"] == 0
    seeds = [trial.spec.seed for trial in planned]
    first, again, fresh, chosen = seeds[:2], seeds[2:4], seeds[4:6], seeds[6:]
    assert first == again and len(set(first)) == 1
    assert fresh != first
    assert chosen == [7, 7, 8, 8]


def test_trials_that_start_at_once_share_one_seed(tmp_path: Path) -> None:
    for number in range(20):
        run = tmp_path / str(number)
        run.mkdir()
        with ThreadPoolExecutor(8) as pool:
            assert len(set(pool.map(lambda _, run=run: run_seed(run), range(8)))) == 1
        assert [path.name for path in run.iterdir()] == ["seed"]
