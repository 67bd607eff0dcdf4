"""Processes: own sessions, limits, cleanup of descendants, and no effect on other processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.zero.watching import goes
from zero import processes
from zero.errors import MissingProgram


def attend(tmp_path: Path, code: str, **options: object) -> tuple[processes.ProcessResult, list[tuple[str, str]]]:
    lines: list[tuple[str, str]] = []
    options.setdefault("grace", 0.5)
    ended = processes.run_process(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        environment=dict(os.environ),
        listener=lambda stream, line: lines.append((stream, line)),
        **options,  # type: ignore[arg-type]
    )
    return ended, lines


def test_lines_of_both_streams_are_complete_and_the_code_is_returned(tmp_path: Path) -> None:
    ended, lines = attend(
        tmp_path, "import sys; print('a\\nb\\u00e9', end=''); print('e', file=sys.stderr); sys.exit(7)"
    )
    assert ended == processes.ProcessResult(7)
    assert [line for stream, line in lines if stream == "stdout"] == ["a", "bé"]
    assert ("stderr", "e") in lines


def test_a_deadline_ends_a_process_that_ignores_sigterm(tmp_path: Path) -> None:
    stubborn = "import signal, time; signal.signal(15, signal.SIG_IGN); print('on', flush=True); time.sleep(600)"
    ended, lines = attend(tmp_path, stubborn, deadline=time.monotonic() + 1.5)
    assert ended.stopped_by == "timeout"
    assert ended.code == -signal.SIGKILL
    assert lines == [("stdout", "on")]


def test_the_stop_check_stops_it(tmp_path: Path) -> None:
    ended, _ = attend(tmp_path, "import time; time.sleep(600)", stop_check=lambda: "cost")
    assert ended.stopped_by == "cost"


def test_children_that_left_the_session_are_killed_too_and_no_others(tmp_path: Path) -> None:
    sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
    bystander = subprocess.Popen(sleeper, start_new_session=True)
    code = (
        "import subprocess, sys;"
        f"p = subprocess.Popen({sleeper!r}, start_new_session=True, stdout=subprocess.DEVNULL);"
        "print(p.pid, flush=True)"
    )
    try:
        ended, lines = attend(tmp_path, code)
        assert ended.code == 0
        child = int(lines[0][1])
        goes(child)
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_a_child_that_keeps_the_pipe_open_does_not_block(tmp_path: Path) -> None:
    code = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])"
    ended, _ = attend(tmp_path, code, deadline=time.monotonic() + 60)
    assert ended == processes.ProcessResult(0)


def test_an_interrupt_ends_it_and_is_reported(tmp_path: Path) -> None:
    def interrupt() -> None:
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.5, interrupt)
    timer.start()
    ended, _ = attend(tmp_path, "import time; time.sleep(600)")
    timer.join()
    assert ended.stopped_by == "interrupt"
    assert ended.code == -signal.SIGTERM


def test_a_program_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(MissingProgram, match="cannot start"):
        processes.run_process([str(tmp_path / "none")], cwd=tmp_path, environment={}, listener=lambda *_: None)
