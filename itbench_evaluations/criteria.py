"""The table of metrics: which criterion of `--eval-criteria` yields which scores, and how results nest them.

The flat names, the nested format of earlier tools and the help text are all derived from this table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from itbench_evaluations.errors import InputError
from itbench_evaluations.metrics import KS

_PRF = ("precision", "recall", "f1")


@dataclass(frozen=True, slots=True)
class Criterion:
    """A criterion, the key of its scores in nested results, and whether it has precision, recall and F1."""

    name: str
    key: str
    triple: bool
    meaning: str
    judged: bool = False

    @property
    def metrics(self) -> tuple[str, ...]:
        return tuple(f"{self.key}_{part}" for part in _PRF) if self.triple else (self.key,)


CRITERIA: tuple[Criterion, ...] = (
    Criterion("ROOT_CAUSE_ENTITY", "root_cause_entity", True, "blamed components against the roots"),
    Criterion("ROOT_CAUSE_ENTITY_K", "root_cause_entity_k", True, "the same for the first k blamed"),
    *(
        Criterion(f"ROOT_CAUSE_ENTITY_K@{k}", f"root_cause_entity_k@{k}", True, f"the same for the first {k} blamed")
        for k in KS
    ),
    Criterion(
        "ROOT_CAUSE_REASONING", "root_cause_reasoning", False, "what was wrong with the roots found", judged=True
    ),
    Criterion(
        "ROOT_CAUSE_REASONING_PARTIAL",
        "root_cause_reasoning_partial",
        False,
        "the same, with credit for symptoms near a root",
        judged=True,
    ),
    Criterion("PROPAGATION_CHAIN", "propagation_chain", False, "common subsequences of contracted paths"),
    Criterion(
        "FAULT_LOCALIZATION",
        "fault_localization_component_identification",
        False,
        "whether the first component to suffer is on the predicted path",
    ),
    Criterion("ROOT_CAUSE_PROXIMITY", "root_cause_proximity_no_fp", True, "nearness to the roots in hops"),
    Criterion(
        "ROOT_CAUSE_PROXIMITY_FP", "root_cause_proximity_with_fp", True, "nearness relative to the longest true path"
    ),
    Criterion("ITBENCH_AA", "itbench_aa", False, "0 if a root is missed, else precision"),
    Criterion("NTAM_FAULT_LOCALIZATION", "ntam_fault_localization", False, "topology-aware match of the roots"),
    Criterion("NTAM_PROPAGATION", "ntam_propagation", False, "topology-aware match of the whole chain"),
    Criterion("DETECTION", "detection", False, "whether it was noticed that something (or nothing) was wrong"),
)

METRICS: tuple[str, ...] = tuple(metric for criterion in CRITERIA for metric in criterion.metrics)
HEADLINE = "root_cause_entity_f1"


def select(names: Iterable[str]) -> tuple[Criterion, ...]:
    """Criteria by name or score key, case-insensitive; all of them if no names are given."""
    wanted = [name.strip() for text in names for name in text.split(",") if name.strip()]
    if not wanted:
        return CRITERIA
    chosen: list[Criterion] = []
    for name in wanted:
        folded = name.upper()
        # The criterion of entities includes the first-k variants, as in earlier tools.
        hits = [c for c in CRITERIA if folded in (c.name, c.key.upper()) or c.name.startswith(f"{folded}_K")]
        if not hits:
            known = ", ".join(criterion.name for criterion in CRITERIA if "@" not in criterion.name)
            raise InputError(f"unknown criterion {name!r}: choose from {known}")
        chosen.extend(hit for hit in hits if hit not in chosen)
    return tuple(criterion for criterion in CRITERIA if criterion in chosen)
