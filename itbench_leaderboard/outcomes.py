"""How a run can end, and what it tells about itself."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

REPORT_SCHEMA = "leaderboard-report-v1"


class Outcome(StrEnum):
    ANSWERED = "answered"
    NO_ANSWER = "no_answer"
    AGENT_FAILED = "agent_failed"
    TIMEOUT = "timeout"
    TURNS = "turns"
    COST = "cost"
    ENVIRONMENT_ERROR = "environment_error"  # ours: never held against the agent
    INTERRUPTED = "interrupted"  # nobody's: not an ending, the run is done again


RETRIED = (Outcome.AGENT_FAILED, Outcome.ENVIRONMENT_ERROR)
"""What is tried again by default. An agent that gave no answer, or took too long, has had its run."""


@dataclass(frozen=True, slots=True)
class Report:
    """What came of one attempt. Unknown figures are None, not zero."""

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
        known = {key: value for key, value in document.items() if key in cls.__slots__}
        return cls(**{**known, "outcome": Outcome(document["outcome"])})
