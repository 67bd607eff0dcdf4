"""Analysis: the level of the system that the fault is in, and its type.

Why it cannot be gamed: both parts must be right, each is one of a closed list, and there is one submission.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, get_args

from srearena.conductor.errors import BadSubmission
from srearena.conductor.oracles.base import Oracle, Verdict
from srearena.conductor.problems.metadata import FaultType, SystemLevel

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem

SYSTEM_LEVELS: tuple[str, ...] = get_args(SystemLevel)
FAULT_TYPES: tuple[str, ...] = get_args(FaultType)


class AnalysisOracle(Oracle):
    def __init__(self, problem: Problem, system_level: SystemLevel, fault_type: FaultType) -> None:
        super().__init__(problem)
        self.system_level = system_level
        self.fault_type = fault_type

    def evaluate(self, submission: Any) -> Verdict:
        if not isinstance(submission, Mapping):
            raise BadSubmission(
                'this stage takes two words: submit({"system_level": "Application", "fault_type": "Code Defect"})'
            )
        level = _one_of(submission, "system_level", SYSTEM_LEVELS)
        kind = _one_of(submission, "fault_type", FAULT_TYPES)
        right = (level == self.system_level, kind == self.fault_type)
        parts = (
            (right[0], f"system level: answered {level}, and it is {self.system_level}"),
            (right[1], f"fault type: answered {kind}, and it is {self.fault_type}"),
        )
        reasons = tuple(reason for _, reason in sorted(parts))
        return Verdict(all(right), sum(right) / 2, reasons, {"system_level": right[0], "fault_type": right[1]})


def _one_of(submission: Mapping[str, Any], key: str, choices: tuple[str, ...]) -> str:
    value = submission.get(key)
    for choice in choices:
        if isinstance(value, str) and value.strip().lower() == choice.lower():
            return choice
    raise BadSubmission(f"{key} must be one of {', '.join(choices)}")
