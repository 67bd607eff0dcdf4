"""How far graders agree beyond chance: Cohen's kappa for two, Fleiss's for more.

Ratings are the verdicts 0, 0.5 and 1. Where chance alone would already agree always (everybody gave one and the same
verdict) kappa has no meaning; it is then 1 for full agreement, so that a report never shows a gap.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Agreement:
    kappa: float
    observed: float
    items: int
    raters: int


def cohen(one: Sequence[Hashable], other: Sequence[Hashable]) -> Agreement:
    """Agreement of two graders on the same items."""
    n = len(one)
    if n == 0 or n != len(other):
        raise ValueError("two graders must have judged the same items, at least one")
    observed = sum(a == b for a, b in zip(one, other, strict=True)) / n
    left, right = Counter(one), Counter(other)
    expected = math.fsum(left[value] * right[value] for value in left) / (n * n)
    return Agreement(_beyond_chance(observed, expected), observed, n, 2)


def fleiss(ratings: Sequence[Sequence[Hashable]]) -> Agreement:
    """Agreement of several graders: one row of ratings per item, every row equally long."""
    raters = len(ratings[0]) if ratings else 0
    if raters < 2 or any(len(row) != raters for row in ratings):
        raise ValueError("every item needs the same number of ratings, at least two")
    pairs = raters * (raters - 1)
    observed = math.fsum(sum(c * (c - 1) for c in Counter(row).values()) / pairs for row in ratings) / len(ratings)
    totals = Counter(value for row in ratings for value in row)
    size = len(ratings) * raters
    expected = math.fsum((count / size) ** 2 for count in totals.values())
    return Agreement(_beyond_chance(observed, expected), observed, len(ratings), raters)


def _beyond_chance(observed: float, expected: float) -> float:
    if expected >= 1.0 - 1e-12:
        return 1.0 if observed >= 1.0 - 1e-12 else 0.0
    return (observed - expected) / (1 - expected)
