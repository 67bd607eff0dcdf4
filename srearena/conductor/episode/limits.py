"""Limits and usage of a trial."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from srearena.utils.status import LimitReached, Outcome


@dataclass(slots=True)
class Usage:
    """Resources that a trial has used. Tokens and cost are reported by the agent, 0 where it reports none."""

    steps: int = 0
    invalid_actions: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0
    wall_seconds: float = 0.0
    virtual_seconds: float = 0.0

    def as_document(self) -> dict[str, Any]:
        return {key: round(value, 4) if isinstance(value, float) else value for key, value in asdict(self).items()}


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a trial; None for no limit."""

    steps: int | None = 30
    tokens: int | None = None
    cost: float | None = None
    wall_seconds: float | None = 3600.0
    virtual_seconds: float | None = 4 * 3600.0
    invalid_submissions: int = 3
    """How many malformed submissions in a row end the trial."""

    def check(self, used: Usage) -> None:
        """Raise LimitReached where a limit is reached."""
        bounds: tuple[tuple[float, float | None, Outcome, str], ...] = (
            (used.steps, self.steps, Outcome.BUDGET, "steps"),
            (used.tokens_in + used.tokens_out, self.tokens, Outcome.BUDGET, "tokens"),
            (used.cost, self.cost, Outcome.BUDGET, "of cost"),
            (used.wall_seconds, self.wall_seconds, Outcome.TIMEOUT, "seconds"),
            (used.virtual_seconds, self.virtual_seconds, Outcome.TIMEOUT, "seconds of the cluster's time"),
        )
        for value, bound, outcome, unit in bounds:
            if bound is not None and value >= bound:
                raise LimitReached(outcome, f"the limit of {bound:g} {unit} is reached")

    def as_document(self) -> dict[str, Any]:
        return asdict(self)
