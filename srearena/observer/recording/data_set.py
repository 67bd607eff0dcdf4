"""Many recordings as one data set: scenarios by number, a manifest with checksums, and the answers apart.

    OUT/manifest.json                     what there is, with the SHA-256 of every file; names no problem
    OUT/Scenario-7/...                    a snapshot
    ANSWERS/manifest.json                 which problem each scenario is
    ANSWERS/Scenario-7/ground_truth.yaml

Numbers follow no order that could be guessed from the list of problems, and stay: a scenario that is recorded keeps its
number when problems are added. What is whole is not recorded again, so an interrupted run goes on where it stopped.
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
    number: int
    problem: str

    @property
    def name(self) -> str:
        return f"Scenario-{self.number}"


class DataSet:
    def __init__(self, out: Path, answers: Path, *, seed: int) -> None:
        if answers.resolve() == out.resolve():
            raise ObserverError("the answers of a data set go to a directory of their own: name another with --answers")
        self.out = out
        self.answers = answers
        self.seed = seed
        self._lock: int | None = None

    def plan(self, problems: Sequence[str]) -> list[Scenario]:
        """A number for each problem: the one it has, or the next. From here on the data set is ours alone."""
        self._take()
        known = self._numbers()
        highest = max(known.values(), default=0)
        fresh = sorted(set(problems) - known.keys(), key=lambda name: _shuffled(self.seed, name))
        known.update({name: highest + index for index, name in enumerate(fresh, 1)})
        plan = [Scenario(known[name], name) for name in problems]
        _write(self.answers / MANIFEST, self._answers_manifest(known))
        return sorted(plan, key=lambda scenario: scenario.number)

    def done(self, scenario: Scenario) -> bool:
        return (self.out / scenario.name).is_dir() and (self.answers / scenario.name / GROUND_TRUTH).is_file()

    def record(self, scenario: Scenario, record: Callable[[Path, Path], object]) -> None:
        """`record(out, answers)` for one scenario; what was left of an earlier try is written over."""
        record(self.out / scenario.name, self.answers / scenario.name)

    def close(self) -> Path:
        """Write the manifest over everything that is there."""
        scenarios = sorted(self._scenarios(), key=lambda path: int(path.name.rpartition("-")[2]))
        known = _read(self.out / MANIFEST).get("scenarios", {})
        document = {
            "format": "itbench-sre-v0.2",
            "seed": self.seed,
            "scenarios": {path.name: _described(path, known.get(path.name)) for path in scenarios},
        }
        manifest = _write(self.out / MANIFEST, document)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        return manifest

    def _take(self) -> None:
        """Keep others away while we write, and clear away what a recording that was killed left half done."""
        if self._lock is not None:
            return
        self.answers.mkdir(parents=True, exist_ok=True)
        lock = os.open(self.answers / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as problem:
            os.close(lock)
            raise ObserverError(f"another `srearena record` is at work on {self.out}: wait for it to end") from problem
        self._lock = lock
        for draft in self.out.glob(".Scenario-*"):
            shutil.rmtree(draft, ignore_errors=True)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lock": None}  # other processes work for the one that holds it

    def _scenarios(self) -> Iterator[Path]:
        for path in self.out.iterdir() if self.out.is_dir() else ():
            if path.is_dir() and path.name.rpartition("-")[2].isdigit() and not path.name.startswith("."):
                yield path

    def _numbers(self) -> dict[str, int]:
        document = _read(self.answers / MANIFEST)
        if document and document.get("seed") != self.seed:
            raise ObserverError(
                f"{self.answers} was begun with seed {document.get('seed')}: use that seed, or another directory"
            )
        return {name: int(number) for name, number in document.get("problems", {}).items()}

    def _answers_manifest(self, numbers: dict[str, int]) -> dict[str, Any]:
        return {"seed": self.seed, "problems": dict(sorted(numbers.items(), key=lambda item: item[1]))}


def checked(out: Path) -> list[str]:
    """What differs from the manifest, in words; nothing where all is as it was written."""
    document = _read(out / MANIFEST)
    if not document:
        raise ObserverError(f"{out} is no data set: it has no {MANIFEST}")
    found = []
    for name, facts in document["scenarios"].items():
        present = {str(path.relative_to(out / name)): path for path in _files(out / name)}
        found += [f"{name}/{file}: missing" for file in facts["files"].keys() - present.keys()]
        found += [f"{name}/{file}: not in the manifest" for file in present.keys() - facts["files"].keys()]
        for file in sorted(facts["files"].keys() & present.keys()):
            if _digest(present[file]) != facts["files"][file]["sha256"]:
                found.append(f"{name}/{file}: changed since it was recorded")
    return sorted(found)


def _shuffled(seed: int, name: str) -> str:
    return hashlib.sha256(f"{seed} {name}".encode()).hexdigest()


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _described(folder: Path, known: dict[str, Any] | None) -> dict[str, Any]:
    files = _files(folder)
    sizes = {str(path.relative_to(folder)): path.stat().st_size for path in files}
    if known and {name: facts["bytes"] for name, facts in known["files"].items()} == sizes:
        return known
    described = {
        str(path.relative_to(folder)): {"bytes": path.stat().st_size, "sha256": _digest(path)} for path in files
    }
    return {"bytes": sum(sizes.values()), "files": described}


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
        raise ObserverError(f"{path} cannot be read: {problem}; remove it to begin anew") from problem
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
