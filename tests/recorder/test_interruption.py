"""Ctrl-C while a data set is recorded: it ends without noise, nothing is half written, and the same command goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from srearena.errors import SreArenaError
from srearena.observer.recording.data_set import DataSet
from tests.arena.episodes import PORT, QUIET, ZERO

ROOT = Path(__file__).parents[2]
# The corner shop's problems are known to who imports them; the others come with the house.
RUN = "import tests.arena.episodes; from srearena.__main__ import main; main()"
HOUSE = [f"{name}_hotel_reservation" for name in ("missing_service", "missing_configmap", "wrong_service_selector")]


def _start(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", RUN, "record", *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "SREARENA_SHOW_ARGUMENTS": "1"},  # hiding them would start anew, without the corner shop
        start_new_session=True,  # a group of its own, which a terminal's Ctrl-C would go to
    )


def _hidden(place: Path) -> list[str]:
    return [path.name for path in place.iterdir() if path.name.startswith(".")]


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("chosen", "parallel"), [((PORT, QUIET, ZERO), "1"), (tuple(HOUSE), "2")])
def test_ctrl_c_ends_cleanly_and_the_same_command_goes_on(
    tmp_path: Path, chosen: tuple[str, ...], parallel: str
) -> None:
    out, keys = tmp_path / "set", tmp_path / "keys"
    words = ["--all", *chosen, "--out", str(out), "--answers", str(keys), "--before", "60", "--after", "60"]
    process = _start(*words, "--parallel", parallel)
    assert process.stderr is not None
    first = process.stderr.readline()
    assert "recorded in" in first, first + process.stderr.read()
    while process.poll() is None and not (out.is_dir() and _hidden(out)):
        time.sleep(0.02)  # until the next one is under way
    assert process.poll() is None, "it was done before it could be interrupted"
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "Traceback" not in said

    whole = json.loads((out / "manifest.json").read_text())["scenarios"]
    assert whole and sorted(whole) == sorted(path.name for path in out.iterdir() if path.is_dir())
    assert _hidden(out) == []
    stamps = {path: path.stat().st_mtime_ns for path in out.rglob("*.tsv")}

    again = _start(*words, "--parallel", parallel)
    _, said = again.communicate(timeout=600)
    assert again.returncode == 0, said
    assert f"{len(whole)} of 3 scenarios are recorded already" in said
    assert len(json.loads((out / "manifest.json").read_text())["scenarios"]) == 3
    assert stamps.items() <= {path: path.stat().st_mtime_ns for path in out.rglob("*.tsv")}.items()
    checked = _start("--check", "--out", str(out))
    assert checked.communicate(timeout=120)[0].endswith("matches its manifest\n")


def test_what_a_killed_recording_left_is_cleared_away(tmp_path: Path) -> None:
    left = tmp_path / "set" / ".Scenario-1-abc"
    left.mkdir(parents=True)
    (left / "k8s_events_raw.tsv").write_text("half")
    DataSet(tmp_path / "set", tmp_path / "keys", seed=0).plan(["a"])
    assert not left.exists()


def test_two_cannot_record_one_data_set_at_once(tmp_path: Path) -> None:
    first = DataSet(tmp_path / "set", tmp_path / "keys", seed=0)
    first.plan(["a"])
    with pytest.raises(SreArenaError, match="another `srearena record` is writing to"):
        DataSet(tmp_path / "set", tmp_path / "keys", seed=0).plan(["a"])
    first.close()
    DataSet(tmp_path / "set", tmp_path / "keys", seed=0).plan(["a"])
