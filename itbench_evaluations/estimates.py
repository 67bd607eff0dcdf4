"""Statistics of a few trials: means with confidence intervals, and success probabilities.

Everything is deterministic: resampling is seeded with the number of values, so the same scores give the same interval
in any order and on any machine. No value is dropped here; trials without a value were excluded by name before.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from statistics import NormalDist

CONFIDENCE = 0.95
RESAMPLES = 1000  # chosen: bounds of the interval vary by less than a hundredth
DIRECT_LIMIT = 50  # values; chosen: above it the closed form differs from resampling by less than resampling noise


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its standard error and confidence interval."""

    mean: float
    stderr: float | None
    n: int
    low: float
    high: float


def mean(values: Sequence[float]) -> float:
    """The mean, clamped to the range of the values: rounding must not produce 1.0000000000000002."""
    return min(max(values), max(min(values), math.fsum(values) / len(values)))


def standard_error(values: Sequence[float]) -> float | None:
    """Standard error of the mean, from the sample variance; None for a single value."""
    if len(values) < 2:
        return None
    centre = mean(values)
    variance = math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1)
    return math.sqrt(variance / len(values))


@lru_cache(maxsize=256)
def _draws(n: int, resamples: int) -> tuple[itemgetter[tuple[float, ...]], ...]:
    """Index sets of the resamples of n values: drawn once per n, so that all metrics use the same ones."""
    rng = random.Random(f"bootstrap:{n}:{resamples}")
    indices = range(n)
    return tuple(itemgetter(*rng.choices(indices, k=n)) for _ in range(resamples))


def percentile(ordered: Sequence[float], share: float) -> float:
    """A percentile of a sorted sample, by linear interpolation."""
    position = share * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


@lru_cache(maxsize=65536)
def _interval(ordered: tuple[float, ...], resamples: int) -> tuple[float, float]:
    if ordered[0] == ordered[-1]:
        return ordered[0], ordered[0]
    tail = (1 - CONFIDENCE) / 2
    if len(ordered) > DIRECT_LIMIT:
        return _asymptotic_interval(ordered, tail)
    n = len(ordered)
    means = sorted(math.fsum(draw(ordered)) / n for draw in _draws(n, resamples))
    return percentile(means, tail), percentile(means, 1 - tail)


def _asymptotic_interval(ordered: tuple[float, ...], tail: float) -> tuple[float, float]:
    """The limit of the percentile bootstrap: normal quantiles with the skewness term of Cornish and Fisher."""
    n = len(ordered)
    centre = mean(ordered)
    variance = math.fsum((value - centre) ** 2 for value in ordered) / n
    skewness = math.fsum((value - centre) ** 3 for value in ordered) / n / math.pow(variance, 1.5) / math.sqrt(n)
    spread = math.sqrt(variance / n)

    def quantile(share: float) -> float:
        z = NormalDist().inv_cdf(share)
        return min(ordered[-1], max(ordered[0], centre + spread * (z + skewness * (z * z - 1) / 6)))

    return quantile(tail), quantile(1 - tail)


def interval(values: Sequence[float], resamples: int = RESAMPLES) -> tuple[float, float]:
    """The 95 % bootstrap interval of the mean; independent of the order of the values."""
    return _interval(tuple(sorted(values)), resamples)


def estimate(values: Sequence[float], resamples: int = RESAMPLES) -> Estimate:
    low, high = interval(values, resamples)
    return Estimate(mean(values), standard_error(values), len(values), low, high)


# --- success probabilities --------------------------------------------------------------------------------------------


def passed(score: float) -> bool:
    """Whether a trial passes a metric: its score is 1, up to rounding."""
    return score >= 1.0 - 1e-9


def pass_at(k: int, n: int, successes: int) -> float | None:
    """Unbiased estimate from n runs that at least one of k runs passes (pass@k); None if n < k."""
    if n < k or k < 1:
        return None
    return 1.0 - math.comb(n - successes, k) / math.comb(n, k)


def pass_every(k: int, n: int, successes: int) -> float | None:
    """Unbiased estimate from n runs that all of k runs pass (pass^k); None if n < k."""
    if n < k or k < 1:
        return None
    return math.comb(successes, k) / math.comb(n, k)


def majority_at(k: int, n: int, successes: int) -> float | None:
    """Unbiased estimate from n runs that more than half of k runs pass (majority@k); None if n < k."""
    if n < k or k < 1:
        return None
    wins = sum(
        math.comb(successes, hits) * math.comb(n - successes, k - hits)
        for hits in range(k // 2 + 1, k + 1)
        if hits <= successes and k - hits <= n - successes
    )
    return wins / math.comb(n, k)
