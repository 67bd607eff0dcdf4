"""Span counters: requests, errors and durations per service, operation and kind of span.

Rows outlive fluid models and pods: a counter belongs to the service and continues when a pod is replaced, as it does in
a collector that derives metrics from spans. Rows are looked up once per fluid model; an interval is a few array
additions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from srearena.cluster.embedded.traffic.durations import Array, shapes_and_scales, shares_within
from srearena.cluster.embedded.traffic.fluid_model import FluidModel
from srearena.cluster.embedded.traffic.outcomes import ERROR, OK, REFUSED, TIMEOUT
from srearena.cluster.embedded.traffic.servers import Instance
from srearena.cluster.embedded.traffic.span_names import call_span, node_span

BOUNDS = np.array([2, 4, 6, 8, 10, 50, 100, 200, 400, 800, 1000, 1400, 2000, 5000, 10_000, 15_000]) / 1000
"""Upper bounds of the histogram, in seconds: the defaults of OpenTelemetry's span metrics connector."""
MAX_ROWS = 20_000
"""Chosen: bounds memory; the largest application here has some thousand rows."""


class SpanKey(NamedTuple):
    service: str
    span: str
    kind: str
    namespace: str


@dataclass(slots=True)
class _RowIndexes:
    """The rows in which nodes and calls of a fluid model are counted, and which of them are counted at all."""

    nodes: np.ndarray
    node_rows: np.ndarray
    calls: np.ndarray
    call_rows: np.ndarray


class SpanCounters:
    """Per key: successful and failed calls, the sum of seconds, and calls within each bound."""

    def __init__(self) -> None:
        self.keys: list[SpanKey] = []
        self._row_by_key: dict[SpanKey, int] = {}
        self.good = np.zeros(64)
        self.bad = np.zeros(64)
        self.seconds = np.zeros(64)
        self.bad_seconds = np.zeros(64)
        self.buckets = np.zeros((64, len(BOUNDS)))
        self.bad_buckets = np.zeros((64, len(BOUNDS)))
        self.dropped = 0
        """Keys beyond the limit of rows."""

    def _row(self, key: SpanKey) -> int:
        found = self._row_by_key.get(key)
        if found is None:
            if len(self.keys) >= MAX_ROWS:
                self.dropped += 1
                return -1
            found = self._row_by_key[key] = len(self.keys)
            self.keys.append(key)
            if found >= len(self.good):
                self._grow()
        return found

    def _grow(self) -> None:
        size = len(self.good)
        self.good, self.bad, self.seconds, self.bad_seconds = (
            np.concatenate([array, np.zeros(size)]) for array in (self.good, self.bad, self.seconds, self.bad_seconds)
        )
        more = np.zeros((size, len(BOUNDS)))
        self.buckets = np.concatenate([self.buckets, more])
        self.bad_buckets = np.concatenate([self.bad_buckets, more])

    def rows_of(self, fluid: FluidModel) -> _RowIndexes:
        nodes, node_rows, calls, call_rows = [], [], [], []
        for node in fluid.graph.nodes:
            if isinstance(node.server, Instance) and node.server.program.traced and node.operation is not None:
                name = node_span(node)
                row = (
                    self._row(SpanKey(node.server.name, name, node.operation.span_kind, node.server.namespace))
                    if name
                    else -1
                )
                if row >= 0:
                    nodes.append(node.index)
                    node_rows.append(row)
        for call in fluid.graph.calls:
            instance = call.target.instance
            name = call_span(call) if instance.program.traced else ""
            if name:
                kind = "producer" if call.step.publish is not None else "client"
                row = self._row(SpanKey(instance.name, name, kind, instance.namespace))
                if row >= 0:
                    calls.append(call.index)
                    call_rows.append(row)
        as_indexes = (np.array(values, dtype=np.intp) for values in (nodes, node_rows, calls, call_rows))
        return _RowIndexes(*as_indexes)

    def count(self, fluid: FluidModel, rows: _RowIndexes, seconds: float) -> None:
        """Add the requests of an interval: of a server those that ended, of a client those that it made."""
        n, c = rows.nodes, rows.calls
        ended = fluid.completed[n] + fluid.refused[n] + fluid.abandoned[n]
        rates = np.concatenate([ended, fluid.call_rates[c]]) * seconds
        places = np.concatenate([rows.node_rows, rows.call_rows])
        nodes, calls = fluid.node_outcomes, fluid.call_outcomes
        good = rates * np.concatenate([nodes.share[OK, n], calls.share[OK, c]])
        np.add.at(self.good, places, good)
        means = np.concatenate([nodes.mean[OK, n], calls.mean[OK, c]])
        np.add.at(self.seconds, places, good * means)
        variances = np.concatenate([nodes.variance[OK, n], calls.variance[OK, c]])
        np.add.at(self.buckets, places, _within(means, variances) * good[:, None])
        if not (nodes.share[ERROR:].any() or calls.share[ERROR:].any()):
            return
        for outcome in (ERROR, REFUSED, TIMEOUT):
            bad = rates * np.concatenate([nodes.share[outcome, n], calls.share[outcome, c]])
            some = np.flatnonzero(bad > 0)
            if len(some):
                bad, where = bad[some], places[some]
                means = np.concatenate([nodes.mean[outcome, n], calls.mean[outcome, c]])[some]
                variances = np.concatenate([nodes.variance[outcome, n], calls.variance[outcome, c]])[some]
                np.add.at(self.bad, where, bad)
                np.add.at(self.bad_seconds, where, bad * means)
                np.add.at(self.bad_buckets, where, _within(means, variances) * bad[:, None])

    def quantile(self, row: int, share: float) -> float:
        """Return the duration within which that share of calls ended, from the buckets."""
        total = self.good[row] + self.bad[row]
        reached = np.searchsorted(self.buckets[row] + self.bad_buckets[row], share * total)
        return float(BOUNDS[min(int(reached), len(BOUNDS) - 1)])


def _within(means: Array, variances: Array) -> Array:
    return shares_within(BOUNDS, *shapes_and_scales(means, variances))


__all__ = ["BOUNDS", "Array", "SpanCounters", "SpanKey"]
