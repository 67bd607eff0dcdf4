"""Find and read ground truth files.

Accepted: one JSON, YAML or JSON-lines file (a list of incidents, a mapping of them, or a single one), a directory
with `ground_truths.json`, and any tree of scenario directories, however deep (`snapshots/sre/<version>/Scenario-3`).
If an incident is found twice, the path that sorts last is used, and a warning names the other.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from srearena.errors import InputError, one_line
from srearena.ground_truth.model import GroundTruth
from srearena.ground_truth.parsing import canonical_id, parse_ground_truth
from srearena.yaml_documents import load_yaml

# In order of preference within one directory: formats with groups and propagations before lists of entities.
SCENARIO_FILES = (
    "ground_truth.yaml",
    "ground_truth.yml",
    "ground_truth.json",
    "gt.yaml",
    "gt.yml",
    "gt.json",
    "groundtruth_v1.yaml",
    "groundtruth.yaml",
    "groundtruth.yml",
    "groundtruth.json",
)
CONSOLIDATED = ("ground_truths.json", "ground_truths.yaml")
_ANY_NAME = re.compile(r"(?:ground[-_ ]?truths?(?:[-_]v\d+)?|gt|answer[-_ ]?keys?)\.(?:ya?ml|json)", re.IGNORECASE)
_LIKELY_NAME = re.compile(
    r"[.#~]*(?:(?:ground[-_ ]?truths?|answer[-_ ]?keys?)(?![a-z]).*|gt(?:[-_ ]?v?\d+)?\.(?:ya?ml|json)(?![a-z0-9]).*)",
    re.IGNORECASE | re.DOTALL,
)
_SKIPPED = frozenset({".git", "node_modules", "__pycache__", ".venv", "alerts", "metrics"})

_LARGEST = 100_000_000  # bytes; chosen: a consolidated file of ten thousand incidents has less


@dataclass(slots=True)
class TruthSet:
    """Ground truths by incident, and warnings about their files."""

    truths: dict[str, GroundTruth] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def add(self, truth: GroundTruth) -> None:
        previous = self.truths.get(truth.incident_id)
        if previous is not None and previous.path != truth.path:
            self.warnings.append(
                f"incident {truth.incident_id} has two ground truths: using {truth.path}, not {previous.path}"
            )
        elif previous is not None:
            self.warnings.append(f"incident {truth.incident_id} appears twice in {truth.path}; the last one counts")
        self.truths[truth.incident_id] = truth


def is_ground_truth_file(path: Path) -> bool:
    """Whether a file holds ground truth by its name: no agent may read it."""
    return _ANY_NAME.fullmatch(path.name) is not None


def may_hold_ground_truth(path: Path) -> bool:
    """Whether a name looks like ground truth, copies and backups included (`ground_truth.yaml.bak`, `gt.json~`)."""
    return _LIKELY_NAME.fullmatch(path.name) is not None


def hard_links_of_ground_truth(directory: Path) -> frozenset[tuple[int, int]]:
    """Device and inode of the ground truth files at or below a directory, and beside it, that have several names."""
    places = [*directory.rglob("*"), *directory.parent.glob("*")]
    states = [path.stat() for path in places if may_hold_ground_truth(path) and path.is_file()]
    return frozenset((state.st_dev, state.st_ino) for state in states if state.st_nlink > 1)


def scenario_file(directory: Path) -> Path | None:
    """The ground truth file of a scenario directory."""
    return next((directory / name for name in SCENARIO_FILES if (directory / name).is_file()), None)


def natural_key(text: str) -> list[tuple[int, int, str]]:
    """A sort key that compares numbers in a text as numbers: `Scenario-2` before `Scenario-10`."""
    pieces = re.split(r"(\d+)", text)
    return [(1, int(piece), "") if piece.isdigit() else (0, 0, piece) for piece in pieces]


def read_bounded(path: Path, most: int) -> bytes:
    """The content of a regular file of at most so many bytes; OSError for another one, such as a pipe or a device."""
    if not path.is_file():
        raise OSError(errno.EINVAL, "it is no regular file" if path.exists() else os.strerror(errno.ENOENT))
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it has more than {most / 1e6:.0f} MB")
    return data


def load_document(path: Path) -> object:
    """Parse a JSON, JSON-lines or YAML file; the error names the file and the line."""
    try:
        text = read_bounded(path, _LARGEST).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(f"cannot read {path}: {problem}") from problem
    try:
        if path.suffix == ".jsonl":
            return [json.loads(line) for line in text.splitlines() if line.strip()]
        if path.suffix == ".json":
            return json.loads(text)
        return load_yaml(text)
    except (json.JSONDecodeError, yaml.YAMLError, RecursionError) as problem:
        raise InputError(f"{path} is not valid {path.suffix.lstrip('.') or 'YAML'}: {one_line(problem)}") from problem


def read_truths(document: object, path: Path) -> Iterator[GroundTruth | InputError]:
    """Yield the incidents of one document; for one that is invalid, its error, so that the others are read too."""
    stem = path.parent.name if path.name in SCENARIO_FILES else path.stem
    entries: list[tuple[str, str, object]]
    if isinstance(document, list):
        entries = [_entry(item, "" if len(document) > 1 else stem, path) for item in document]
    elif isinstance(document, Mapping) and _is_index(document):
        entries = [(str(key), "", value) for key, value in document.items()]
    else:
        # Outputs of agents are stored under the directory's number, so it takes precedence over the file's own id.
        fixed = stem if path.name in SCENARIO_FILES and canonical_id(stem).isdigit() else ""
        entries = [(stem, fixed, document)]
    for default_id, fixed_id, item in entries:
        try:
            yield parse_ground_truth(item, default_id=default_id, fixed_id=fixed_id, path=str(path))
        except InputError as problem:
            yield problem


def _entry(item: object, default_id: str, path: Path) -> tuple[str, str, object]:
    if isinstance(item, Mapping) and isinstance(item.get("ground_truth_yaml"), str):
        return default_id, str(item.get("scenario_id") or ""), _embedded(item["ground_truth_yaml"], path)
    return default_id, "", item


def _embedded(text: str, path: Path) -> object:
    try:
        return load_yaml(text)
    except yaml.YAMLError as problem:
        raise InputError(f"a ground_truth_yaml field in {path} is not valid YAML: {one_line(problem)}") from problem


def _is_index(document: Mapping[Any, Any]) -> bool:
    """Whether a document maps incidents to ground truths, judged by its values."""
    markers = {"groups", "entities", "spec"}
    return (
        bool(document)
        and not markers & set(document)
        and all(isinstance(value, Mapping) and markers & set(value) for value in document.values())
    )


def _scenario_files(root: Path) -> list[Path]:
    paths: list[Path] = []
    for directory, names, files in os.walk(root):
        names[:] = sorted(name for name in names if name not in _SKIPPED)
        best = next((name for name in SCENARIO_FILES if name in files), None)
        if best and (Path(directory) / best).is_file():
            paths.append(Path(directory) / best)
    return sorted(paths, key=lambda path: natural_key(str(path)))


def find_files(path: Path) -> list[Path]:
    """The ground truth files at or under a path."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise InputError(
            f"ground truth not found: {path} is neither a file nor a directory; `srearena snapshot examples` "
            "makes ITBench-Snapshots"
        )
    for name in CONSOLIDATED:
        if (path / name).is_file():
            return [path / name]
    files = _scenario_files(path)
    if not files:
        names = ", ".join((*CONSOLIDATED[:1], *SCENARIO_FILES[:1]))
        raise InputError(f"no ground truth under {path}: expected {names} or scenario directories that hold one")
    return files


def load_truths(path: Path) -> TruthSet:
    """Read every ground truth under a path; raises `InputError` for one that is invalid."""
    result = TruthSet()
    for file in find_files(path):
        for truth in read_truths(load_document(file), file):
            if isinstance(truth, InputError):
                raise truth
            result.add(truth)
    if not result.truths:
        raise InputError(f"{path} holds no incidents")
    return result
