"""Outcomes and reports of runs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

REPORT_SCHEMA = "leaderboard-report-v1"


class Outcome(StrEnum):
    """How an attempt ended."""

    ANSWERED = "answered"
    NO_ANSWER = "no_answer"
    AGENT_FAILED = "agent_failed"
    TIMEOUT = "timeout"
    TURNS = "turns"
    COST = "cost"
    ENVIRONMENT_ERROR = "environment_error"  # not counted against the agent
    INTERRUPTED = "interrupted"  # stopped by the user: the run is done again


RETRIED = (Outcome.AGENT_FAILED, Outcome.ENVIRONMENT_ERROR)
"""Outcomes that are retried by default; an agent without an answer, or that timed out, is not."""


@dataclass(frozen=True, slots=True)
class Report:
    """The result of one attempt. Unknown figures are None, not zero."""

    outcome: Outcome
    reason: str = ""
    seconds: float = 0.0
    turns: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost_usd: float | None = None
    model: str = ""
    sandbox: str | None = None

    def as_document(self) -> dict[str, Any]:
        return {"schema_version": REPORT_SCHEMA, **asdict(self), "outcome": str(self.outcome)}

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Report:
        fields = {key: value for key, value in document.items() if key in cls.__slots__}
        return cls(**{**fields, "outcome": Outcome(document["outcome"])})
