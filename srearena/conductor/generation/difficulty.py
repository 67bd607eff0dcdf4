"""Features of a proven incident, and the difficulty that follows from them.

They are measured on the broken system when the agent starts:

- hops: calls between the entry of the users' requests and the farthest origin, and one more where the origin is no
  workload itself (a Service, a policy, a quota);
- alerts: those that fire;
- changes: objects that people or pipelines changed since half an hour, of which the faults are some;
- signals: how many kinds of evidence lead to the origins: 1 where objects or events name each of them, 2 where one is
  found by the metrics of its own service only, 3 where nothing names it and traces or configuration must be read;
- steps: commands of the reference remedy that change something;
- faults: independent causes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Any

from srearena.conductor.actions.telemetry import Telemetry
from srearena.conductor.episode.episode import Episode
from srearena.conductor.errors import BadAction
from srearena.conductor.grading.call_distance import distance, graph_of
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.metadata import WORKLOAD_KINDS, Difficulty

_CHANGES = re.compile(
    r"kubectl\b[^|;&\n]*\s(apply|create|delete|edit|expose|label|annotate|patch|replace|rollout (?:restart|undo)"
    r"|scale|set|taint|uncordon|cordon)\b"
)
_EASY, _HARD = 2, 5


def features(episode: Episode, symptoms: Iterable[str]) -> dict[str, int]:
    problem = episode.problem
    with closing(Telemetry(episode.cluster)) as telemetry:
        try:
            calls, alerts = telemetry.calls(), len(telemetry.firing())
        except BadAction:
            calls, alerts = [], 0
    noise = episode.noise.performed if episode.noise is not None else []
    return {
        "hops": _hops(problem, graph_of(calls)),
        "alerts": alerts,
        "changes": len(noise) + len(problem.changed_objects),
        "signals": _signals(problem, list(symptoms)),
        "steps": max(1, len(_CHANGES.findall(problem.remedy))),
        "faults": len(problem.origins),
    }


def difficulty(measured: Mapping[str, Any]) -> Difficulty:
    """One point for each further hop, kind of signal, fault and pair of commands."""
    points = (
        max(0, measured["hops"] - 1)
        + (measured["signals"] - 1)
        + 2 * (measured["faults"] - 1)
        + (measured["steps"] > 2)
        + (measured["alerts"] == 0)
    )
    return "easy" if points < _EASY else "hard" if points >= _HARD else "medium"


def _hops(problem: Problem, graph: Mapping[str, set[str]]) -> int:
    entry = problem.app.frontend.service if problem.app.frontend is not None else ""
    farthest = 0
    for origin in problem.origins:
        names = {entity.name for entity in origin.members}
        steps = distance(dict(graph), entry, names)
        indirect = not any(entity.kind in WORKLOAD_KINDS for entity in origin.changed)
        farthest = max(farthest, (len(_path(problem)) if steps is None else steps) + indirect)
    return farthest


def _path(problem: Problem) -> set[str]:
    """The components on the way of the failure, where traces do not show it."""
    return {entity.name for step in problem.propagation for entity in step}


def _signals(problem: Problem, symptoms: list[str]) -> int:
    needed = 1
    for origin in problem.origins:
        names = {entity.name for entity in origin.members}
        if any(_names(line, names) for line in symptoms if not _is_metric(line)):
            continue
        needed = max(needed, 2 if any(_names(line, names) for line in symptoms) else 3)
    return needed


def _is_metric(symptom: str) -> bool:
    return symptom.startswith(("alert ", "errors in", "much slower", "much more load", "accepts only"))


def _names(line: str, names: set[str]) -> bool:
    return any(re.search(rf"(?<![\w-]){re.escape(name)}(?![a-z])", line) for name in names)
