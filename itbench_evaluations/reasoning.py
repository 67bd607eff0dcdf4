"""The explanations to judge: for which blamed component, and against which statements of the ground truth.

There is one `ReasoningItem` per blamed component on the ground truth's graph. Other components, and trials that blame
nothing, score zero by rule and are never sent to a model. `combine` computes the metrics from the scores of a judge or
of the lexical baseline.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from itbench_evaluations import lexical
from itbench_evaluations.matching import Matcher
from srearena.ground_truth import Fault, GroundTruth
from srearena.ground_truth.parsing import PLACEHOLDERS

SCALE = (0.0, 0.5, 1.0)


@dataclass(frozen=True, slots=True)
class ReasoningItem:
    """One explanation to be scored 0, 0.5 or 1."""

    component: str
    label: str
    role: Literal["root", "symptom"]
    hops: int
    statements: tuple[str, ...]
    explanation: str
    names: tuple[str, ...]

    def lexical_score(self) -> float:
        return lexical.score(self.statements, self.explanation, self.names)


def _meaningful(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for text in texts if text.strip().lower() not in PLACEHOLDERS))


def _belongs(fault: Fault, component: str, matcher: Matcher) -> bool:
    if fault.group_id in matcher.component_of:
        return matcher.component_of[str(fault.group_id)] == component
    if fault.name is None:
        return False
    return matcher.resolve("/".join(part for part in (fault.kind, fault.name) if part)).component == component


def root_statements(truth: GroundTruth, matcher: Matcher, component: str) -> tuple[str, ...]:
    """Statements of the ground truth about a root."""
    matching = [fault for fault in truth.faults if _belongs(fault, component, matcher)]
    faults = matching or (list(truth.faults) if len(matcher.root_components) == 1 else [])
    texts = [text for fault in faults for text in (fault.condition, fault.change)]
    texts += [e.condition for e in truth.propagations if matcher.component_of.get(e.source) == component]
    statements = _meaningful(texts) or _meaningful([fault.mechanism for fault in faults])
    return statements or _meaningful(truth.remedies)


def symptom_statements(truth: GroundTruth, matcher: Matcher, component: str) -> tuple[str, ...]:
    """Statements of the ground truth about an affected component."""
    texts = [e.effect for e in truth.propagations if matcher.component_of.get(e.target) == component]
    texts += [e.condition for e in truth.propagations if matcher.component_of.get(e.source) == component]
    texts += [a.description for a in truth.alerts if matcher.component_of.get(a.group_id or "") == component]
    return _meaningful(texts)


def combine(
    items: Sequence[ReasoningItem], scores: Mapping[str, float], *, blamed: int, roots: int
) -> tuple[float | None, float | None]:
    """`root_cause_reasoning` and `root_cause_reasoning_partial`; None if a required verdict is missing.

    A root without statements cannot be judged; if no root in the diagnosis can be, the metric has no value.
    """
    if roots == 0:
        value = 0.0 if blamed else 1.0
        return value, value
    found = [item for item in items if item.role == "root"]
    whole: float | None = 0.0
    if found:
        judged = [scores[item.component] for item in found if item.component in scores]
        complete = all(item.component in scores or not item.statements for item in found)
        whole = math.fsum(judged) / len(judged) if judged and complete else None
    needed = [item for item in items if item.statements]
    if any(item.component not in scores for item in needed) or (items and not needed):
        return whole, None
    partial = max((scores[item.component] / (1 + item.hops) for item in needed), default=0.0)
    return whole, partial
