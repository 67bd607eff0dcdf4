"""Selection of instant and range vectors from the store."""

from __future__ import annotations

import numpy as np

from srearena.cluster.embedded.telemetry.metrics.blocks import Flags, Floats, Integers, missing
from srearena.cluster.embedded.telemetry.metrics.labels import Labels
from srearena.cluster.embedded.telemetry.metrics.promql.errors import QueryError, QueryTimeout
from srearena.cluster.embedded.telemetry.metrics.promql.nodes import Selector
from srearena.cluster.embedded.telemetry.metrics.promql.values import Matrix, Vector, Windows, joined
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore

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


def instant(
    store: MetricStore, selector: Selector, at: Integers, lookback: int, budget: Budget, timestamps: bool = False
) -> Vector:
    """The latest sample of each series at each of some times, unless it is older than the lookback or stale."""
    if len(at) == 1:
        return _at_instant(store, selector, int(at[0]), lookback, budget, timestamps)
    parts = []
    for frame in store.frames(selector.matchers, int(at.min()) - lookback, int(at.max())):
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


def _at_instant(
    store: MetricStore, selector: Selector, at: int, lookback: int, budget: Budget, timestamps: bool
) -> Vector:
    found = store.latest(selector.matchers, at - lookback, at)
    budget.spend(len(found.series))
    present = (found.times >= at - lookback) & ~missing(found.values)
    values = found.times / 1000 if timestamps else found.values
    return Vector(found.series, values[:, None], present[:, None]).pruned()


def in_label_order(vector: Vector) -> Vector:
    return vector.only(sorted(range(len(vector.series)), key=vector.series.__getitem__))


def ranges(
    store: MetricStore, selector: Selector, span: int, opened: int, at: Integers, steps: Integers, budget: Budget
) -> Matrix:
    """The samples of each series in a window that ends at each of some times, `opened` after its left end."""
    groups: list[Windows] = []
    for frame in store.frames(selector.matchers, int(at.min()) - span + opened, int(at.max())):
        budget.spend(len(frame.series) * (len(at) + len(frame.times)))
        groups += windows(frame.series, frame.times, frame.values, ~missing(frame.values), span, opened, at)
    return Matrix(groups, at - span, at, steps, span, 3 if opened else 2)


def windows(
    series: list[Labels], times: Integers, values: Floats, present: Flags, span: int, opened: int, at: Integers
) -> list[Windows]:
    """Groups of series without gaps: those that are present at the same times go together."""
    if present.all():
        return [_windows(series, times, values, span - opened, at)]
    by_pattern: dict[bytes, list[int]] = {}
    for row, pattern in enumerate(np.packbits(present, axis=1)):
        by_pattern.setdefault(pattern.tobytes(), []).append(row)
    groups = []
    for rows in by_pattern.values():
        where = present[rows[0]]
        if where.any():
            members = [series[row] for row in rows]
            groups.append(_windows(members, times[where], values[rows][:, where], span - opened, at))
    return groups


def _windows(series: list[Labels], times: Integers, values: Floats, span: int, at: Integers) -> Windows:
    first = np.searchsorted(times, at - span, side="left")
    last = np.searchsorted(times, at, side="right")
    return Windows(series, times, values, first, last)
