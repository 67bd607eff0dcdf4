"""What tokens cost: told by the user, or from `prices.toml`. A model that is in neither has no price, never a guess."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from clients.llm.messages import Usage

_CACHE_WRITE = 1.25
"""What writing to a prompt cache costs, against plain input."""


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens."""

    plain: float
    cached: float
    output: float

    def of(self, used: Usage) -> float:
        fresh = used.tokens_in - used.cached - used.cache_written
        plain = fresh * self.plain + used.cache_written * self.plain * _CACHE_WRITE
        return (plain + used.cached * self.cached + used.tokens_out * self.output) / 1e6


@cache
def _table() -> tuple[tuple[str, Price], ...]:
    document = tomllib.loads((Path(__file__).parent / "prices.toml").read_text(encoding="utf-8"))
    return tuple((pattern, Price(*figures)) for pattern, figures in document["prices"].items())


def price_of(model: str) -> Price | None:
    """By the model's own name, whoever serves it."""
    name = model.rpartition("/")[2].lower()
    return next((price for pattern, price in _table() if fnmatchcase(name, pattern)), None)
