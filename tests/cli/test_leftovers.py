"""What a killed process leaves is listed by `srearena doctor`, and removed when the next one starts."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from srearena.cli import cli
from srearena.cluster import registry
from srearena.conductor.session import Session
from srearena.temporary import leftovers, sweep

PROCESS = "from srearena.temporary import make_folder; print(make_folder('episode'), flush=True); input()"


def process_with_a_folder() -> tuple[subprocess.Popen[str], Path]:
    command = [sys.executable, "-c", PROCESS]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def end(process: subprocess.Popen[str]) -> None:
    with process:
        process.kill()


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, variable in (("tmp", "TMPDIR"), ("state", "SREARENA_STATE_DIR"), ("results", "SREARENA_RESULTS")):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(variable, str(tmp_path / name))


def listed() -> str:
    return CliRunner().invoke(cli, ["doctor"]).output


def test_folders_of_a_killed_process_are_removed_by_the_next(tmp_path: Path) -> None:
    killed, left = process_with_a_folder()
    (left / "kubeconfig").write_text("token")
    end(killed)
    assert leftovers() == [left] and f"temporary folder       {left}" in listed()
    living, used = process_with_a_folder()
    try:
        assert not left.exists() and used.is_dir(), "its first folder is made after a sweep"
        sweep()
        assert used.is_dir() and leftovers() == [], "of a process that lives"
    finally:
        end(living)
    documents = json.loads(CliRunner().invoke(cli, ["doctor", "--json"]).output)
    assert [one["what_for"] for one in documents if one["name"] == str(used)] == [
        "temporary folder of a killed process"
    ]
    sweep()
    assert not used.exists() and not any((tmp_path / "state" / "processes").iterdir())


def test_a_process_that_ends_by_itself_leaves_no_record(tmp_path: Path) -> None:
    process, _ = process_with_a_folder()
    process.communicate("\n")
    assert not any((tmp_path / "state" / "processes").iterdir())


def test_a_damaged_record_removes_nothing_else(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    link = tmp_path / "tmp" / "episode-abcdefgh"
    link.symlink_to(precious)
    records = tmp_path / "state" / "processes"
    records.mkdir()
    (records / "1").write_text(f"{precious}\n{link}\n../precious\n\0\n")
    sweep()
    assert precious.is_dir() and link.exists() and not any(records.iterdir())


def test_logs_of_killed_trials_are_removed_by_the_next(tmp_path: Path) -> None:
    folder = tmp_path / "results" / "run" / ".live"
    folder.mkdir(parents=True)
    left, starting = folder / "0123.jsonl", folder / "4567.jsonl"
    for path in (left, left.with_suffix(".json"), starting):
        path.write_text("{}\n")
    for path in (left, left.with_suffix(".json")):
        os.utime(path, (0, 0))
    assert f"log of a trial         {left}" in listed()
    first = Session(folder)
    assert first.path is not None
    os.utime(first.path, (0, 0))
    second = Session(folder)
    assert sorted(folder.iterdir()) == sorted([starting, first.path, second.path or Path()])
    for session in (first, second):
        session.discard()
    assert list(folder.iterdir()) == [starting]


def test_the_files_of_a_cluster_whose_start_was_killed_are_removed_by_the_next(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    directory = registry.make_directory("half")
    (directory / "starting").write_text(str(ended.pid))
    assert registry.abandoned() == [directory] and f"cluster's files        {directory}" in listed()
    other = registry.make_directory("other")
    assert not directory.exists() and registry.abandoned() == [] and other.is_dir()


def test_the_lock_of_a_record_is_not_inherited_by_programs(tmp_path: Path) -> None:
    """A program that outlives the process that started it must not keep its folders."""
    script = (
        "import subprocess; from srearena.temporary import make_folder; print(make_folder('episode'), flush=True);"
        "print(subprocess.Popen(['sleep', '60'], stdout=subprocess.DEVNULL).pid, flush=True); input()"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    left, child = Path(process.stdout.readline().strip()), int(process.stdout.readline())
    try:
        end(process)
        assert leftovers() == [left]
    finally:
        os.kill(child, 9)
    with next((tmp_path / "state" / "processes").iterdir()).open() as record:
        fcntl.flock(record, fcntl.LOCK_EX | fcntl.LOCK_NB)
