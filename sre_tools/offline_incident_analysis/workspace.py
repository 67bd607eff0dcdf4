"""The snapshots a server may read, and the check of paths in arguments.

A server serves one snapshot or a directory of several; a path in an argument must lie inside after resolving links.
Answer keys are refused by name. As in earlier tools of these names, a path may be a scenario's directory, its `alerts/`
or `metrics/`, or one of its files; all stand for that scenario.
"""

from __future__ import annotations

import threading
from pathlib import Path

from sre_tools.errors import ToolError
from srearena.closeable import Closeable
from srearena.ground_truth.files import may_hold_ground_truth
from srearena.snapshots import Snapshot, find_snapshots, open_snapshot, scan

_PARTS = frozenset({"alerts", "metrics", "metrics_pod", "metrics_service", "metrics_node", "raw", "lite"})


class Workspace(Closeable):
    """The snapshots of a server, opened on first use."""

    def __init__(
        self,
        root: Path | str,
        *,
        cache: Path | None = None,
        output: Path | None = None,
        architecture: Path | None = None,
    ) -> None:
        """`architecture` is a file outside the root that callers may name, or a directory of such files."""
        self.root = Path(root).resolve()
        if not self.root.is_dir():
            raise ToolError(f"no directory at {root}: start the tools with the directory of a snapshot")
        self.output = output.resolve() if output else None
        self._architecture = architecture.resolve() if architecture else None
        self._cache = cache
        self._snapshots: dict[Path, Snapshot] = {}
        self._lock = threading.Lock()
        self._single = not scan(self.root).empty

    def close(self) -> None:
        for snapshot in self._snapshots.values():
            snapshot.close()
        self._snapshots.clear()

    def confine(self, text: str) -> Path:
        """The resolved path of an argument; ToolError if it may not be read."""
        if "\0" in text:
            raise ToolError("that is no path")
        path = Path(text)
        candidate = (path if path.is_absolute() else self.root / path).resolve()
        if not candidate.is_relative_to(self.root):
            raise ToolError(f"{text} is outside what these tools may read; leave the path out to use this snapshot")
        if may_hold_ground_truth(path) or may_hold_ground_truth(candidate):
            raise ToolError("the answer key is not evidence and is not read")
        return candidate

    def architecture_file(self, text: str) -> Path:
        """The resolved path of an architecture file: in the snapshots, or where the server's start allows it."""
        allowed = self._architecture
        if allowed is not None and "\0" not in text:
            path = Path(text)
            base = allowed if allowed.is_dir() else allowed.parent
            candidate = (path if path.is_absolute() else base / path).resolve()
            within = candidate.is_relative_to(allowed)  # a file is relative to itself
            if within and candidate.is_file() and not may_hold_ground_truth(candidate):
                return candidate
        return self.confine(text)

    def snapshot(self, *paths: str | None) -> Snapshot:
        """The snapshot of the paths in a call; without paths, the one the server was started for."""
        directories = {self._scenario(self.confine(path)) for path in paths if path}
        if len(directories) > 1:
            raise ToolError("the paths belong to different snapshots; one call is about one snapshot")
        if directories:
            return self._open(directories.pop())
        if self._single:
            return self._open(self.root)
        candidates = find_snapshots(self.root)
        if len(candidates) == 1:
            return self._open(candidates[0])
        names = ", ".join(str(path.relative_to(self.root)) for path in candidates[:10]) or "none"
        raise ToolError(f"say which snapshot: there are {len(candidates)} here ({names}); pass its directory")

    def _scenario(self, path: Path) -> Path:
        if self._single:
            return self.root
        if not path.exists():
            raise ToolError(f"there is no {path.relative_to(self.root)}; call with the directory of a scenario")
        directory = path if path.is_dir() else path.parent
        while directory.name in _PARTS and directory != self.root:
            directory = directory.parent
        if scan(directory).empty:
            raise ToolError(f"{path.relative_to(self.root) if path != self.root else path.name} is no snapshot")
        return directory

    def _open(self, directory: Path) -> Snapshot:
        with self._lock:
            if directory not in self._snapshots:
                self._snapshots[directory] = self._new_snapshot(directory)
            return self._snapshots[directory]

    def _new_snapshot(self, directory: Path) -> Snapshot:
        return open_snapshot(directory, cache=self._cache)
