"""Columns on disk: each table of a recording as one Parquet file, made on first touch.

A file's name carries the fingerprint of its sources (path, size, modification time and content), so a changed source
simply has another file; the stale one is removed. A file appears under its name by an atomic rename, complete or not
at all, and a lock lets one process build while others wait. Deleting the directory at any time loses nothing but time.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import orjson

from srearena.snapshots.errors import SnapshotError

FORMAT = 7  # raised when the tables' columns change, so that files of an older version are not read
_SAMPLE = 16_384
_SAMPLES = 16


@dataclass(frozen=True, slots=True)
class CachedTable:
    path: Path
    rows: int
    oddities: tuple[str, ...]


def default_directory() -> Path:
    """`$SREARENA_CACHE`, or the user's cache directory."""
    given = os.environ.get("SREARENA_CACHE")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "srearena"


def stamp(sources: Sequence[Path]) -> tuple[tuple[str, int, int], ...]:
    """What is cheap to know about files: enough to see that nothing was touched since the last look."""
    result = []
    for path in sources:
        try:
            status = path.stat()
        except OSError as problem:
            raise SnapshotError(f"cannot read {path}: {problem.strerror or problem}") from problem
        result.append((path.name, status.st_size, status.st_mtime_ns))
    return tuple(result)


def fingerprint(sources: Sequence[Path]) -> str:
    """Size, time and content; of a large file, evenly spaced samples of its content stand for the whole."""
    digest = hashlib.blake2b(str(FORMAT).encode(), digest_size=12)
    for path, facts in zip(sources, stamp(sources), strict=True):
        digest.update(repr(facts).encode())
        size = facts[1]
        try:
            with path.open("rb") as handle:
                if size <= _SAMPLE * _SAMPLES:
                    digest.update(handle.read())
                    continue
                for index in range(_SAMPLES):
                    handle.seek((size - _SAMPLE) * index // (_SAMPLES - 1))
                    digest.update(handle.read(_SAMPLE))
        except OSError as problem:
            raise SnapshotError(f"cannot read {path}: {problem.strerror or problem}") from problem
    return digest.hexdigest()


class Cache:
    """The Parquet files of one recording."""

    def __init__(self, root: Path, directory: Path | None = None) -> None:
        place = hashlib.blake2b(os.fsencode(root), digest_size=8).hexdigest()
        self.directory = (directory or default_directory()) / "snapshots" / f"{root.name}-{place}"
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise SnapshotError(
                f"cannot keep columns in {self.directory}: {problem.strerror}; set SREARENA_CACHE to a place that can"
            ) from problem

    def table(self, name: str, sources: Sequence[Path], build: Callable[[Path], tuple[int, list[str]]]) -> CachedTable:
        """The table's file, built by `build(path)` if there is none for these sources."""
        stem = f"{name}-{fingerprint(sources)}"
        final, facts = self.directory / f"{stem}.parquet", self.directory / f"{stem}.json"
        if not final.exists():
            with self._lock(name):
                if not final.exists():
                    self._make(final, facts, build)
                    self._drop_stale(name, stem)
        known = orjson.loads(facts.read_bytes())
        return CachedTable(final, known["rows"], tuple(known["oddities"]))

    def _make(self, final: Path, facts: Path, build: Callable[[Path], tuple[int, list[str]]]) -> None:
        partial = final.with_suffix(f".{os.getpid()}.partial")
        try:
            rows, oddities = build(partial)
            noted = facts.with_suffix(f".{os.getpid()}.facts")
            noted.write_bytes(orjson.dumps({"rows": rows, "oddities": oddities}))
            noted.replace(facts)
            partial.replace(final)
        finally:
            _discard(partial)

    def _drop_stale(self, name: str, stem: str) -> None:
        for old in self.directory.glob(f"{name}-*"):
            if old.name.startswith(stem):
                continue
            _discard(old)  # of other sources, or left by a process that was killed

    @contextmanager
    def _lock(self, name: str) -> Iterator[None]:
        with (self.directory / f".{name}.lock").open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    def remove(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)


def _discard(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
