"""Instruments of components: histograms of what they did, and smooth fluctuations of what they use.

Components observe while they work; exporters read when they are scraped. Where the simulator does a piece of work in
no time (an API request, a sync of proxy rules), its number is real and its duration follows a log-normal distribution:
the buckets get their expected share, so that no random number is drawn and equal worlds have equal series.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from math import cos, erf, exp, log, pi, sin, sqrt

_TINY = 1e-9
"""Above the rounding error of sums of shares."""


class Histogram:
    """A histogram of Prometheus: cumulative buckets, sum and count."""

    __slots__ = ("_buckets", "_median", "_shares", "_spread", "bounds", "count", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        """Upper bounds, without +Inf."""
        self.count = 0
        self.sum = 0.0
        self._buckets = [_TINY] * len(self.bounds)
        """Observations up to each bound; fractions are kept until they make a whole."""
        self._median = self._spread = 0.0
        self._shares: tuple[float, ...] = ()
        """Of the last distribution: it seldom changes."""

    def observe(self, value: float, number: int = 1) -> None:
        self.count += number
        self.sum += value * number
        for place in range(bisect_left(self.bounds, value), len(self.bounds)):
            self._buckets[place] += number

    def observe_spread(self, number: int, median: float, spread: float = 0.5) -> None:
        """Add observations that are distributed log-normally around a median; `spread` is sigma."""
        if number <= 0:
            return
        if median != self._median or spread != self._spread:
            self._median, self._spread = median, spread
            self._shares = _shares(self.bounds, median, spread)
        self.count += number
        self.sum += number * median * exp(spread * spread / 2)
        self._buckets = [amount + number * share for amount, share in zip(self._buckets, self._shares, strict=True)]

    def values(self) -> list[float]:
        """Return the cumulative buckets up to +Inf, then sum and count."""
        return [*map(int, self._buckets), self.count, self.sum, self.count]


@lru_cache(maxsize=1024)
def _shares(bounds: tuple[float, ...], median: float, spread: float) -> tuple[float, ...]:
    """Return the share of a log-normal distribution below each bound."""
    return tuple((1 + erf(log(bound / median) / (spread * sqrt(2)))) / 2 for bound in bounds)


def bucket_labels(bounds: Sequence[float]) -> list[str]:
    """Return the values of the label `le`, as Go programs print them."""
    return [*(f"{bound:g}" for bound in bounds), "+Inf"]


class Fluctuation:
    """A smooth deviation from a steady value: two slow waves whose periods and phases follow from a key.

    Computed when read, without state: the same key gives the same curve in every world, whatever was read before.
    """

    __slots__ = ("_long", "_long_phase", "_short", "_short_phase")

    def __init__(self, key: str) -> None:
        digest = blake2b(key.encode(), digest_size=8).digest()
        # Periods of 3 to 9 minutes and of 40 to 100 seconds: short against an incident, long against a scrape.
        self._long = 2 * pi / (180 + 360 * digest[0] / 255)
        self._short = 2 * pi / (40 + 60 * digest[1] / 255)
        self._long_phase = 2 * pi * int.from_bytes(digest[2:4]) / 65536
        self._short_phase = 2 * pi * int.from_bytes(digest[4:6]) / 65536

    def at(self, time: float) -> float:
        """Return the deviation at a time, between -1 and 1."""
        return 0.65 * sin(self._long * time + self._long_phase) + 0.35 * sin(self._short * time + self._short_phase)

    def integral(self, start: float, end: float) -> float:
        """Return the integral of the deviation over an interval, in seconds."""
        return 0.65 / self._long * (
            cos(self._long * start + self._long_phase) - cos(self._long * end + self._long_phase)
        ) + 0.35 / self._short * (
            cos(self._short * start + self._short_phase) - cos(self._short * end + self._short_phase)
        )
