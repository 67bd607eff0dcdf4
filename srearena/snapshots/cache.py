"""Cache of a recording's tables as Parquet files, built on first use.

A file's name contains the fingerprint of its sources (path, size, modification time and content): a changed source gets
a new file and the stale one is removed. Files are published by atomic rename, and a lock lets one process build while
others wait. The directory can be deleted at any time; tables are then built again.
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

from srearena.paths import cache_directory
from srearena.snapshots.errors import SnapshotError

FORMAT = 9  # raise it when the columns of a table change, so that older files are not used
_SAMPLE = 16_384  # bytes; a fingerprint reads at most _SAMPLES samples of this size per file
_SAMPLES = 16


@dataclass(frozen=True, slots=True)
class CachedTable:
    path: Path
    rows: int
    oddities: tuple[str, ...]


def file_stamps(sources: Sequence[Path]) -> tuple[tuple[str, int, int], ...]:
    """Name, size and modification time of files: a cheap check whether they changed."""
    result = []
    for path in sources:
        try:
            status = path.stat()
        except OSError as problem:
            raise SnapshotError(f"cannot read {path}: {problem.strerror or problem}") from problem
        result.append((path.name, status.st_size, status.st_mtime_ns))
    return tuple(result)


def fingerprint(sources: Sequence[Path]) -> str:
    """Hash of size, time and content; of large files, of evenly spaced samples of the content."""
    digest = hashlib.blake2b(str(FORMAT).encode(), digest_size=12)
    for path, stamp in zip(sources, file_stamps(sources), strict=True):
        digest.update(repr(stamp).encode())
        size = stamp[1]
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
        digest = hashlib.blake2b(os.fsencode(root), digest_size=8).hexdigest()
        self.directory = (directory or cache_directory()) / "snapshots" / f"{root.name}-{digest}"
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise SnapshotError(
                f"cannot write columns to {self.directory}: {problem.strerror}; "
                "set SREARENA_CACHE to a writable directory"
            ) from problem

    def table(self, name: str, sources: Sequence[Path], build: Callable[[Path], tuple[int, list[str]]]) -> CachedTable:
        """The table's file; `build(path)` writes it if there is none for these sources."""
        stem = f"{name}-{fingerprint(sources)}"
        final, facts = self.directory / f"{stem}.parquet", self.directory / f"{stem}.json"
        if not final.exists():
            with self.lock(name):
                if not final.exists():
                    self._build(final, facts, build)
                    self.drop_stale(name, stem)
        document = orjson.loads(facts.read_bytes())
        return CachedTable(final, document["rows"], tuple(document["oddities"]))

    def _build(self, final: Path, facts: Path, build: Callable[[Path], tuple[int, list[str]]]) -> None:
        partial = final.with_suffix(f".{os.getpid()}.partial")
        try:
            rows, oddities = build(partial)
            draft = facts.with_suffix(f".{os.getpid()}.facts")
            draft.write_bytes(orjson.dumps({"rows": rows, "oddities": oddities}))
            draft.replace(facts)
            partial.replace(final)
        finally:
            _discard(partial)

    def drop_stale(self, name: str, stem: str) -> None:
        """Delete what was converted from earlier sources of a table; called with the lock held."""
        for old in self.directory.glob(f"{name}-*"):
            if old.name.startswith(stem):
                continue
            _discard(old)  # of earlier sources, or a partial file of a killed process

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
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
