"""Diagnosis: what happened and how it propagated, as entities or as text.

A structured answer has the format that `itbench-eval` grades: entities, some of them contributing factors. Here only
the roots are compared, as components, without a model; the judge grades propagation and reasoning from the stored
answer. A text passes when it names every root, and no other workload of the application as often.

Why it cannot be gamed: naming every entity as a cause costs precision exactly as in localization.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from srearena.conductor.errors import BadSubmission
from srearena.conductor.oracles.base import Oracle, Verdict
from srearena.conductor.oracles.localization import LocalizationOracle

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem


class DiagnosisOracle(Oracle):
    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self._compare = LocalizationOracle(problem, [root.name for root in problem.roots]).compare

    def evaluate(self, submission: Any) -> Verdict:
        expected = [root.name for root in self.problem.roots]
        if isinstance(submission, Mapping):
            return self._compare(_contributing(submission), expected)
        if isinstance(submission, str):
            return self._compare(self._named_most(submission), expected)
        raise BadSubmission('this stage takes {"entities": [...]} or a text that says what happened')

    def _named_most(self, text: str) -> list[str]:
        """The components that a text names most often: an explanation names its cause more than anything else."""
        names = {obj["metadata"]["name"] for obj in self._workloads()}
        names |= {root.name for root in self.problem.roots}
        words = re.findall(r"[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?", text.lower())
        counts = {name: words.count(name) for name in names if name in words}
        most = max(counts.values(), default=0)
        return [name for name, count in counts.items() if count == most]

    def _workloads(self) -> list[dict[str, Any]]:
        kubernetes, namespace = self.problem.kubernetes, self.problem.namespace
        return [obj for kind in ("deployments", "statefulsets") for obj in kubernetes.list(kind, namespace)]


def _contributing(submission: Mapping[str, Any]) -> list[str]:
    entities = submission.get("entities")
    if not isinstance(entities, list) or not all(isinstance(entity, Mapping) for entity in entities):
        raise BadSubmission('`entities` must be a list of {"name": ..., "contributing_factor": true or false}')
    return [str(entity.get("name", "")) for entity in entities if entity.get("contributing_factor")]
