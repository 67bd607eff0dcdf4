"""Change points of counted events: binomial (failed of all requests) and Poisson (events per bucket) rates.

A series of buckets is divided into segments of constant rate such that the log-likelihood, less a penalty per change,
is maximal (optimal partitioning, Jackson et al. 2005). The penalty follows from the accepted chance of a false alarm: a
log-likelihood ratio of two rates exceeds x with a probability of at most about exp(-x) at one place, so that
ln(buckets / chance) bounds it over all places. Counts that vary more than their distribution says (retries, sessions)
raise the penalty by their dispersion, estimated from adjacent buckets, where steps have no influence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

FALSE_ALARMS = 1e-2  # bound of the chance of a change point in a series of constant rate; chosen
_EDGE = 2  # buckets on each side of a change: a single bucket is a burst

Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class RateChange:
    index: int
    """First bucket of the new rate."""
    before: float
    after: float
    evidence: float
    """Log-likelihood ratio of two rates against one, divided by the dispersion."""


def binomial_changes(
    events: Sequence[float], trials: Sequence[float], chance: float = FALSE_ALARMS
) -> list[RateChange]:
    """The changes of a share, from the events and trials of each bucket; buckets without trials say nothing."""
    return _changes(np.asarray(events, dtype=float), np.asarray(trials, dtype=float), chance, bounded=True)


def poisson_changes(events: Sequence[float], chance: float = FALSE_ALARMS) -> list[RateChange]:
    """The changes of the number of events per bucket, from buckets of equal length."""
    counts = np.asarray(events, dtype=float)
    return _changes(counts, np.ones(len(counts)), chance, bounded=False)


def _changes(events: Floats, exposure: Floats, chance: float, *, bounded: bool) -> list[RateChange]:
    used = np.flatnonzero(exposure > 0)
    events, exposure = events[used], exposure[used]
    if len(used) < 2 * _EDGE:
        return []
    dispersion = _dispersion(events, exposure, bounded)
    penalty = dispersion * math.log(len(used) / chance)
    totals = np.concatenate(([0.0], np.cumsum(events))), np.concatenate(([0.0], np.cumsum(exposure)))
    edges = [0, *_partition(*totals, penalty, bounded), len(used)]
    found = []
    for begin, split, end in zip(edges, edges[1:], edges[2:], strict=False):
        parts = [(totals[0][b] - totals[0][a], totals[1][b] - totals[1][a]) for a, b in ((begin, split), (split, end))]
        whole = (parts[0][0] + parts[1][0], parts[0][1] + parts[1][1])
        gain = sum(float(_log_likelihood(*part, bounded)) for part in parts) - float(_log_likelihood(*whole, bounded))
        before, after = (float(part[0] / part[1]) for part in parts)
        found.append(RateChange(int(used[split]), before, after, gain / dispersion))
    return found


def _log_likelihood(events: Any, exposure: Any, bounded: bool) -> Any:
    """The log-likelihood of segments at their most likely rate, up to terms that do not depend on the partition."""
    rate = np.divide(events, exposure)
    if not bounded:
        return events * np.log(np.where(rate > 0, rate, 1.0)) - events
    others = np.clip(1.0 - rate, 0.0, 1.0)
    return events * np.log(np.where(rate > 0, rate, 1.0)) + (exposure - events) * np.log(
        np.where(others > 0, others, 1.0)
    )


def _partition(events: Floats, exposure: Floats, penalty: float, bounded: bool) -> list[int]:
    """The best splits, from cumulated counts."""
    count = len(events) - 1
    best = np.full(count + 1, -np.inf)
    best[0] = 0.0
    previous = np.zeros(count + 1, dtype=int)
    for end in range(_EDGE, count + 1):
        begin = np.concatenate(([0], np.arange(_EDGE, end - _EDGE + 1)))
        gain = _log_likelihood(events[end] - events[begin], exposure[end] - exposure[begin], bounded)
        score = best[begin] + gain - penalty * (begin > 0)
        place = int(np.argmax(score))
        best[end], previous[end] = score[place], begin[place]
    splits = []
    end = count
    while previous[end]:
        end = int(previous[end])
        splits.append(end)
    return splits[::-1]


def _dispersion(events: Floats, exposure: Floats, bounded: bool) -> float:
    """Variance of adjacent buckets relative to that of the distribution; at least 1.

    Each pair is compared with its own common rate, so that a step affects one pair. Neighbouring pairs are first added
    up in blocks as well: events that come in groups longer than a bucket differ between blocks.
    """
    widest = max(1, len(events) // 12)  # chosen: at least six pairs of blocks
    return max(1.0, *(_pair_dispersion(events, exposure, bounded, width) for width in {1, min(4, widest)}))


def _pair_dispersion(events: Floats, exposure: Floats, bounded: bool, width: int) -> float:
    blocks = len(events) // width
    k = events[: blocks * width].reshape(blocks, width).sum(axis=1)
    n = exposure[: blocks * width].reshape(blocks, width).sum(axis=1)
    both = n[:-1] + n[1:]
    rate = (k[:-1] + k[1:]) / both
    variance = rate * (1.0 / n[:-1] + 1.0 / n[1:])
    if bounded:  # hypergeometric, given the events of the pair
        variance *= (1.0 - rate) * both / np.maximum(both - 1.0, 1.0)
    some = variance > 0
    squares = (k[:-1] / n[:-1] - k[1:] / n[1:])[some] ** 2 / variance[some]
    # A pair counts as three standard deviations at most, since it may be a step itself. Few pairs say little: the
    # estimate starts from 1 with the weight of four pairs.
    return float((np.minimum(squares, 9.0).sum() + 4.0) / (len(squares) + 4.0))
