"""Localization: the origins of the incident, compared with the names in an answer.

The truth is a set of origins (`Origin`), each a group of accepted names: the object whose change undoes the incident,
and the component that misbehaves because of it. Any member names its origin, several members name it once. Which
component a name stands for was fixed before the agent came in (`known_objects`).

Why it cannot be gamed: nothing that the agent makes or changes in the cluster has an influence on what a name stands
for; naming everything costs precision, and only an answer that names every origin and nothing else passes. A partly
right answer gets part of the score, never the verdict.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from srearena.conductor.actions.telemetry import Telemetry
from srearena.conductor.errors import BadSubmission
from srearena.conductor.grading.call_distance import graph_of, mean_distance
from srearena.conductor.grading.known_objects import KnownObjects
from srearena.conductor.oracles.base import Oracle, Verdict
from srearena.conductor.problems.metadata import Entity, Origin
from srearena.errors import SreArenaError

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem

_MOST_NAMES = 100


def parse_names(submission: Any) -> list[str]:
    """Parse an answer: a list of texts, or one text with commas; BadSubmission for anything else."""
    if submission is None:
        return []
    if isinstance(submission, str):
        submission = [part for part in re.split(r"[,\s]+", submission.strip().strip("[]")) if part]
    if isinstance(submission, Mapping) or not isinstance(submission, Sequence | set | frozenset):
        raise BadSubmission('this stage takes a list of names: submit(["some-component"]), or submit([]) for none')
    names = list(submission)
    if not all(isinstance(name, str) for name in names) or len(names) > _MOST_NAMES:
        raise BadSubmission(f"this stage takes a list of at most {_MOST_NAMES} names, each a text")
    return list(dict.fromkeys(name.strip().strip("'\"") for name in names if name.strip()))


class LocalizationOracle(Oracle):
    def __init__(self, problem: Problem, expected: Sequence[str | None] | str | None = None) -> None:
        """`expected`: the names of the workloads at fault, each one origin; by default the problem's origins."""
        super().__init__(problem)
        self._expected = [expected] if isinstance(expected, str) else expected

    @property
    def origins(self) -> Sequence[Origin]:
        if self._expected is None:
            return self.problem.origins if self.problem.stored_origins is None else self.problem.stored_origins
        namespace = self.problem.namespace
        return [Origin((Entity("Deployment", name, namespace),)) for name in self._expected if name]

    def evaluate(self, submission: Any) -> Verdict:
        return self.compare(parse_names(submission))

    def known_objects(self) -> KnownObjects:
        """What was captured, and all objects of the truth."""
        return self.problem.known_objects.including(
            entity for origin in self.origins for entity in (*origin.members, *origin.contributing)
        )

    def compare(self, answer: Sequence[str]) -> Verdict:
        """Precision and recall of the named origins."""
        known = self.known_objects()
        accepted: dict[str, set[str]] = {}
        for origin in self.origins:
            accepted.setdefault(str(origin.members[0]), set()).update(map(known.component, origin.members))
        neutral = {known.component(entity) for origin in self.origins for entity in origin.contributing}
        hits: set[str] = set()
        wrong: set[str] = set()
        for meaning in (meaning for name in answer for meaning in known.meanings(name)):
            named = {origin for origin, components in accepted.items() if components & meaning.components}
            hits |= named
            if not named and not neutral & meaning.components:
                wrong.add(meaning.label)
        named_groups = len(hits) + len(wrong)
        precision = len(hits) / named_groups if named_groups else float(not accepted)
        recall = len(hits) / len(accepted) if accepted else float(not wrong)
        score = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        reasons = [f"{name} is at fault, and was not named" for name in sorted(accepted.keys() - hits)]
        reasons += [f"{name} was named, and is not at fault" for name in sorted(wrong)]
        reasons += [f"{name} is at fault, and was named" for name in sorted(hits)]
        goals = {component for components in accepted.values() for component in components}
        located = {min(accepted[name]) for name in hits}
        details = {
            "precision": round(precision, 4),
            "recall": round(recall, 4),
            "answered": sorted(hits | wrong),
            "distance": mean_distance(self._calls(known), located | wrong, goals),
        }
        return Verdict(not wrong and hits == accepted.keys(), score, tuple(reasons), details)

    def _calls(self, known: KnownObjects) -> dict[str, set[str]]:
        """The call graph by traces; empty where there are no traces."""
        try:
            telemetry = Telemetry(self.problem.cluster)
        except SreArenaError:
            return {}  # a stored trial has no cluster
        try:
            calls = telemetry.calls()
        except SreArenaError:
            return {}
        finally:
            telemetry.close()
        workloads = {name: known.meanings(name)[0].label for call in calls for name in call}
        return graph_of((workloads[caller], workloads[called]) for caller, called in calls)
