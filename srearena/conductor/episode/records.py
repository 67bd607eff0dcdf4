"""What an episode records: the course and verdict of each stage, and how the agent's part ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from srearena.conductor.episode.recovery import Recovery
from srearena.conductor.grading.collateral import Change
from srearena.conductor.oracles.base import Verdict
from srearena.utils.status import Outcome


@dataclass(slots=True)
class StageRecord:
    """The course and result of one stage."""

    name: str
    opened: float
    opened_virtual: float
    steps_before: int
    submission: Any = None
    submitted: bool = False
    wall_seconds: float = 0.0
    virtual_seconds: float = 0.0
    steps: int = 0
    verdict: Verdict | None = None
    opened_at: str = ""
    """By the cluster's clock."""
    reply: str = ""
    """The answer to the submission: the next question."""
    recovery: Recovery | None = None
    """When the system recovered; only for a mitigation that passed."""

    @property
    def recovery_document(self) -> dict[str, Any] | None:
        """The time from the opening of the stage to the recovery; 0 where the system had recovered before."""
        if self.recovery is None:
            return None
        seconds = self.recovery.at - (seconds_of(self.opened_at) or 0.0)
        return {
            "seconds": round(max(seconds, 0.0), 3),
            "at": datetime.fromtimestamp(self.recovery.at, UTC).isoformat(),
            "seen_in": self.recovery.source,
            "resolution_seconds": self.recovery.resolution,
        }

    def as_document(self) -> dict[str, Any]:
        return {
            "stage": self.name,
            "submitted": self.submitted,
            "submission": self.submission,
            "wall_seconds": round(self.wall_seconds, 3),
            "virtual_seconds": round(self.virtual_seconds, 3),
            "steps": self.steps,
            **({"recovery": self.recovery_document} if self.name == "mitigation" else {}),
            "verdict": self.verdict.as_document() if self.verdict else None,
        }


@dataclass(slots=True)
class Ending:
    """How the episode ended."""

    outcome: Outcome
    reason: str
    collateral: list[Change] = field(default_factory=list)


def seconds_of(moment: str) -> float | None:
    """The seconds since the epoch of a moment in ISO format; None where there is none."""
    return datetime.fromisoformat(moment).timestamp() if moment else None
