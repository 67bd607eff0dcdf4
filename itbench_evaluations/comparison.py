"""Compare two agents on the same incidents: is the difference significant?

Pairs are incidents (means over their trials), because trials of one incident are not independent of each other. The
difference has a bootstrap interval over incidents and the p-value of a sign-flip permutation test, exact up to
`EXACT` pairs. Passes and failures of trials that both agents ran are compared by McNemar's exact test.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

from itbench_evaluations import estimates
from itbench_evaluations.errors import InputError

EXACT = 14
PERMUTATIONS = 20_000


@dataclass(frozen=True, slots=True)
class Comparison:
    """Difference A minus B of one metric."""

    metric: str
    incidents: int
    mean_a: float
    mean_b: float
    difference: float
    low: float
    high: float
    permutation_p: float
    paired_trials: int
    only_a_passed: int
    only_b_passed: int
    mcnemar_p: float

    @property
    def within_noise(self) -> bool:
        return self.permutation_p >= 1 - estimates.CONFIDENCE or self.low <= 0 <= self.high

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "within_noise": self.within_noise}


def permutation_p(differences: Sequence[float]) -> float:
    """Two-sided p-value: the share of random sign assignments whose mean is at least as far from zero."""
    observed = abs(math.fsum(differences)) - 1e-12
    moving = sorted(abs(difference) for difference in differences if difference)
    if not moving:
        return 1.0
    if len(moving) <= EXACT:
        outcomes = [abs(math.fsum(s * d for s, d in zip(signs, moving, strict=True))) for signs in _signs(len(moving))]
        return sum(outcome >= observed for outcome in outcomes) / len(outcomes)
    rng = random.Random(hashlib.sha256(f"permutation:{moving!r}".encode()).digest())
    hits = 0
    for _ in range(PERMUTATIONS):
        signs = rng.getrandbits(len(moving))
        total = math.fsum(d if signs >> index & 1 else -d for index, d in enumerate(moving))
        hits += abs(total) >= observed
    return (hits + 1) / (PERMUTATIONS + 1)  # the observed assignment counts as one of them


def _signs(n: int) -> list[tuple[int, ...]]:
    return list(product((1, -1), repeat=n))


def mcnemar_p(only_a: int, only_b: int) -> float:
    """Two-sided p-value of McNemar's exact test: discordant pairs are binomial with p = 1/2 under the null."""
    n = only_a + only_b
    if n == 0:
        return 1.0
    tail = sum(math.comb(n, hits) for hits in range(min(only_a, only_b) + 1)) / math.ldexp(1.0, n)
    return min(1.0, 2 * tail)


Trials = Mapping[tuple[str, str], float]


def compare(metric: str, a: Trials, b: Trials) -> Comparison:
    """Compare the scores of two agents, keyed by (incident, trial)."""
    means_a, means_b = _incident_means(a), _incident_means(b)
    shared = sorted(means_a.keys() & means_b.keys())
    if not shared:
        raise InputError(f"the two results share no incident with a value for {metric}")
    differences = [means_a[incident] - means_b[incident] for incident in shared]
    low, high = estimates.interval(differences, 4 * estimates.RESAMPLES)
    both = sorted(a.keys() & b.keys())
    only_a = sum(estimates.passed(a[key]) and not estimates.passed(b[key]) for key in both)
    only_b = sum(estimates.passed(b[key]) and not estimates.passed(a[key]) for key in both)
    return Comparison(
        metric=metric,
        incidents=len(shared),
        mean_a=estimates.mean([means_a[incident] for incident in shared]),
        mean_b=estimates.mean([means_b[incident] for incident in shared]),
        difference=estimates.mean(differences),
        low=low,
        high=high,
        permutation_p=permutation_p(differences),
        paired_trials=len(both),
        only_a_passed=only_a,
        only_b_passed=only_b,
        mcnemar_p=mcnemar_p(only_a, only_b),
    )


def _incident_means(trials: Trials) -> dict[str, float]:
    grouped: dict[str, list[float]] = {}
    for (incident, _), score in trials.items():
        grouped.setdefault(incident, []).append(score)
    return {incident: estimates.mean(scores) for incident, scores in grouped.items()}


def trials_of(document: Mapping[str, Any], metric: str) -> dict[tuple[str, str], float]:
    """The values of one metric in a result document, keyed by (incident, trial)."""
    scores: dict[tuple[str, str], float] = {}
    for row in document.get("raw_results", []):
        value = row.get("flat_scores", {}).get(metric)
        if isinstance(value, int | float):
            scores[str(row["incident_id"]), str(row["trial_id"])] = float(value)
    return scores
