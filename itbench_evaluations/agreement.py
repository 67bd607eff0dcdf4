"""Inter-rater agreement beyond chance: Cohen's kappa for two raters, Fleiss' kappa for more.

Ratings are the verdicts 0, 0.5 and 1. If all raters gave one and the same verdict, kappa is undefined; it is then
reported as 1, so that a report never has a gap.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Agreement:
    """Kappa, and what it was computed from."""

    kappa: float
    observed: float
    items: int
    raters: int


def cohen(first: Sequence[Hashable], second: Sequence[Hashable]) -> Agreement:
    """Cohen's kappa of two raters on the same items."""
    n = len(first)
    if n == 0 or n != len(second):
        raise ValueError("two raters must have judged the same items, at least one")
    observed = sum(a == b for a, b in zip(first, second, strict=True)) / n
    left, right = Counter(first), Counter(second)
    expected = math.fsum(left[value] * right[value] for value in left) / (n * n)
    return Agreement(_beyond_chance(observed, expected), observed, n, 2)


def fleiss(ratings: Sequence[Sequence[Hashable]]) -> Agreement:
    """Fleiss' kappa of several raters: one row of ratings per item, all rows of equal length."""
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
