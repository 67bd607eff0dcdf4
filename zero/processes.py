"""Run one program to its end, or to ours, and leave nothing of it behind.

The program gets a session of its own, so that a signal to it reaches nobody else, and a mark in its environment, which
its descendants inherit: whoever still carries the mark afterwards is ended by number. Nothing is ever looked up by
name or by port.
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

MARK = "ZERO_RUN"
GRACE = 3.0  # seconds between asking to stop and insisting
_DRAIN = 0.5  # seconds to read on after the end: someone else may hold the pipe open for ever
_LINE = 16 * 1024 * 1024
_PROC = Path("/proc")

Listener = Callable[[str, str], None]  # stream ("stdout", "stderr") and a line of it
Brake = Callable[[], str | None]  # why to stop now, if so


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    stopped_by: str | None = None  # "timeout", "interrupt", or what the brake said


def marked(mark: str) -> list[int]:
    """The processes that carry a mark: this run's, and no other's."""
    needle = f"{MARK}={mark}".encode()
    found = []
    for place in _PROC.iterdir() if _PROC.is_dir() else ():
        if place.name.isdigit() and int(place.name) != os.getpid():
            with contextlib.suppress(OSError):
                if needle in (place / "environ").read_bytes().split(b"\0"):
                    found.append(int(place.name))
    return found


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def stop(process: subprocess.Popen[bytes], grace: float = GRACE) -> None:
    """End a process that leads its own session: ask, wait, insist."""
    if process.poll() is None:
        _signal(process, signal.SIGTERM)
        try:
            process.wait(grace)
        except subprocess.TimeoutExpired:
            _signal(process, signal.SIGKILL)
            process.wait()


def sweep(mark: str) -> None:
    for pid in marked(mark):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


class _Lines:
    """Bytes of a pipe, cut into lines."""

    def __init__(self, name: str, pipe: IO[bytes], listener: Listener) -> None:
        self.name, self.pipe, self._listener, self._rest = name, pipe, listener, b""
        os.set_blocking(pipe.fileno(), False)

    def read(self) -> bool:
        """Take what is there; False at the end of the pipe."""
        try:
            data = os.read(self.pipe.fileno(), 65536)
        except BlockingIOError:
            return True
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _LINE or (not data and self._rest):
            lines, self._rest = [*lines, self._rest], b""
        for line in lines:
            self._listener(self.name, line.decode("utf-8", "replace"))
        return bool(data)


def _watch(
    process: subprocess.Popen[bytes], selector: selectors.BaseSelector, brake: Brake, deadline: float | None
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
        reason = brake()
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


def attend(
    command: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    listener: Listener,
    brake: Brake = lambda: None,
    deadline: float | None = None,
    grace: float = GRACE,
    keep: Sequence[int] = (),
) -> Ended:
    """Run a command without a terminal. `deadline` is a time of `time.monotonic()`; `keep` are descriptors it needs."""
    mark = secrets.token_hex(8)
    try:
        process = subprocess.Popen(
            list(command),
            cwd=cwd,
            env={**environment, MARK: mark},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            pass_fds=tuple(keep),
        )
    except OSError as problem:
        raise MissingProgram(f"cannot start {command[0]}: {problem.strerror}") from problem
    assert process.stdout is not None and process.stderr is not None
    reason: str | None = None
    with selectors.DefaultSelector() as selector, process.stdout, process.stderr:
        for name, pipe in (("stdout", process.stdout), ("stderr", process.stderr)):
            selector.register(pipe, selectors.EVENT_READ, _Lines(name, pipe, listener))
        try:
            reason = _watch(process, selector, brake, deadline)
        except KeyboardInterrupt:
            reason = "interrupt"
        finally:
            stop(process, grace)
            sweep(mark)
        for key in list(selector.get_map().values()):
            key.data.read()
    return Ended(process.returncode, reason)


def converse(
    command: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    keep: Sequence[int] = (),
    shielded: bool = False,
) -> int:
    """Run a command on our own terminal, which is then its own; Ctrl-C is for it to understand.

    `shielded`: the command only encloses the one that understands it, and must not die of it.
    """
    mark = secrets.token_hex(8)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = subprocess.Popen(
            list(command),
            cwd=cwd,
            env={**environment, MARK: mark},
            pass_fds=tuple(keep),
            preexec_fn=None if shielded else lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        try:
            code = process.wait()
            return 128 - code if code < 0 else code
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
            sweep(mark)
    except OSError as problem:
        raise MissingProgram(f"cannot start {command[0]}: {problem.strerror}") from problem
    finally:
        signal.signal(signal.SIGINT, before)
