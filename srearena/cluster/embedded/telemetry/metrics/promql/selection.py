"""Selection of instant and range vectors from the store."""

from __future__ import annotations

import numpy as np

from srearena.cluster.embedded.telemetry.metrics.blocks import Flags, Floats, Integers, missing
from srearena.cluster.embedded.telemetry.metrics.labels import Labels
from srearena.cluster.embedded.telemetry.metrics.promql.errors import QueryError, QueryTimeout
from srearena.cluster.embedded.telemetry.metrics.promql.nodes import Selector
from srearena.cluster.embedded.telemetry.metrics.promql.values import Matrix, Vector, Windows, joined
from srearena.cluster.embedded.telemetry.metrics.store import Frame, MetricStore

MAX_EFFORT = 100e6
"""Samples that may be sorted or fitted window by window. Chosen: some seconds of computation."""
TIMED_OUT = "query timed out in expression evaluation"
TOO_MANY = "query processing would load too many samples into memory in query execution"


class Budget:
    """Remaining budget of a query: cells to load or create, and work on windows."""

    def __init__(self, cells: int) -> None:
        self.left = cells
        self.effort = MAX_EFFORT

    def spend(self, cells: int) -> None:
        self.left -= cells
        if self.left < 0:
            raise QueryError(TOO_MANY)

    def work(self, effort: float) -> None:
        self.effort -= effort
        if self.effort < 0:
            raise QueryTimeout(TIMED_OUT)


def frames(store: MetricStore, selector: Selector, start: int, end: int) -> list[Frame]:
    if len(selector.alternatives) == 1:
        return store.frames(selector.matchers, start, end)
    seen: set[Labels] = set()
    found = []
    for matchers in selector.alternatives:
        for frame in store.frames(matchers, start, end):
            rows = [row for row, labels in enumerate(frame.series) if labels not in seen]
            seen.update(frame.series)
            if rows:
                found.append(Frame([frame.series[row] for row in rows], frame.times, frame.values[rows]))
    return found


def instant(
    store: MetricStore, selector: Selector, at: Integers, lookback: int, budget: Budget, timestamps: bool = False
) -> Vector:
    """The latest sample of each series at each of some times, unless it is too old or the series has gone stale."""
    parts = []
    for frame in frames(store, selector, int(at.min()) - lookback, int(at.max())):
        budget.spend(len(frame.series) * (len(at) + len(frame.times)))
        index = np.searchsorted(frame.times, at, side="right") - 1
        clipped = np.maximum(index, 0)
        fresh = (index >= 0) & (frame.times[clipped] >= at - lookback)
        values: Floats = frame.values[:, clipped]
        present = fresh[None, :] & ~missing(values)
        if timestamps:
            values = np.broadcast_to(frame.times[clipped] / 1000, values.shape)
        parts.append(Vector(frame.series, values, present).pruned())
    parts = [part for part in parts if part.series]
    vector = joined(parts, len(at))
    return vector if len(parts) < 2 else in_label_order(vector)


def in_label_order(vector: Vector) -> Vector:
    return vector.only(sorted(range(len(vector.series)), key=vector.series.__getitem__))


def ranges(store: MetricStore, selector: Selector, span: int, at: Integers, steps: Integers, budget: Budget) -> Matrix:
    """The samples of each series in a window that ends at each of some times."""
    groups: list[Windows] = []
    for frame in frames(store, selector, int(at.min()) - span, int(at.max())):
        budget.spend(len(frame.series) * (len(at) + len(frame.times)))
        groups += windows(frame.series, frame.times, frame.values, ~missing(frame.values), span, at)
    return Matrix(groups, at - span, at, steps, span)


def windows(
    series: list[Labels], times: Integers, values: Floats, present: Flags, span: int, at: Integers
) -> list[Windows]:
    """Groups of series without gaps: those that are present at the same times go together."""
    if present.all():
        return [_windows(series, times, values, span, at)]
    by_pattern: dict[bytes, list[int]] = {}
    for row, pattern in enumerate(np.packbits(present, axis=1)):
        by_pattern.setdefault(pattern.tobytes(), []).append(row)
    groups = []
    for rows in by_pattern.values():
        where = present[rows[0]]
        if where.any():
            members = [series[row] for row in rows]
            groups.append(_windows(members, times[where], values[rows][:, where], span, at))
    return groups


def _windows(series: list[Labels], times: Integers, values: Floats, span: int, at: Integers) -> Windows:
    first = np.searchsorted(times, at - span, side="left")
    last = np.searchsorted(times, at, side="right")
    return Windows(series, times, values, first, last)
