"""Figures are found in what benchmarks print, kept, and compared with those before."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.__main__ import BENCHMARKS
from benchmarks.history import Run, comparison, figures_in, previous, read, store

ROOT = Path(__file__).parents[2]


def run(date: str, figures: dict[str, float], *, cores: int = 2, size: str = "usual") -> Run:
    return Run(date, "abc", size, {"processor": "x", "cores": cores}, figures)


def test_numbers_of_a_line_are_named_by_the_line() -> None:
    shown = "load average 3.1 on 2 cores\nfirst observation: median 1.25 s, worst 2.50 s\nforecast anew   1,200.50 µs\n"
    assert figures_in(shown) == {
        "first observation: median # s, worst # s [1]": 1.25,
        "first observation: median # s, worst # s [2]": 2.5,
        "forecast anew # µs": 1200.5,
    }


def test_leaves_of_a_document_are_named_by_their_path() -> None:
    figure = {"case": "idle", "size": 3, "what": "an hour", "value": 2.5, "unit": "s"}
    assert figures_in(json.dumps({"machine": {"cores": 2}, "figures": [figure]}, indent=2)) == {
        "figures idle, an hour, 3.value": 2.5
    }
    assert figures_in('{"wire": "chat", "median": 2}\n{"wire": "messages", "median": 3}') == {
        "chat.median": 2.0,
        "messages.median": 3.0,
    }


def test_a_run_is_compared_with_the_last_like_it(tmp_path: Path) -> None:
    history = tmp_path / "history.jsonl"
    assert read(history) == []
    stored = [run("1", {"a": 1}), run("2", {"a": 2}), run("3", {"a": 3}, cores=8), run("4", {"a": 4}, size="quick")]
    for one in stored:
        store(history, one)
    runs = read(history)
    assert runs == stored
    old = previous(runs, run("5", {"a": 1}))
    assert old is not None and old.date == "2"
    assert previous(runs, run("5", {"b": 1})) is None
    shown = comparison(run("2", {"a": 2, "c": 1}), run("5", {"a": 3, "b": 1}))
    assert "+50% *" in shown and "not measured this time: c" in shown


def test_every_benchmark_is_run() -> None:
    support = {"__init__", "__main__", "history", "snapshots"}
    needs_a_file = {"mixins"}
    assert set(BENCHMARKS) == {path.stem for path in (ROOT / "benchmarks").glob("*.py")} - support - needs_a_file


def test_the_command_measures_stores_and_shows(tmp_path: Path) -> None:
    history = tmp_path / "history.jsonl"
    command = [sys.executable, "-m", "benchmarks", "--history", str(history)]
    done = subprocess.run([*command, "--quick", "--only", "network"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(read(history)) == 1 and any("µs" in name for name in read(history)[0].figures)
    again = subprocess.run([*command, "--show"], cwd=ROOT, capture_output=True, text=True)
    assert "old: none" in again.stdout
