"""rate, increase, delta and related functions, with Prometheus' extrapolation."""

from __future__ import annotations

import numpy as np

from srearena.cluster.embedded.telemetry.metrics.blocks import Flags, Floats, Integers
from srearena.cluster.embedded.telemetry.metrics.promql.values import Matrix, Windows

Result = tuple[Floats, Flags]


def _lost(values: Floats, first: Integers, last: Integers) -> Floats | None:
    """Return the sum of counter values before resets inside each window."""
    fell = values[:, 1:] < values[:, :-1]
    if not fell.any():
        return None
    reached = np.zeros((values.shape[0], values.shape[1] + 1))
    reached[:, 1:-1] = np.where(fell, values[:, :-1], 0.0)
    # Windows overlap, so `reduceat` gets begin and end of each in turn.
    edges = np.stack([first + 1, last + 1], axis=1).ravel()
    lost: Floats = np.add.reduceat(reached, edges, axis=1)[:, ::2]
    return lost


def extrapolated(matrix: Matrix, group: Windows, counter: bool, per_second: bool) -> Result:
    counts = group.counts
    enough = counts >= 2
    first, last = np.where(enough, group.first, 0), np.where(enough, group.last - 1, 0)
    begin, finish = group.values[:, first], group.values[:, last]
    change = finish - begin
    if counter:
        lost = _lost(group.values, first, last)
        if lost is not None:
            change = change + lost
    to_start = (group.times[first] - matrix.starts) / 1000
    to_end = (matrix.ends - group.times[last]) / 1000
    sampled = np.where(enough, (group.times[last] - group.times[first]) / 1000, 1.0)
    average = sampled / np.maximum(counts - 1, 1)
    threshold = average * 1.1
    before: Floats = to_start
    if matrix.version > 2:
        before = np.where(to_start < threshold, to_start, average / 2)
    if counter:
        # A counter is never negative: do not extrapolate below zero.
        with np.errstate(all="ignore"):
            to_zero = sampled * (begin / change)
        before = np.where((change > 0) & (begin >= 0) & (to_zero < before), to_zero, before)
    if matrix.version == 2:
        before = np.where(before < threshold, before, average / 2)
    interval = sampled + before
    interval = interval + np.where(to_end < threshold, to_end, average / 2)
    factor = interval / sampled
    if per_second:
        factor = factor / (matrix.span / 1000)
    return change * factor, enough


def instantaneous(group: Windows, per_second: bool) -> Result:
    """irate and idelta: the last two samples of the window."""
    enough = group.counts >= 2
    last = np.where(enough, group.last - 1, 1 if len(group.times) > 1 else 0)
    previous = np.maximum(last - 1, 0)
    newer, older = group.values[:, last], group.values[:, previous]
    if not per_second:
        return newer - older, enough
    change = np.where(newer < older, newer, newer - older)
    elapsed = (group.times[last] - group.times[previous]) / 1000
    return change / np.where(elapsed > 0, elapsed, 1.0), enough & (elapsed > 0)


def transitions(group: Windows, resets: bool) -> Result:
    """Count changes, or resets, of the value."""
    before, after = group.values[:, :-1], group.values[:, 1:]
    if resets:
        happened = after < before
    else:
        happened = (after != before) & ~(np.isnan(after) & np.isnan(before))
    total = np.zeros(group.values.shape, dtype=np.int64)
    np.cumsum(happened, axis=1, out=total[:, 1:])
    some = group.counts >= 1
    first, last = np.where(some, group.first, 0), np.where(some, group.last - 1, 0)
    return (total[:, last] - total[:, first]).astype(np.float64), some
