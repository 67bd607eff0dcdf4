"""Annotations of a query's result: warnings and infos, in the real server's words.

An annotation is reported once per query, whatever the number of series and steps that cause it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np

from srearena.cluster.embedded.go_text import float_text, quoted
from srearena.cluster.embedded.telemetry.metrics.blocks import Floats, Integers

LIMIT = 10
"""Warnings and infos of a response, each: the default of the real server."""
COUNTER_SUFFIXES = ("_total", "_sum", "_count", "_bucket")
_MONOTONICITY = (
    "PromQL info: input to histogram_quantile needed to be fixed for monotonicity "
    "(see https://prometheus.io/docs/prometheus/latest/querying/functions/#histogram_quantile)"
)


@dataclass(slots=True)
class Corrections:
    """Buckets of classic histograms whose counts fell, although they are cumulative."""

    first_at: int
    last_at: int
    lowest: float
    highest: float
    difference: float
    count: int

    @property
    def text(self) -> str:
        begin, end = (_rfc3339(at) for at in (self.first_at, self.last_at))
        return (
            f", from buckets {float_text(self.lowest)} to {float_text(self.highest)}, with a max diff of "
            f"{self.difference:.2g}, over {self.count} samples from {begin} to {end}"
        )


def _rfc3339(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(slots=True)
class Annotations:
    """Messages and where in the query their cause begins."""

    _warnings: dict[str, int] = field(default_factory=dict)
    _infos: dict[str, int] = field(default_factory=dict)
    _corrections: Corrections | None = None

    def warn(self, message: str, at: int) -> None:
        self._warnings[f"PromQL warning: {message}"] = at

    def inform(self, message: str, at: int) -> None:
        self._infos[f"PromQL info: {message}"] = at

    def invalid_quantile(self, quantiles: Floats, at: int) -> None:
        """Warn about quantiles outside 0 to 1."""
        if np.isnan(quantiles).any():
            self._quantile(math.nan, at)
        for value in (np.nanmin(quantiles, initial=0.0), np.nanmax(quantiles, initial=1.0)):
            if not 0 <= value <= 1:
                self._quantile(float(value), at)

    def _quantile(self, value: float, at: int) -> None:
        self.warn(f"quantile value should be between 0 and 1, got {float_text(value)}", at)

    def possible_non_counter(self, name: str, at: int) -> None:
        if name and not name.endswith(COUNTER_SUFFIXES):
            ending = "/".join(COUNTER_SUFFIXES)
            self.inform(f"metric might not be a counter, name does not end in {ending}: {quoted(name)}", at)

    def bad_bucket(self, bound: str, at: int) -> None:
        self.warn(f'bucket label "le" is missing or has a malformed value of {quoted(bound)}', at)

    def sort_in_range_query(self, at: int) -> None:
        self.warn("sort is ineffective for range queries since results are always ordered by labels", at)

    def forced_monotonicity(self, times: Integers, bounds: Floats, differences: Floats, at: int) -> None:
        """Buckets were corrected: steps, bounds and by how much, one each."""
        found = Corrections(
            int(times.min()),
            int(times.max()),
            float(bounds.min()),
            float(bounds.max()),
            float(differences.max()),
            len(set(times.tolist())),
        )
        self._infos[_MONOTONICITY] = at
        known = self._corrections
        if known is not None:
            found.first_at, found.last_at = min(known.first_at, found.first_at), max(known.last_at, found.last_at)
            found.lowest, found.highest = min(known.lowest, found.lowest), max(known.highest, found.highest)
            found.difference, found.count = max(known.difference, found.difference), known.count + found.count
        self._corrections = found

    def warnings(self, query: str) -> list[str]:
        return _limited(list(self._positioned(self._warnings, query)), "warning")

    def infos(self, query: str) -> list[str]:
        return _limited(list(self._positioned(self._infos, query)), "info")

    def _positioned(self, messages: dict[str, int], query: str) -> list[str]:
        found = []
        for message, at in messages.items():
            details = self._corrections.text if message == _MONOTONICITY and self._corrections is not None else ""
            found.append(f"{message}{details} ({position(query, at)})")
        return found


def position(query: str, at: int) -> str:
    """Return line and column of a character, as messages name them: columns are bytes."""
    line = query.count("\n", 0, at) + 1
    begin = query.rfind("\n", 0, at) + 1
    return f"{line}:{len(query[begin:at].encode()) + 1}"


def _limited(messages: list[str], kind: str) -> list[str]:
    if len(messages) <= LIMIT:
        return messages
    return [*messages[:LIMIT], f"{len(messages) - LIMIT} more {kind} annotations omitted"]
