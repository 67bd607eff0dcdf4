"""Temporary folders that do not outlive their process by more than the start of the next one.

A process removes its folders when it ends, at the latest. A killed one cannot, so each process keeps a record of its
folders in the user's state directory, with a lock on it for as long as it lives. The first folder of every process is
made after sweeping: an unlocked record is of a process that has ended, and its folders are removed with it.

Locks tell the living from the dead across containers and reused process ids, which numbers would not.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import IO

from srearena.paths import state_directory

_NAME = re.compile(r"[a-z]+(-[a-z]+)*-[0-9a-f]{8}")
"""Names of our folders: a damaged record cannot have another one removed.

They are short, because the path of a socket has at most 107 bytes.
"""


class _Record:
    """The record of this process."""

    def __init__(self) -> None:
        self.pid = 0
        self.file: IO[str] | None = None
        self.path = Path()

    def add(self, folder: Path) -> None:
        if self.pid != os.getpid():  # the first folder of this process, which may be a fork of another
            self._open()
        if self.file is not None:
            self.file.write(f"{folder}\n")
            self.file.flush()

    def _open(self) -> None:
        self.pid = os.getpid()
        if self.file is not None:
            self.file.close()  # the lock stays with the process that this one is a fork of
            self.file = None
        sweep()
        try:
            self._create()
        except OSError:
            return  # without a record, only a kill leaves something behind
        atexit.register(self._remove, self.pid)

    def _create(self) -> None:
        directory = _records()
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        while True:
            path = directory / str(self.pid)
            file = path.open("a", encoding="utf-8")
            fcntl.flock(file, fcntl.LOCK_EX)
            if _is_same(file, path):
                self.file, self.path = file, path
                return
            file.close()  # swept between its creation and its lock

    def _remove(self, pid: int) -> None:
        """At the end of the process: remove folders of interrupted constructors, which no caller could remove."""
        if os.getpid() == pid and self.file is not None:
            with contextlib.suppress(OSError):
                with self.path.open(encoding="utf-8") as file:
                    _remove_folders(file)
                self.path.unlink()
            self.file.close()


_record = _Record()


def make_folder(prefix: str) -> Path:
    """Create a private folder `prefix-xxxxxxxx` in the temporary directory; the caller removes it."""
    folder = Path(tempfile.gettempdir()) / f"{prefix}-{token_hex(4)}"
    _record.add(folder)  # before it exists: a process that is killed in between leaves nothing that is not recorded
    folder.mkdir(mode=0o700)
    return folder


def leftovers() -> list[Path]:
    """Folders that killed processes have left."""
    found: list[Path] = []
    for path in _paths():
        with _ended(path) as file:
            found += _folders(file) if file is not None else []
    return found


def sweep() -> None:
    """Remove what killed processes have left."""
    for path in _paths():
        with _ended(path) as file:
            if file is None:
                continue
            _remove_folders(file)
            with contextlib.suppress(OSError):
                path.unlink()


def _records() -> Path:
    return state_directory() / "processes"


def _paths() -> list[Path]:
    try:
        return sorted(_records().iterdir())
    except OSError:
        return []


@contextmanager
def _ended(path: Path) -> Iterator[IO[str] | None]:
    """The record at a path, locked; None where its process lives, or another one is sweeping it."""
    try:
        file = path.open(encoding="utf-8")
    except OSError:
        yield None
        return
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield None
            return
        yield file if _is_same(file, path) else None


def _is_same(file: IO[str], path: Path) -> bool:
    """Whether an open file is still the one at the path."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except OSError:
        return False


def _remove_folders(file: IO[str]) -> None:
    for folder in _folders(file):
        shutil.rmtree(folder, ignore_errors=True)


def _folders(file: IO[str]) -> list[Path]:
    recorded = [Path(line) for line in file.read().splitlines()]
    return [path for path in recorded if path.is_absolute() and _NAME.fullmatch(path.name) and path.is_dir()]
