"""Parts of a table with many source files: each file is converted once, when a question first needs it.

The name of the directory of parts contains the fingerprint of all sources; a part is a directory with Parquet files and
the list of the sources it covers, published by atomic rename. A lock lets one process or thread convert while others
wait.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from srearena.snapshots.cache import Cache, CachedTable, fingerprint

_FACTS = "facts.json"
Convert = Callable[[Sequence[Path], Path], tuple[int, list[str]]]
"""Converts sources into a directory of Parquet files; returns the number of rows and the oddities found."""


@dataclass(frozen=True, slots=True)
class _Part:
    files: frozenset[str]
    rows: int
    oddities: tuple[str, ...]


def _key(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


class Parts:
    """The converted files of one table."""

    def __init__(self, cache: Cache, name: str, sources: Sequence[Path]) -> None:
        self._cache, self._name, self._sources = cache, name, sources
        self.directory = cache.directory / f"{name}-{fingerprint(sources)}.parts"
        self._parts: dict[str, _Part] = {}

    def missing(self, requested_files: Sequence[Path]) -> list[Path]:
        """The files that are not converted yet."""
        self._refresh()
        covered: set[str] = set().union(*(part.files for part in self._parts.values()))
        return [path for path in requested_files if _key(path) not in covered]

    def add(self, requested_files: Sequence[Path], convert: Convert) -> None:
        """Convert those of the files that are not converted yet, as one part."""
        if not self.missing(requested_files):
            return
        with self._cache.lock(self._name):
            missing = self.missing(requested_files)
            if missing:
                self._convert(missing, convert)

    def _convert(self, files: Sequence[Path], convert: Convert) -> None:
        if not self._parts:
            self._cache.drop_stale(self._name, self.directory.name)
        self.directory.mkdir(exist_ok=True)
        for abandoned in self.directory.glob("*.partial"):  # of a killed process: the lock is ours
            shutil.rmtree(abandoned, ignore_errors=True)
        number = f"{len(self._parts):05d}"
        partial = self.directory / f"{number}.{os.getpid()}.partial"
        try:
            rows, oddities = convert(files, partial)
            facts = {"files": [_key(path) for path in files], "rows": rows, "oddities": oddities}
            (partial / _FACTS).write_bytes(orjson.dumps(facts))
            partial.replace(self.directory / number)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        self._refresh()

    def _refresh(self) -> None:
        """Read the facts of parts that others have added; without parts if the cache was deleted."""
        found = {path.parent.name: path for path in self.directory.glob(f"*/{_FACTS}") if path.parent.name.isdigit()}
        known = {name: part for name, part in self._parts.items() if name in found}
        for name in found.keys() - known.keys():
            document = orjson.loads(found[name].read_bytes())
            known[name] = _Part(frozenset(document["files"]), document["rows"], tuple(document["oddities"]))
        self._parts = known  # replaced, not changed: threads share the parts

    @property
    def files(self) -> list[Path]:
        """The Parquet files of all parts."""
        return sorted(path for name in self._parts for path in (self.directory / name).glob("*.parquet"))

    @staticmethod
    def files_in(directory: Path) -> list[Path]:
        """The Parquet files of a complete table."""
        return sorted(path for path in directory.glob("*/*.parquet") if path.parent.name.isdigit())

    def table(self) -> CachedTable:
        """The table, of the parts there are."""
        parts = [self._parts[name] for name in sorted(self._parts)]
        oddities = tuple(dict.fromkeys(oddity for part in parts for oddity in part.oddities))
        return CachedTable(self.directory, sum(part.rows for part in parts), oddities)
