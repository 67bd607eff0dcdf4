"""Requests, errors and durations per service and operation, as OpenTelemetry's span metrics connector exports them.

Counters belong to a service, not to a pod. A series appears with the first span it counts: errors have none while
nothing fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from srearena.cluster.embedded.telemetry.collectors.collector import Target
from srearena.cluster.embedded.telemetry.metrics.blocks import Block
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore
from srearena.cluster.embedded.traffic.counters import BOUNDS, SpanCounters, SpanKey

CALLS = "traces_span_metrics_calls_total"
DURATION = "traces_span_metrics_duration_milliseconds"
INSTANCE = "otel-collector.observe:8889"
_GOOD, _BAD = "STATUS_CODE_UNSET", "STATUS_CODE_ERROR"


@dataclass(slots=True)
class _Batch:
    """Rows that appeared at the same scrape, and their series."""

    rows: np.ndarray
    block: Block
    failed: bool


class SpanMetricsCollector:
    job = "otel-spanmetrics"

    def __init__(self, counters: SpanCounters, store: MetricStore) -> None:
        self._counters = counters
        self._store = store
        self._batches: list[_Batch] = []
        self._succeeded = np.zeros(0, dtype=bool)
        self._failed = np.zeros(0, dtype=bool)
        self._target = Target({"job": self.job, "instance": INSTANCE}, f"http://{INSTANCE}/metrics")
        store.describe(CALLS, "counter", "Spans that ended, by service, operation, kind and status.")
        store.describe(DURATION, "histogram", "How long spans lasted.", "milliseconds")

    def targets(self) -> Sequence[Target]:
        return [self._target] if self._batches else []

    def scrape(self, now: float) -> None:
        self._succeeded = self._add_new_series(self._counters.good, self._succeeded, failed=False)
        self._failed = self._add_new_series(self._counters.bad, self._failed, failed=True)
        for batch in self._batches:
            batch.block.append(now, self._values(batch))
        self._target.health, self._target.scraped_at = "up", now

    def _add_new_series(self, counts: np.ndarray, exported: np.ndarray, *, failed: bool) -> np.ndarray:
        """Add series for rows that count at least one span and had none before."""
        size = len(self._counters.keys)
        if not size:
            return exported
        counted = counts[:size] >= 1
        before = np.zeros(size, dtype=bool)
        before[: len(exported)] = exported
        new_rows = np.flatnonzero(counted & ~before)
        if len(new_rows):
            labels = [one for row in new_rows for one in _series(self._counters.keys[row], failed)]
            self._batches.append(_Batch(new_rows, self._store.block(labels), failed))
        return before | counted

    def _values(self, batch: _Batch) -> np.ndarray:
        counters, rows = self._counters, batch.rows
        if batch.failed:
            calls, sums, buckets = counters.bad[rows], counters.bad_seconds[rows], counters.bad_buckets[rows]
        else:
            calls, sums, buckets = counters.good[rows], counters.seconds[rows], counters.buckets[rows]
        whole = np.floor(calls)[:, None]
        within = np.minimum(np.floor(buckets), whole)
        columns = [whole, np.round(sums[:, None] * 1000, 3), whole, within, whole]
        values: np.ndarray = np.concatenate(columns, axis=1).ravel()
        return values


def _series(key: SpanKey, failed: bool) -> list[dict[str, str]]:
    """Return the series of one row, in the order of `_values`."""
    common = {
        "job": SpanMetricsCollector.job,
        "instance": INSTANCE,
        "namespace": key.namespace,
        "service_name": key.service,
        "span_name": key.span,
        "span_kind": f"SPAN_KIND_{key.kind.upper()}",
        "status_code": _BAD if failed else _GOOD,
    }
    bounds = [*(f"{bound * 1000:g}" for bound in BOUNDS), "+Inf"]
    return [
        {"__name__": CALLS, **common},
        {"__name__": f"{DURATION}_sum", **common},
        {"__name__": f"{DURATION}_count", **common},
        *({"__name__": f"{DURATION}_bucket", **common, "le": bound} for bound in bounds),
    ]
