"""Where a recording keeps its files: every layout in the wild, found by looking rather than by version number.

A `Layout` lists files that lie inside the recording, really: a symbolic link that leads out of it is passed over and
told in `oddities`. The answer key is listed apart from the evidence, so that whoever serves evidence never meets it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from srearena.ground_truth.files import is_ground_truth_file
from srearena.snapshots.errors import SnapshotError

# Table to the patterns of its files, the raw recording before the processed one: the first that hits is the table.
_TABLES: dict[str, tuple[str, ...]] = {
    "events": (r"k8s_events_raw\.tsv", r".*events.*\.tsv"),
    "objects": (r"k8s_objects_raw\.tsv", r".*objects.*\.tsv"),
    "logs": (r"otel_logs_raw\.tsv", r".*logs.*\.tsv"),
    "spans": (r"otel_traces_raw\.tsv", r".*traces.*\.tsv"),
}
_LOOSE_ALERTS = re.compile(r"alerts?[-_].*\.json", re.IGNORECASE)
_METRICS = re.compile(r"(?P<kind>pod|service|node)_(?P<name>.+?)(?:_raw)?\.tsv", re.IGNORECASE)
_ARCHITECTURE = re.compile(r".*(?:architecture|topology).*\.json", re.IGNORECASE)
_METADATA = ("status.json", "assertion.json", "scenario.yaml")
_SKIPPED = frozenset({".git", "node_modules", "__pycache__", ".venv"})
_MAX_DEPTH = 8


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
    """`pod_cart-1_raw.tsv` holds the metrics of pod cart-1."""
    match = _METRICS.fullmatch(path.name)
    return (match["kind"].lower(), match["name"]) if match else None


def _inside(directory: Path, root: Path, oddities: list[str]) -> list[Path]:
    """The regular files of a directory, by name; links that lead out of the recording are refused."""
    try:
        paths = sorted(directory.iterdir())
    except OSError:
        return []
    kept = []
    for path in paths:
        if path.is_symlink() and not path.resolve().is_relative_to(root):
            oddities.append(f"{path.relative_to(root)}: a link out of the snapshot; not read")
        elif path.is_file():
            kept.append(path)
    return kept


def _subdirectory(root: Path, name: str, oddities: list[str]) -> list[Path]:
    directory = root / name
    if directory.is_symlink() and not directory.resolve().is_relative_to(root):
        oddities.append(f"{name}: a link out of the snapshot; not read")
        return []
    return _inside(directory, root, oddities) if directory.is_dir() else []


def _table_files(files: list[Path], patterns: tuple[str, ...], taken: set[Path]) -> tuple[Path, ...]:
    for pattern in patterns:
        hits = [path for path in files if path not in taken and re.fullmatch(pattern, path.name, re.IGNORECASE)]
        if hits:
            taken.update(hits)
            return tuple(hits)
    return ()


def scan(directory: Path) -> Layout:
    """What lies in one recording's directory."""
    try:
        root = directory.resolve(strict=True)
    except OSError as problem:
        raise SnapshotError(f"no snapshot at {directory}: {problem.strerror or problem}") from problem
    if not root.is_dir():
        raise SnapshotError(f"no snapshot at {directory}: it is a file; give the directory that holds it")
    oddities: list[str] = []
    here = _inside(root, root, oddities)
    metrics = [p for p in _subdirectory(root, "metrics", oddities) if p.suffix == ".tsv"]
    metrics = metrics or [p for p in here if metric_object(p)]
    for stray in [p for p in metrics if metric_object(p) is None]:
        oddities.append(f"metrics/{stray.name}: neither pod_, service_ nor node_<name>; not read")
    alerts = [p for p in _subdirectory(root, "alerts", oddities) if p.suffix == ".json"]
    if not alerts:
        alerts = [p for p in here if _LOOSE_ALERTS.fullmatch(p.name)]
        if alerts:
            oddities.append("no alerts/ directory; loose alert files in the root are used")
    taken = set(metrics)
    tables = {name: _table_files(here, patterns, taken) for name, patterns in _TABLES.items()}
    raw = any(path.name.endswith("_raw.tsv") for files in (*tables.values(), metrics) for path in files)
    return Layout(
        root=root,
        form="raw" if raw else "processed",
        tables=tables,
        alerts=tuple(alerts),
        metrics=tuple(p for p in metrics if metric_object(p)),
        answer_keys=tuple(p for p in here if is_ground_truth_file(p)),
        architecture=tuple(p for p in here if _ARCHITECTURE.fullmatch(p.name)),
        metadata=tuple(p for p in here if p.name in _METADATA),
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
    """Every recording at or under a directory, however deep (`snapshots/sre/<version>/<uuid>/Scenario-3`)."""
    if not directory.is_dir():
        raise SnapshotError(f"no snapshot at {directory}: no such directory")
    return list(_candidates(directory.resolve(), _MAX_DEPTH))
