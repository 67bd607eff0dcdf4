"""What a handful of trials says about an agent: means with their uncertainty, and chances of success.

Everything is deterministic: resampling is seeded by the number of values, so the same scores give the same interval
in any order and on any machine. No value is dropped here; what has no value was excluded by name before.
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
RESAMPLES = 1000
DIRECT_LIMIT = 50  # samples; beyond, the resampling distribution is known well enough in closed form


@dataclass(frozen=True, slots=True)
class Estimate:
    mean: float
    stderr: float | None
    n: int
    low: float
    high: float


def mean(values: Sequence[float]) -> float:
    """The mean, kept within the data's range: rounding must not produce 1.0000000000000002."""
    return min(max(values), max(min(values), math.fsum(values) / len(values)))


def standard_error(values: Sequence[float]) -> float | None:
    """Of the mean, from the sample's own variance; None for a single value, which says nothing of spread."""
    if len(values) < 2:
        return None
    centre = mean(values)
    variance = math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1)
    return math.sqrt(variance / len(values))


@lru_cache(maxsize=256)
def _draws(n: int, resamples: int) -> tuple[itemgetter[tuple[float, ...]], ...]:
    """The resamples to take of n values: chosen once per n, so that all metrics see the same luck."""
    rng = random.Random(f"bootstrap:{n}:{resamples}")
    places = range(n)
    return tuple(itemgetter(*rng.choices(places, k=n)) for _ in range(resamples))


def percentile(ordered: Sequence[float], share: float) -> float:
    """Linear interpolation between the two nearest of a sorted sample."""
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


@lru_cache(maxsize=65536)
def _interval(ordered: tuple[float, ...], resamples: int) -> tuple[float, float]:
    if ordered[0] == ordered[-1]:
        return ordered[0], ordered[0]
    tail = (1 - CONFIDENCE) / 2
    if len(ordered) > DIRECT_LIMIT:
        return _interval_in_the_limit(ordered, tail)
    n = len(ordered)
    means = sorted(math.fsum(draw(ordered)) / n for draw in _draws(n, resamples))
    return percentile(means, tail), percentile(means, 1 - tail)


def _interval_in_the_limit(ordered: tuple[float, ...], tail: float) -> tuple[float, float]:
    """What percentile bootstrap of the mean tends to: the normal quantile with Cornish and Fisher's skewness term."""
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
    """The bootstrap's 95 % interval of the mean; the order of the values does not matter."""
    return _interval(tuple(sorted(values)), resamples)


def estimate(values: Sequence[float], resamples: int = RESAMPLES) -> Estimate:
    low, high = interval(values, resamples)
    return Estimate(mean(values), standard_error(values), len(values), low, high)


# --- chances of success -----------------------------------------------------------------------------------------------


def passed(score: float) -> bool:
    """A trial passes a metric when its score is exactly 1, up to rounding."""
    return score >= 1.0 - 1e-9


def pass_at(k: int, n: int, successes: int) -> float | None:
    """Chance that at least one of k runs passes, unbiased from n runs; None with fewer than k."""
    if n < k or k < 1:
        return None
    return 1.0 - math.comb(n - successes, k) / math.comb(n, k)


def pass_every(k: int, n: int, successes: int) -> float | None:
    """Chance that all of k runs pass (pass^k), unbiased from n runs; None with fewer than k."""
    if n < k or k < 1:
        return None
    return math.comb(successes, k) / math.comb(n, k)


def majority_at(k: int, n: int, successes: int) -> float | None:
    """Chance that more than half of k runs pass, unbiased from n runs; None with fewer than k."""
    if n < k or k < 1:
        return None
    wins = sum(
        math.comb(successes, hits) * math.comb(n - successes, k - hits)
        for hits in range(k // 2 + 1, k + 1)
        if hits <= successes and k - hits <= n - successes
    )
    return wins / math.comb(n, k)
