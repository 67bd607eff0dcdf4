"""A budget in US dollars that the trials of a run share.

Each trial reserves an even share of what is free and returns what it does not spend. Invariant: spent and reserved
together never exceed the total, as long as no trial exceeds its share.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field


@dataclass(slots=True)
class SharedBudget:
    """Reservations and expenses against one total."""

    total: float
    """In US dollars."""
    spent: float = 0.0
    reserved: dict[Hashable, float] = field(default_factory=dict)

    @property
    def free(self) -> float:
        return max(0.0, self.total - self.spent - sum(self.reserved.values()))

    def reserve(self, trial: Hashable, slots: int, limit: float | None = None) -> float | None:
        """Reserve a share for one of `slots` trials, up to `limit`; None where nothing is left."""
        share = self.free / max(1, slots)
        share = share if limit is None else min(share, limit)
        if share <= 0.0:
            return None
        self.reserved[trial] = share
        return share

    def settle(self, trial: Hashable, cost: float | None) -> None:
        """Book the final cost of a trial; with None its whole share counts as spent."""
        share = self.reserved.pop(trial, 0.0)
        self.spent += share if cost is None else cost
