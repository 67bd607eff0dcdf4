"""Find the outputs of agents: `<outputs>/<incident>/<trial>/agent_output.json` and similar layouts.

Every directory that looks like a trial is a trial, even if it is empty: a run without output is graded zero.
Directories that are neither incidents nor trials are reported.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from itbench_evaluations.errors import InputError
from srearena.ground_truth.parsing import canonical_id

OUTPUT_FILES = (
    "outputs/agent_output.json",
    "outputs/agent_response.json",
    "agent_output.json",
    "agent_response.json",
)
_TRIAL = re.compile(r"(?:run|trial|attempt)?[-_]?(\d+)", re.IGNORECASE)
_INCIDENT = re.compile(r"(?:scenario|incident)?[-_]?i?\d+", re.IGNORECASE)
_NOT_INCIDENTS = frozenset({"results", "traces", "logs", "outputs"})
_ROOTS = ("agent_outputs", "outputs/agent_outputs")


@dataclass(frozen=True, slots=True)
class Trial:
    """One run of an agent on an incident; `file` is None if it left no output."""

    incident_id: str
    trial_id: str
    file: Path | None
    directory: Path


@dataclass(slots=True)
class TrialSet:
    """All trials of a directory, and warnings about it."""

    trials: list[Trial] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def output_file(directory: Path) -> Path | None:
    return next((directory / name for name in OUTPUT_FILES if (directory / name).is_file()), None)


def _order(name: str) -> tuple[int, int, str]:
    number = _TRIAL.fullmatch(canonical_id(name)) or _TRIAL.fullmatch(name)
    return (0, int(number[1]), name) if number else (1, 0, name)


def _directories(path: Path) -> list[Path]:
    try:
        return sorted((d for d in path.iterdir() if d.is_dir() and d.name[0] != "."), key=lambda d: _order(d.name))
    except OSError as problem:
        raise InputError(f"cannot list {path}: {problem}") from problem


def find_trials(outputs: Path, incidents: frozenset[str] | set[str]) -> TrialSet:
    """Find all trials under a directory; `incidents` are those of the ground truth."""
    if not outputs.is_dir():
        raise InputError(f"outputs not found: {outputs} is not a directory; `itbench-leaderboard` writes one per agent")
    base = next((outputs / name for name in _ROOTS if (outputs / name).is_dir()), outputs)
    result = TrialSet()
    for directory in _directories(base):
        incident = canonical_id(directory.name)
        recognised = incident in incidents or _INCIDENT.fullmatch(directory.name)
        trials = _trials_of(incident, directory)
        if recognised or (trials and any(trial.file for trial in trials)):
            result.trials.extend(trials)
            if not trials:
                result.warnings.append(f"{directory} holds no trial")
        elif directory.name.lower() not in _NOT_INCIDENTS:
            result.warnings.append(f"{directory} is neither an incident nor holds trials; ignored")
    if not result.trials:
        raise InputError(
            f"no trials under {outputs}: expected <incident>/<trial>/agent_output.json, "
            "for example Scenario-3/1/agent_output.json"
        )
    return result


def _trials_of(incident: str, directory: Path) -> list[Trial]:
    trials: list[Trial] = []
    for child in _directories(directory):
        number = _TRIAL.fullmatch(child.name)
        file = output_file(child)
        if number or (file is not None and child.name != "outputs"):
            trial_id = str(int(number[1])) if number else child.name
            used = {trial.trial_id for trial in trials}
            trials.append(Trial(incident, child.name if trial_id in used else trial_id, file, child))
    if not trials and (file := output_file(directory)) is not None:
        trials.append(Trial(incident, "1", file, directory))
    return trials
