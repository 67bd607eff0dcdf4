"""What agents are run on: recorded incidents and live problems of the arena, in one list."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from itbench_evaluations.errors import InputError
from itbench_leaderboard.configuration import Configuration, IncidentTable
from itbench_leaderboard.errors import ConfigurationError
from srearena.ground_truth import GroundTruth
from srearena.ground_truth.files import SCENARIO_FILES, load_document, natural_key, read_truths, scenario_file
from srearena.ground_truth.parsing import canonical_id

_MAX_DEPTH = 6


@dataclass(frozen=True, slots=True)
class Incident:
    name: str
    kind: Literal["snapshot", "live"]
    path: str = ""  # of the recording
    title: str = ""
    family: str = ""
    difficulty: str = ""
    application: str = ""
    key: str = ""  # where the answer key of a recording is; no agent's process is told

    def shown(self) -> dict[str, Any]:
        document = asdict(self)
        del document["path"], document["key"]
        return document

    def truth(self) -> GroundTruth:
        """The answer key of a recording."""
        file = scenario_file(Path(self.key or self.path))
        if file is None:
            raise ConfigurationError(f"{self.path} has no answer key: it cannot be graded")
        try:
            truth = next(read_truths(load_document(file), file), None)
        except InputError as problem:
            raise ConfigurationError(str(problem)) from problem
        if truth is None or isinstance(truth, InputError):
            raise ConfigurationError(f"{file} holds no incident: {truth or 'it is empty'}")
        return truth


def _scenario_directories(root: Path) -> list[Path]:
    if scenario_file(root) is not None:
        return [root]
    found = []
    for place, names, files in os.walk(root):
        here = Path(place)
        names[:] = sorted(name for name in names if not name.startswith("."))
        if any(name in files for name in SCENARIO_FILES):
            found.append(here)
            names.clear()
        elif len(here.relative_to(root).parts) >= _MAX_DEPTH:
            names.clear()
    return found


def _facts(truth: GroundTruth) -> dict[str, str]:
    """What a recording's key tells about the kind of incident, for filters. Shown after the runs, never to an agent."""
    spaces = Counter(group.namespace for group in truth.groups if group.namespace)
    category = next((fault.category for fault in truth.faults if fault.category), "")
    return {"family": category, "application": spaces.most_common(1)[0][0] if spaces else ""}


def _recordings(scenarios: Path, answers: Path | None) -> Iterator[tuple[Path, Path]]:
    """Where recordings are, and their keys: beside the evidence, or in a tree of their own that looks the same."""
    for name, root in (("scenarios_dir", scenarios), ("answers_dir", answers)):
        if root is not None and not root.is_dir():
            raise ConfigurationError(f"{name} {root} is not a directory")
    root = answers or scenarios
    places = _scenario_directories(root)
    if not places:
        raise ConfigurationError(
            f"no recorded incidents under {root}: expected directories with a ground_truth.yaml"
            + ("; keys that lie elsewhere are found by answers_dir" if answers is None else "")
        )
    for place in places:
        recording = scenarios / place.relative_to(root)
        if not recording.is_dir():
            raise ConfigurationError(f"{place} is the answer key of no recording: there is no {recording}")
        yield recording, place


def _snapshot(directory: Path, key: Path, tables: Mapping[str, IncidentTable]) -> Incident:
    plain = Incident(directory.name, "snapshot", str(directory), key=str(key))
    return _told(plain, _facts(plain.truth()), tables)


def _told(incident: Incident, facts: Mapping[str, str], tables: Mapping[str, IncidentTable]) -> Incident:
    table = tables.get(incident.name, IncidentTable())
    said = {key: value for key, value in table.model_dump().items() if value}
    return replace(incident, **{**facts, **said})


def find(config: Configuration) -> list[Incident]:
    """Everything the configuration names, recordings first, in natural order."""
    found: list[Incident] = []
    if config.scenarios_dir is not None:
        for place, key in _recordings(config.scenarios_dir, config.answers_dir):
            found.append(_snapshot(place, key, config.incidents))
    if config.problems:
        from srearena.conductor.problems.registry import ProblemRegistry  # heavy, and workers need none of it

        registry = ProblemRegistry()
        for name in registry.match(config.problems):
            summary = registry.get_problem(name).summary()
            facts = {"family": summary.level, "difficulty": summary.difficulty, "application": summary.application}
            found.append(_told(Incident(name, "live"), facts, config.incidents))
    counts = Counter(incident.name for incident in found)
    for name, count in counts.items():
        if count > 1:
            raise ConfigurationError(f"there are {count} incidents called {name}: point scenarios_dir at one version")
    return sorted(found, key=lambda one: (one.kind == "live", natural_key(one.name)))


def choose(incidents: Sequence[Incident], wanted: Sequence[str]) -> list[Incident]:
    """Those that `--scenarios` names, as `Scenario-3` or `3`; all without it."""
    if not wanted:
        return list(incidents)
    chosen = []
    for word in wanted:
        hits = [one for one in incidents if one.name == word or canonical_id(one.name) == canonical_id(word)]
        if not hits:
            known = ", ".join(one.name for one in incidents[:12])
            raise ConfigurationError(f"there is no incident {word!r}: there are {known}")
        chosen += [one for one in hits if one not in chosen]
    return chosen
