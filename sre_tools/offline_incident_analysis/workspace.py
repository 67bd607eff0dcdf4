"""Which snapshot a call is about, and which paths it may name.

A server is started for one snapshot, or for a directory that holds several; whatever an agent names must lie inside
after every link is resolved. The answer key is refused by name wherever it lies. Paths are taken as the old tools took
them: a scenario's directory, its `alerts/` or `metrics/`, or one of its files all mean that scenario.
"""

from __future__ import annotations

import threading
from pathlib import Path

from sre_tools.errors import ToolError
from srearena.closing import Closing
from srearena.ground_truth.files import is_ground_truth_file
from srearena.snapshots import Snapshot, find_snapshots, open_snapshot, scan

_PARTS = frozenset({"alerts", "metrics"})


class Workspace(Closing):
    """The snapshots a server serves, opened when first asked for."""

    def __init__(self, root: Path | str, *, cache: Path | None = None, output: Path | None = None) -> None:
        self.root = Path(root).resolve()
        if not self.root.is_dir():
            raise ToolError(f"no directory at {root}: start the tools with the directory of a snapshot")
        self.output = output.resolve() if output else None
        self._cache = cache
        self._open: dict[Path, Snapshot] = {}
        self._lock = threading.Lock()
        self._single = not scan(self.root).empty

    def close(self) -> None:
        for snapshot in self._open.values():
            snapshot.close()
        self._open.clear()

    def confined(self, given: str, *, roots: tuple[Path, ...] = ()) -> Path:
        """A path that an agent named, resolved, or a refusal."""
        if "\0" in given:
            raise ToolError("that is no path")
        path = Path(given)
        candidate = (path if path.is_absolute() else self.root / path).resolve()
        if not any(candidate.is_relative_to(root) for root in (self.root, *roots)):
            raise ToolError(f"{given} is outside what these tools may read; leave the path out to use this snapshot")
        if is_ground_truth_file(path) or is_ground_truth_file(candidate):
            raise ToolError("the answer key is not evidence and is not read")
        return candidate

    def snapshot(self, *paths: str | None) -> Snapshot:
        """The snapshot that the given paths lie in; without any, the one the server was started for."""
        named = [path for path in paths if path]
        places = {self._scenario(self.confined(path)) for path in named}
        if len(places) > 1:
            raise ToolError("the paths belong to different snapshots; one call is about one snapshot")
        if places:
            return self._opened(places.pop())
        if self._single:
            return self._opened(self.root)
        found = find_snapshots(self.root)
        if len(found) == 1:
            return self._opened(found[0])
        names = ", ".join(str(place.relative_to(self.root)) for place in found[:10]) or "none"
        raise ToolError(f"say which snapshot: there are {len(found)} here ({names}); pass its directory")

    def _scenario(self, path: Path) -> Path:
        if self._single:
            return self.root
        if not path.exists():
            raise ToolError(f"there is no {path.relative_to(self.root)}; call with the directory of a scenario")
        place = path if path.is_dir() else path.parent
        place = place.parent if place.name in _PARTS else place
        if scan(place).empty:
            raise ToolError(f"{path.relative_to(self.root) if path != self.root else path.name} is no snapshot")
        return place

    def _opened(self, place: Path) -> Snapshot:
        with self._lock:
            if place not in self._open:
                self._open[place] = open_snapshot(place, cache=self._cache)
            return self._open[place]
