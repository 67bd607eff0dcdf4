"""Money that the trials of a run share. Each gets an even part of what is free; what it leaves comes back.

What always holds: spent and lent together never exceed the total, as long as no trial exceeds its part.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field


@dataclass(slots=True)
class SharedBudget:
    total: float
    """In US dollars."""
    spent: float = 0.0
    lent: dict[Hashable, float] = field(default_factory=dict)

    @property
    def free(self) -> float:
        return max(0.0, self.total - self.spent - sum(self.lent.values()))

    def lend(self, who: Hashable, places: int, most: float | None = None) -> float | None:
        """A part for one of so many who may begin now, and at most so much; None where nothing is left."""
        part = self.free / max(1, places)
        part = part if most is None else min(part, most)
        if part <= 0.0:
            return None
        self.lent[who] = part
        return part

    def settle(self, who: Hashable, cost: float | None) -> None:
        """What it has cost in the end; None where that is not known, and all of its part counts as spent."""
        part = self.lent.pop(who, 0.0)
        self.spent += part if cost is None else cost
