"""Where answer keys lie on disk, and how they are gathered into one key per incident.

Accepted: one JSON, YAML or JSON-lines file (a list of incidents, a mapping of them, or a single one), a directory
holding `ground_truths.json`, and any tree of scenario directories, however deep (`snapshots/sre/<version>/Scenario-3`).
An incident found twice is not resolved by chance: the path that sorts last wins and the other is reported.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from itbench_evaluations.errors import InputError
from itbench_evaluations.ground_truth import GroundTruth, canonical_id, parse_ground_truth

# In order of preference within one directory: what states groups and propagations comes before what lists entities.
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
_SKIPPED = frozenset({".git", "node_modules", "__pycache__", ".venv", "alerts", "metrics"})

try:
    _Loader: Any = yaml.CSafeLoader
except AttributeError:  # PyYAML built without libyaml
    _Loader = yaml.SafeLoader


@dataclass(slots=True)
class TruthSet:
    """The keys found, by incident, and what was odd about finding them."""

    truths: dict[str, GroundTruth] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def add(self, truth: GroundTruth) -> None:
        earlier = self.truths.get(truth.incident_id)
        if earlier is not None and earlier.origin != truth.origin:
            self.warnings.append(
                f"incident {truth.incident_id} has two ground truths: using {truth.origin}, not {earlier.origin}"
            )
        elif earlier is not None:
            self.warnings.append(f"incident {truth.incident_id} appears twice in {truth.origin}; the last one counts")
        self.truths[truth.incident_id] = truth


def load_document(path: Path) -> object:
    """Parse a JSON, JSON-lines or YAML file; the error names the file and the line."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(f"cannot read {path}: {problem}") from problem
    try:
        if path.suffix == ".jsonl":
            return [json.loads(line) for line in text.splitlines() if line.strip()]
        if path.suffix == ".json":
            return json.loads(text)
        return yaml.load(text, Loader=_Loader)
    except (json.JSONDecodeError, yaml.YAMLError, RecursionError) as problem:
        detail = " ".join(str(problem).split())
        raise InputError(f"{path} is not valid {path.suffix.lstrip('.') or 'YAML'}: {detail}") from problem


def read_truths(document: object, path: Path) -> Iterator[GroundTruth | InputError]:
    """The incidents of one document; one that cannot be read comes as its error, so that the others still do."""
    stem = path.parent.name if path.name in SCENARIO_FILES else path.stem
    entries: list[tuple[str, str, object]]
    if isinstance(document, list):
        entries = [_entry(item, "" if len(document) > 1 else stem, path) for item in document]
    elif isinstance(document, Mapping) and _is_index(document):
        entries = [(str(key), "", value) for key, value in document.items()]
    else:
        # Agents' outputs are filed under the directory's number, so that is the incident, whatever the file says.
        fixed = stem if path.name in SCENARIO_FILES and canonical_id(stem).isdigit() else ""
        entries = [(stem, fixed, document)]
    for default_id, fixed_id, item in entries:
        try:
            yield parse_ground_truth(item, default_id=default_id, fixed_id=fixed_id, origin=str(path))
        except InputError as problem:
            yield problem


def _entry(item: object, default_id: str, path: Path) -> tuple[str, str, object]:
    if isinstance(item, Mapping) and isinstance(item.get("ground_truth_yaml"), str):
        return default_id, str(item.get("scenario_id") or ""), _embedded(item["ground_truth_yaml"], path)
    return default_id, "", item


def _embedded(text: str, path: Path) -> object:
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as problem:
        raise InputError(f"a ground_truth_yaml field in {path} is not valid YAML: {problem}") from problem


def _is_index(document: Mapping[Any, Any]) -> bool:
    """A mapping from incident to key, told from a key itself by what its values hold."""
    markers = {"groups", "entities", "spec"}
    return (
        bool(document)
        and not markers & set(document)
        and all(isinstance(value, Mapping) and markers & set(value) for value in document.values())
    )


def _natural(path: Path) -> list[tuple[int, int, str]]:
    pieces = re.split(r"(\d+)", str(path))
    return [(1, int(piece), "") if piece.isdigit() else (0, 0, piece) for piece in pieces]


def _scenario_files(root: Path) -> list[Path]:
    found: list[Path] = []
    for directory, names, files in os.walk(root):
        names[:] = sorted(name for name in names if name not in _SKIPPED)
        best = next((name for name in SCENARIO_FILES if name in files), None)
        if best:
            found.append(Path(directory) / best)
    return sorted(found, key=_natural)


def find_files(path: Path) -> list[Path]:
    """The files that hold answer keys under a path."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise InputError(f"ground truth not found: {path} is neither a file nor a directory")
    for name in CONSOLIDATED:
        if (path / name).is_file():
            return [path / name]
    files = _scenario_files(path)
    if not files:
        names = ", ".join((*CONSOLIDATED[:1], *SCENARIO_FILES[:1]))
        raise InputError(f"no ground truth under {path}: expected {names} or scenario directories that hold one")
    return files


def load_truths(path: Path) -> TruthSet:
    """Read every key under a path; one that cannot be read stops us, because grading without it would be silent."""
    result = TruthSet()
    for file in find_files(path):
        for truth in read_truths(load_document(file), file):
            if isinstance(truth, InputError):
                raise truth
            result.add(truth)
    if not result.truths:
        raise InputError(f"{path} holds no incidents")
    return result
