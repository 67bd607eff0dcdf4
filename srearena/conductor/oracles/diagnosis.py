"""Diagnosis: what happened and how it propagated, as entities or as text.

A structured answer has the format that `itbench-eval` grades: entities, some of them contributing factors. Here only
the origins are compared, as in localization, without a model; the judge grades propagation and reasoning from the
stored answer. A text passes when it names every origin, and no other component as often.

Why it cannot be gamed: naming every entity as a cause costs precision exactly as in localization.
"""

from __future__ import annotations

import re
from collections import Counter
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
        self._localization = LocalizationOracle(problem)

    def evaluate(self, submission: Any) -> Verdict:
        if isinstance(submission, Mapping):
            return self._localization.compare(_contributing(submission))
        if isinstance(submission, str):
            return self._localization.compare(self._blamed(submission))
        raise BadSubmission('this stage takes {"entities": [...]} or a text that says what happened')

    def _blamed(self, text: str) -> list[str]:
        """The names that a text blames: every origin that it names, and what it names as often as one of them."""
        known = self._localization.known_objects()
        words = re.findall(r"[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?", text.lower())
        members = {entity.name.lower() for origin in self._localization.origins for entity in origin.members}
        names = known.component_names | members
        counts = Counter(word for word in words if word in names)
        of_origins = [
            sum(counts[name] for name in {entity.name.lower() for entity in origin.members})
            for origin in self._localization.origins
        ]
        least = min((count for count in of_origins if count), default=max(counts.values(), default=0))
        return [name for name, count in counts.items() if name in members or count >= least]


def _contributing(submission: Mapping[str, Any]) -> list[str]:
    entities = submission.get("entities")
    if not isinstance(entities, list) or not all(isinstance(entity, Mapping) for entity in entities):
        raise BadSubmission('`entities` must be a list of {"name": ..., "contributing_factor": true or false}')
    return [str(entity.get("name", "")) for entity in entities if entity.get("contributing_factor")]
