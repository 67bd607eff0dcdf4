"""Status of a trial: how it ended, the error that ends it early, and how that is shown.

Every trial ends in exactly one outcome.
"""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
    PASS = "pass"
    FAIL = "fail"
    AGENT_ERROR = "agent error"
    ENVIRONMENT_ERROR = "environment error"
    TIMEOUT = "timeout"
    BUDGET = "budget"
    INVALID_SUBMISSION = "invalid submission"


_COLOURS: dict[str, str] = {Outcome.PASS: "green", Outcome.FAIL: "red", Outcome.ENVIRONMENT_ERROR: "magenta"}


class LimitReached(Exception):
    """A limit of the trial is reached; `outcome` is how the trial ends."""

    def __init__(self, outcome: Outcome, reason: str) -> None:
        super().__init__(reason)
        self.outcome = outcome


def outcome_colour(outcome: str) -> str:
    """The colour of an outcome on a terminal."""
    return _COLOURS.get(outcome, "yellow")
