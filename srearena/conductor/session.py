"""`Session`: the event log of a trial, flushed with every entry so that a crash loses nothing.

One JSON object per line. While the agent works, the file has a random name and no entry names the problem; the verdicts
are appended after the last submission.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from time import time as now  # noqa: TID251 - the age of a file is real time
from typing import IO, Any

_UNLOCKED_SECONDS = 60.0
"""Between the creation of a log and its lock pass microseconds; chosen far above."""
_LONGEST_TEXT = 200_000
"""Characters; above the longest answer of a tool, so only runaway agents are cut."""


class Session:
    """The event log of one trial; in memory only where no folder is set."""

    def __init__(self, folder: Path | None = None) -> None:
        self.session_id = token_hex(8)
        self.history: list[dict[str, Any]] = []
        self.path: Path | None = None
        self.clock: Callable[[], float | None] = lambda: None
        """The time of the system that the trial is about, which may pass faster than real time."""
        self._file: IO[str] | None = None
        self._published = False
        self._moved = False
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            self.path = folder / f"{self.session_id}.jsonl"
            try:
                self._create(folder)
            except BaseException:  # of an interrupt too: no caller has this object yet, to discard it
                self.path.unlink(missing_ok=True)
                raise

    def _create(self, folder: Path) -> None:
        assert self.path is not None
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._file = os.fdopen(descriptor, "w", encoding="utf-8")
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # held while this process writes: tells live logs from left ones
        for left in left_logs(folder):
            left.unlink(missing_ok=True)

    def note(self, what: str, **facts: Any) -> None:
        """Append one entry and flush it to disk."""
        clock = self.clock()
        entry = {
            "at": datetime.now(UTC).isoformat(),
            **({"clock": clock} if clock is not None else {}),
            "what": what,
            **{key: _bounded(value) for key, value in facts.items()},
        }
        self.history.append(entry)
        if self._file is not None:
            self._file.write(json.dumps(entry, default=str) + "\n")
            self._file.flush()

    @property
    def lines(self) -> int:
        """How many entries there are."""
        return len(self.history)

    def publish(self, document: dict[str, Any]) -> None:
        """Write a document beside the log, for programs that watch the trial; it is deleted when the log is closed."""
        if self.path is not None:
            descriptor = os.open(self._companion(self.path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(document, file)
            self._published = True

    @staticmethod
    def _companion(path: Path) -> Path:
        return path.with_suffix(".json")

    def copy(self) -> Session:
        """In a fork of the process: a log of its own that begins with the same entries."""
        copied = Session(self.path.parent if self.path is not None else None)
        copied.history, copied.clock = list(self.history), self.clock
        if copied._file is not None:
            copied._file.writelines(json.dumps(entry, default=str) + "\n" for entry in self.history)
            copied._file.flush()
        self._published = False  # what is published is of the original process
        self.close()
        return copied

    def write(self, path: Path) -> None:
        """Write all entries so far to a file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(entry, default=str) + "\n" for entry in self.history), encoding="utf-8")

    def move(self, path: Path) -> None:
        """Close the file and move it to its final path."""
        self.close()
        if self.path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self.path.replace(path)
            self.path, self._moved = path, True

    def discard(self) -> None:
        """Close the log, and delete the file unless it has been moved to its final path."""
        if self.path is not None and not self._moved:
            self.path.unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        if self._published and self.path is not None:
            self._companion(self.path).unlink(missing_ok=True)
            self._published = False
        if self._file is not None:
            self._file.close()
            self._file = None


def left_logs(folder: Path) -> list[Path]:
    """Event logs in a folder that killed processes have left, with the documents beside them."""
    paths = sorted([*folder.glob("*.jsonl"), *folder.glob("*.json")])
    return [path for path in paths if _age(path) > _UNLOCKED_SECONDS and not is_written(path.with_suffix(".jsonl"))]


def _age(path: Path) -> float:
    try:
        return now() - path.stat().st_mtime
    except OSError:
        return 0.0


def is_written(path: Path) -> bool:
    """Whether a process still has an event log open: it holds a lock on it."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _bounded(value: Any) -> Any:
    """A value that JSON can hold, cut to a bounded length."""
    if isinstance(value, str):
        text = value.encode("utf-8", "replace").decode()
        return text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + f"... ({len(text)} characters)"
    if isinstance(value, int | float | bool) or value is None:
        return value
    text = json.dumps(value, default=str)
    if len(text) > _LONGEST_TEXT:
        return text[:_LONGEST_TEXT] + f"... ({len(text)} characters)"
    return json.loads(text)


def read_session(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the entries of a session file, without a last line that a crash has truncated."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            try:
                yield json.loads(line)
            except ValueError:
                return
