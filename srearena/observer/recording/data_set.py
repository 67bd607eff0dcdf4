"""A data set of many recordings: numbered scenarios, a manifest with checksums, and the answers in another directory.

    OUT/manifest.json                     all scenarios with the SHA-256 of every file; names no problem
    OUT/Scenario-7/...                    a snapshot
    ANSWERS/manifest.json                 the problem of each scenario
    ANSWERS/Scenario-7/ground_truth.yaml

Numbers are in hash order, so that they reveal nothing, and stable: a recorded scenario keeps its number when problems
are added. A complete scenario is not recorded again, so an interrupted run resumes.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from srearena.observer.errors import ObserverError
from srearena.observer.recorder import GROUND_TRUTH

MANIFEST = "manifest.json"
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Scenario:
    """A problem with its number."""

    number: int
    problem: str

    @property
    def name(self) -> str:
        return f"Scenario-{self.number}"


class DataSet:
    """A data set in `out`, with its answers in `answers`."""

    def __init__(self, out: Path, answers: Path, *, seed: int) -> None:
        if answers.resolve() == out.resolve():
            raise ObserverError("the answers of a data set go to a directory of their own: name another with --answers")
        self.out = out
        self.answers = answers
        self.seed = seed
        self._lock: int | None = None

    def plan(self, problems: Sequence[str]) -> list[Scenario]:
        """Lock the data set, and number the problems: the number they have, or the next free one."""
        self._acquire_lock()
        numbers = self._numbers()
        highest = max(numbers.values(), default=0)
        added = sorted(set(problems) - numbers.keys(), key=lambda name: _shuffle_key(self.seed, name))
        numbers.update({name: highest + index for index, name in enumerate(added, 1)})
        plan = [Scenario(numbers[name], name) for name in problems]
        _write(self.answers / MANIFEST, self._answers_manifest(numbers))
        return sorted(plan, key=lambda scenario: scenario.number)

    def done(self, scenario: Scenario) -> bool:
        return (self.out / scenario.name).is_dir() and (self.answers / scenario.name / GROUND_TRUTH).is_file()

    def record(self, scenario: Scenario, record: Callable[[Path, Path], object]) -> None:
        """Call `record(out, answers)` for one scenario; remains of an earlier attempt are overwritten."""
        record(self.out / scenario.name, self.answers / scenario.name)

    def close(self) -> Path:
        """Write the manifest of all scenarios, and release the lock."""
        scenarios = sorted(self._scenarios(), key=lambda path: int(path.name.rpartition("-")[2]))
        previous = _read(self.out / MANIFEST).get("scenarios", {})
        document = {
            "format": "itbench-sre-v0.2",
            "seed": self.seed,
            "scenarios": {path.name: _describe(path, previous.get(path.name)) for path in scenarios},
        }
        manifest = _write(self.out / MANIFEST, document)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        return manifest

    def _acquire_lock(self) -> None:
        """Lock the data set against other processes, and remove what a killed recording has left."""
        if self._lock is not None:
            return
        self.answers.mkdir(parents=True, exist_ok=True)
        lock = os.open(self.answers / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as problem:
            os.close(lock)
            raise ObserverError(f"another `srearena record` is writing to {self.out}: wait for it to end") from problem
        self._lock = lock
        for draft in self.out.glob(".Scenario-*"):
            shutil.rmtree(draft, ignore_errors=True)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lock": None}  # only the parent process holds the lock

    def _scenarios(self) -> Iterator[Path]:
        for path in self.out.iterdir() if self.out.is_dir() else ():
            if path.is_dir() and path.name.rpartition("-")[2].isdigit() and not path.name.startswith("."):
                yield path

    def _numbers(self) -> dict[str, int]:
        document = _read(self.answers / MANIFEST)
        if document and document.get("seed") != self.seed:
            raise ObserverError(
                f"{self.answers} was created with seed {document.get('seed')}: use that seed, or another directory"
            )
        return {name: int(number) for name, number in document.get("problems", {}).items()}

    def _answers_manifest(self, numbers: dict[str, int]) -> dict[str, Any]:
        return {"seed": self.seed, "problems": dict(sorted(numbers.items(), key=lambda item: item[1]))}


def verify_files(out: Path) -> list[str]:
    """Compare the files with the manifest; returns the differences as text."""
    document = _read(out / MANIFEST)
    if not document:
        raise ObserverError(f"{out} is not a data set: it has no {MANIFEST}")
    differences = []
    for name, facts in document["scenarios"].items():
        present = {str(path.relative_to(out / name)): path for path in _files(out / name)}
        differences += [f"{name}/{file}: missing" for file in facts["files"].keys() - present.keys()]
        differences += [f"{name}/{file}: not in the manifest" for file in present.keys() - facts["files"].keys()]
        for file in sorted(facts["files"].keys() & present.keys()):
            if _digest(present[file]) != facts["files"][file]["sha256"]:
                differences.append(f"{name}/{file}: changed since it was recorded")
    return sorted(differences)


def _shuffle_key(seed: int, name: str) -> str:
    return hashlib.sha256(f"{seed} {name}".encode()).hexdigest()


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _describe(folder: Path, previous: dict[str, Any] | None) -> dict[str, Any]:
    """The manifest entry of a scenario; the previous one is reused where all sizes match."""
    files = _files(folder)
    sizes = {str(path.relative_to(folder)): path.stat().st_size for path in files}
    if previous and {name: facts["bytes"] for name, facts in previous["files"].items()} == sizes:
        return previous
    entries = {str(path.relative_to(folder)): {"bytes": path.stat().st_size, "sha256": _digest(path)} for path in files}
    return {"bytes": sum(sizes.values()), "files": entries}


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _read(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as problem:
        raise ObserverError(f"{path} cannot be read: {problem}; remove it to start again") from problem
    return document if isinstance(document, dict) else {}


def _write(path: Path, document: dict[str, Any]) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.part")
        draft.write_text(json.dumps(document, indent=1) + "\n")
        draft.replace(path)
    except OSError as problem:
        raise ObserverError(f"cannot write {path}: {problem.strerror or problem}") from problem
    return path
