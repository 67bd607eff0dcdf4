"""File layout of a recording, detected from its file names rather than from a version number.

A `Layout` lists only files inside the recording: a symbolic link that leads out of it is skipped and reported in
`oddities`. Answer keys are listed apart from the evidence, so that code that serves evidence never reads them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from srearena.ground_truth.files import is_ground_truth_file
from srearena.snapshots.errors import SnapshotError

# File name patterns per table, raw layout before processed; the first pattern with matches is used.
_TABLES: dict[str, tuple[str, ...]] = {
    "events": (r"k8s_events_raw\.tsv", r".*events.*\.tsv"),
    "objects": (r"k8s_objects_raw\.tsv", r".*objects.*\.tsv"),
    "logs": (r"otel_logs_raw\.tsv", r".*logs.*\.tsv"),
    "spans": (r"otel_traces_raw\.tsv", r".*traces.*\.tsv"),
}
_LOOSE_ALERTS = re.compile(r"alerts?[-_].*\.json", re.IGNORECASE)
_METRICS = re.compile(r"(?P<kind>pod|service|node)_(?P<name>.+?)(?:_raw)?\.tsv", re.IGNORECASE)
_ARCHITECTURE = re.compile(r".*(?:architecture|topology).*\.json", re.IGNORECASE)
# Directories that a recorder may put the tables into, in order of preference, and the directories of metrics in them.
_TABLE_DIRECTORIES = ("", "raw", "lite")
_METRIC_DIRECTORIES = ("metrics", "metrics_pod", "metrics_service", "metrics_node")
_METADATA = ("status.json", "assertion.json", "scenario.yaml")
_SKIPPED = frozenset({".git", "node_modules", "__pycache__", ".venv"})
_MAX_DEPTH = 8  # directories; the deepest known layout has 5


@dataclass(frozen=True, slots=True)
class Layout:
    root: Path
    form: str
    tables: dict[str, tuple[Path, ...]]
    alerts: tuple[Path, ...]
    metrics: tuple[Path, ...]
    answer_keys: tuple[Path, ...]
    architecture: tuple[Path, ...]
    metadata: tuple[Path, ...]
    oddities: tuple[str, ...]

    def sources(self, table: str) -> tuple[Path, ...]:
        if table == "alerts":
            return self.alerts
        return self.metrics if table == "metrics" else self.tables.get(table, ())

    @property
    def empty(self) -> bool:
        return not (self.alerts or self.metrics or any(self.tables.values()))


def metric_object(path: Path) -> tuple[str, str] | None:
    """Kind and name of the object in a metrics file name: `pod_cart-1_raw.tsv` is pod cart-1."""
    match = _METRICS.fullmatch(path.name)
    return (match["kind"].lower(), match["name"]) if match else None


def _files_in(directory: Path, root: Path, oddities: list[str]) -> list[Path]:
    """The regular files of a directory, sorted; links out of the recording are skipped and reported."""
    try:
        paths = sorted(directory.iterdir())
    except OSError:
        return []
    files = []
    for path in paths:
        if not _is_text(path.name):
            oddities.append(f"{path.parent.name}/{path.name!a}: a name that is not UTF-8; not read")
        elif _leads_out(path, root):
            oddities.append(f"{path.relative_to(root)}: a link out of the snapshot; not read")
        elif path.is_file():
            files.append(path)
    return files


def _is_text(name: str) -> bool:
    """Whether a name can be written as UTF-8: other bytes are surrogates in Python, which DuckDB cannot take."""
    return not any("\ud800" <= character <= "\udfff" for character in name)


def _leads_out(path: Path, root: Path) -> bool:
    """Whether a path is a link out of the recording, or one that leads nowhere."""
    try:
        return path.is_symlink() and not path.resolve(strict=True).is_relative_to(root)
    except (OSError, RuntimeError):  # a loop of links; Python 3.13 raises for it only with `strict`
        return True


def _subdirectory(root: Path, name: str, oddities: list[str]) -> list[Path]:
    directory = root / name
    if _leads_out(directory, root):
        oddities.append(f"{name}: a link out of the snapshot; not read")
        return []
    return _files_in(directory, root, oddities) if directory.is_dir() else []


def _table_files(files: list[Path], patterns: tuple[str, ...], assigned: set[Path]) -> tuple[Path, ...]:
    for pattern in patterns:
        hits = [path for path in files if path not in assigned and re.fullmatch(pattern, path.name, re.IGNORECASE)]
        if hits:
            assigned.update(hits)
            return tuple(hits)
    return ()


def _scenario(root: Path) -> Path:
    """The directory of the recording: that above `raw/` or `lite/` if the alerts are there."""
    above = root.parent
    if root.name in _TABLE_DIRECTORIES and not (root / "alerts").is_dir() and (above / "alerts").is_dir():
        return above
    return root


def _preferred(root: Path, only: str | None, oddities: list[str]) -> tuple[list[Path], list[Path]]:
    """The files beside the tables, and the files of metrics, of the first directory that has either."""
    for name in (only,) if only else _TABLE_DIRECTORIES:
        files = _subdirectory(root, name, oddities) if name else _files_in(root, root, oddities)
        folders = [f"{name}/{folder}" if name else folder for folder in _METRIC_DIRECTORIES]
        metrics = [p for folder in folders for p in _subdirectory(root, folder, oddities) if p.suffix == ".tsv"]
        metrics = metrics or [p for p in files if metric_object(p)]
        if metrics or any(p.suffix == ".tsv" for p in files):
            return files, metrics
    return [], []


def scan(directory: Path) -> Layout:
    """The layout of one recording's directory."""
    try:
        root = directory.resolve(strict=True)
    except OSError as problem:
        raise SnapshotError(f"no snapshot at {directory}: {problem.strerror or problem}") from problem
    if not root.is_dir():
        raise SnapshotError(f"no snapshot at {directory}: it is a file; give the directory that contains it")
    oddities: list[str] = []
    scenario = _scenario(root)
    table_files, metrics = _preferred(scenario, root.name if scenario != root else None, oddities)
    root = scenario
    files = _files_in(root, root, [])
    for stray in [p for p in metrics if metric_object(p) is None]:
        oddities.append(f"{stray.parent.name}/{stray.name}: neither pod_, service_ nor node_<name>; not read")
    alerts = [p for p in _subdirectory(root, "alerts", oddities) if p.suffix == ".json"]
    if not alerts:
        alerts = [p for p in files if _LOOSE_ALERTS.fullmatch(p.name)]
        if alerts:
            oddities.append("no alerts/ directory; loose alert files in the root are used")
    assigned = set(metrics)
    tables = {name: _table_files(table_files, patterns, assigned) for name, patterns in _TABLES.items()}
    raw = any(path.name.endswith("_raw.tsv") for files in (*tables.values(), metrics) for path in files)
    return Layout(
        root=root,
        form="raw" if raw else "processed",
        tables=tables,
        alerts=tuple(alerts),
        metrics=tuple(p for p in metrics if metric_object(p)),
        answer_keys=tuple(p for p in files if is_ground_truth_file(p)),
        architecture=tuple(p for p in files if _ARCHITECTURE.fullmatch(p.name)),
        metadata=tuple(p for p in files if p.name in _METADATA),
        oddities=tuple(oddities),
    )


def _candidates(directory: Path, depth: int) -> Iterator[Path]:
    layout = scan(directory)
    if not layout.empty:
        yield directory
        return
    if depth == 0:
        return
    for child in sorted(directory.iterdir()):
        if child.is_dir() and not child.is_symlink() and child.name not in _SKIPPED:
            yield from _candidates(child, depth - 1)


def find_snapshots(directory: Path) -> list[Path]:
    """Every recording at or below a directory (`snapshots/sre/<version>/<uuid>/Scenario-3`)."""
    if not directory.is_dir():
        raise SnapshotError(f"no snapshot at {directory}: no such directory")
    return list(_candidates(directory.resolve(), _MAX_DEPTH))
