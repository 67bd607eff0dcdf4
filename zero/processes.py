"""Run a program and clean up all its descendants.

The program gets its own session, so that signals reach no other process, and a tag in its environment, which
descendants inherit: processes that still have the tag afterwards are killed by process id. No process is looked up by
name or port.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from zero.errors import MissingProgram

RUN_TAG = "ZERO_RUN"  # environment variable
GRACE = 3.0  # seconds between SIGTERM and SIGKILL; chosen
_DRAIN = 0.5  # seconds to read output after the exit: another process may keep the pipe open
_MAX_LINE = 16 * 1024 * 1024  # bytes; longer lines are split
_PROC = Path("/proc")

Listener = Callable[[str, str], None]  # stream ("stdout", "stderr") and a line of it
StopCheck = Callable[[], str | None]  # the reason to stop now, or None


@dataclass(frozen=True, slots=True)
class ProcessResult:
    code: int
    stopped_by: str | None = None  # "timeout", "interrupt", or the reason of the stop check


def tagged_processes(tag: str) -> list[int]:
    """The processes with a tag in their environment, which are those of one run."""
    needle = f"{RUN_TAG}={tag}".encode()
    pids = []
    for entry in _PROC.iterdir() if _PROC.is_dir() else ():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if needle in (entry / "environ").read_bytes().split(b"\0"):
                    pids.append(int(entry.name))
    return pids


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def stop(process: subprocess.Popen[bytes], grace: float = GRACE) -> None:
    """Stop a session leader: SIGTERM, then SIGKILL after `grace` seconds."""
    if process.poll() is None:
        _signal(process, signal.SIGTERM)
        try:
            process.wait(grace)
        except subprocess.TimeoutExpired:
            _signal(process, signal.SIGKILL)
            process.wait()


def kill_tagged(tag: str) -> None:
    for pid in tagged_processes(tag):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


class _LineReader:
    """Splits the bytes of a pipe into lines."""

    def __init__(self, name: str, pipe: IO[bytes], listener: Listener) -> None:
        self.name, self.pipe, self._listener, self._partial = name, pipe, listener, b""
        os.set_blocking(pipe.fileno(), False)

    def read(self) -> bool:
        """Read available data; False at the end of the pipe."""
        try:
            data = os.read(self.pipe.fileno(), 65536)
        except BlockingIOError:
            return True
        *lines, self._partial = (self._partial + data).split(b"\n")
        if len(self._partial) > _MAX_LINE or (not data and self._partial):
            lines, self._partial = [*lines, self._partial], b""
        for line in lines:
            self._listener(self.name, line.decode("utf-8", "replace"))
        return bool(data)


def _watch(
    process: subprocess.Popen[bytes], selector: selectors.BaseSelector, stop_check: StopCheck, deadline: float | None
) -> str | None:
    ended: float | None = None
    while selector.get_map():
        now = time.monotonic()
        if process.poll() is not None:
            ended = ended or now
            if now - ended > _DRAIN:
                return None
        if deadline is not None and now >= deadline:
            return "timeout"
        reason = stop_check()
        if reason is not None:
            return reason
        for key, _ in selector.select(0.05 if ended else 0.2 if deadline is None else min(0.2, deadline - now)):
            if not key.data.read():
                selector.unregister(key.fileobj)
    while process.poll() is None:
        if deadline is not None and time.monotonic() >= deadline:
            return "timeout"
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.1)
    return None


def run_process(
    command: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    listener: Listener,
    stop_check: StopCheck = lambda: None,
    deadline: float | None = None,
    grace: float = GRACE,
    pass_fds: Sequence[int] = (),
) -> ProcessResult:
    """Run a command without a terminal. `deadline` is a value of `time.monotonic()`."""
    tag = secrets.token_hex(8)
    try:
        process = subprocess.Popen(
            list(command),
            cwd=cwd,
            env={**environment, RUN_TAG: tag},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            pass_fds=tuple(pass_fds),
        )
    except OSError as problem:
        raise MissingProgram(f"cannot start {command[0]}: {problem.strerror}") from problem
    assert process.stdout is not None and process.stderr is not None
    reason: str | None = None
    with selectors.DefaultSelector() as selector, process.stdout, process.stderr:
        for name, pipe in (("stdout", process.stdout), ("stderr", process.stderr)):
            selector.register(pipe, selectors.EVENT_READ, _LineReader(name, pipe, listener))
        try:
            reason = _watch(process, selector, stop_check, deadline)
        except KeyboardInterrupt:
            reason = "interrupt"
        finally:
            stop(process, grace)
            kill_tagged(tag)
        for key in list(selector.get_map().values()):
            key.data.read()
    return ProcessResult(process.returncode, reason)


def run_interactive(
    command: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    pass_fds: Sequence[int] = (),
    ignore_interrupt: bool = False,
) -> int:
    """Run a command on the terminal of Zero, which ignores SIGINT meanwhile.

    `ignore_interrupt`: the command is a sandbox around the program that handles SIGINT, and ignores it too.
    """
    tag = secrets.token_hex(8)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = subprocess.Popen(
            list(command),
            cwd=cwd,
            env={**environment, RUN_TAG: tag},
            pass_fds=tuple(pass_fds),
            preexec_fn=None if ignore_interrupt else lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        try:
            code = process.wait()
            return 128 - code if code < 0 else code
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
            kill_tagged(tag)
    except OSError as problem:
        raise MissingProgram(f"cannot start {command[0]}: {problem.strerror}") from problem
    finally:
        signal.signal(signal.SIGINT, before)
