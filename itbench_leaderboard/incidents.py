"""The incidents of a campaign: recorded incidents and live problems, in one list."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from itbench_evaluations.errors import InputError
from itbench_leaderboard.config import Configuration, IncidentTable
from itbench_leaderboard.errors import ConfigurationError
from itbench_leaderboard.taxonomy import classification
from srearena.ground_truth import GroundTruth
from srearena.ground_truth.files import SCENARIO_FILES, load_document, natural_key, read_truths, scenario_file
from srearena.ground_truth.parsing import canonical_id

_MAX_DEPTH = 6  # directories; the published data set nests scenarios four deep


@dataclass(frozen=True, slots=True)
class Incident:
    """A recorded incident or a live problem."""

    name: str
    kind: Literal["snapshot", "live"]
    path: str = ""  # directory of the recording
    title: str = ""
    family: str = ""
    difficulty: str = ""
    application: str = ""
    key: str = ""  # directory of the ground truth; never sent to an agent's process

    def public_document(self) -> dict[str, Any]:
        """The incident without paths, for results."""
        document = asdict(self)
        del document["path"], document["key"]
        return document

    def truth(self) -> GroundTruth:
        """The ground truth of a recording."""
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
    scenarios = []
    for name, names, files in os.walk(root):
        directory = Path(name)
        names[:] = sorted(name for name in names if not name.startswith("."))
        if any(name in files for name in SCENARIO_FILES):
            scenarios.append(directory)
            names.clear()
        elif len(directory.relative_to(root).parts) >= _MAX_DEPTH:
            names.clear()
    return scenarios


def _recordings(scenarios: Path, answers: Path | None) -> Iterator[tuple[Path, Path]]:
    """Recordings and the directories of their ground truths: the same, or in a parallel tree."""
    for name, root in (("scenarios_dir", scenarios), ("answers_dir", answers)):
        if root is not None and not root.is_dir():
            raise ConfigurationError(
                f"{name} {root} is not a directory: `srearena snapshot examples` makes one with six recorded incidents"
            )
    root = answers or scenarios
    directories = _scenario_directories(root)
    if not directories:
        raise ConfigurationError(
            f"no recorded incidents under {root}: expected directories with a ground_truth.yaml"
            + ("; keys that lie elsewhere are found by answers_dir" if answers is None else "")
        )
    for directory in directories:
        recording = scenarios / directory.relative_to(root)
        if not recording.is_dir():
            raise ConfigurationError(f"{directory} is the answer key of no recording: there is no {recording}")
        yield recording, directory


def _snapshot(directory: Path, key: Path, tables: Mapping[str, IncidentTable]) -> Incident:
    incident = Incident(directory.name, "snapshot", str(directory), key=str(key))
    return _described(incident, classification(incident.truth()), tables)


def _described(incident: Incident, facts: Mapping[str, str], tables: Mapping[str, IncidentTable]) -> Incident:
    table = tables.get(incident.name, IncidentTable())
    configured = {key: value for key, value in table.model_dump().items() if value}
    return replace(incident, **{**facts, **configured})


def find(config: Configuration) -> list[Incident]:
    """All incidents of the configuration, recordings first, in natural order."""
    incidents: list[Incident] = []
    if config.scenarios_dir is not None:
        for directory, key in _recordings(config.scenarios_dir, config.answers_dir):
            incidents.append(_snapshot(directory, key, config.incidents))
    if config.problems or config.suite:
        from srearena.conductor.problems.registry import ProblemRegistry  # slow to import, and workers do not need it
        from srearena.conductor.trials.problem_suites import problem_suite

        registry = ProblemRegistry()
        suite = problem_suite(config.suite).problems if config.suite else ()
        for name in dict.fromkeys(registry.match((*config.problems, *suite))):
            summary = registry.get_problem(name).summary()
            facts = {"family": summary.level, "difficulty": summary.difficulty, "application": summary.application}
            incidents.append(_described(Incident(name, "live"), facts, config.incidents))
    counts = Counter(incident.name for incident in incidents)
    for name, count in counts.items():
        if count > 1:
            raise ConfigurationError(f"there are {count} incidents called {name}: point scenarios_dir at one version")
    return sorted(incidents, key=lambda incident: (incident.kind == "live", natural_key(incident.name)))


def choose(incidents: Sequence[Incident], names: Sequence[str]) -> list[Incident]:
    """The incidents named by `--scenarios`, as `Scenario-3` or `3`; all of them without it."""
    if not names:
        return list(incidents)
    chosen = []
    for word in names:
        hits = [one for one in incidents if one.name == word or canonical_id(one.name) == canonical_id(word)]
        if not hits:
            available = ", ".join(one.name for one in incidents[:12])
            raise ConfigurationError(f"there is no incident {word!r}: there are {available}")
        chosen += [one for one in hits if one not in chosen]
    return chosen
