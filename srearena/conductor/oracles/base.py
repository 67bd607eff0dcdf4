"""The base of all oracles: an oracle evaluates a submission and the cluster, and returns a verdict with reasons.

Reasons are for people. They are written to the results and never shown to the agent while it works.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of an oracle."""

    passed: bool
    score: float
    """Between 0 and 1; 1 whenever passed, less a deduction for degrading collateral."""
    reasons: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, passed: bool, *reasons: str, **details: Any) -> Verdict:
        return cls(passed, 1.0 if passed else 0.0, reasons, details)

    @classmethod
    def from_answer(cls, answer: object) -> Verdict:
        """Convert the return value of a user's oracle: a verdict, a truth value, or a mapping with `success`."""
        if isinstance(answer, Verdict):
            return answer
        if isinstance(answer, Mapping):
            passed = bool(answer.get("success"))
            accuracy = answer.get("accuracy")
            score = float(accuracy) / 100 if isinstance(accuracy, int | float) else float(passed)
            details = {str(key): value for key, value in answer.items() if key != "success"}
            reasons = tuple(str(reason) for reason in answer.get("reasons", ()))
            return cls(passed, min(max(score, 0.0), 1.0), reasons, details)
        return cls.of(bool(answer))

    def as_document(self) -> dict[str, Any]:
        return {
            "passed": self.passed,
            "score": round(self.score, 4),
            "reasons": list(self.reasons),
            "details": dict(self.details),
        }


class Oracle(ABC):
    """Grades one stage of one problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    @abstractmethod
    def evaluate(self, submission: Any) -> Verdict:
        """Return the verdict on a submission; BadSubmission where it is malformed."""
