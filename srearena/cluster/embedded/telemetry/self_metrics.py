"""Metrics of Loki, Jaeger and Prometheus themselves: what they received, store and dropped.

The stores bound a flood of lines or spans; these counters make it visible to queries and alerts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from srearena.cluster.embedded.telemetry.collectors.collector import Target
from srearena.cluster.embedded.telemetry.collectors.series_buffer import SeriesBuffer
from srearena.cluster.embedded.telemetry.collectors.target_registry import TargetRegistry
from srearena.cluster.embedded.telemetry.logs.store import LogStore
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore
from srearena.cluster.embedded.telemetry.traces.store import SpanStore

Row = tuple[str, str, str, dict[str, str], Callable[[], float]]
"""Name, type, help, labels, and the source of the value."""

LIMIT = "stream_limit"


class SelfMetricsCollector:
    """Collector of one program of the telemetry stack."""

    def __init__(self, job: str, instance: str, store: MetricStore, rows: Sequence[Row]) -> None:
        self.job = job
        labels = {"job": job, "instance": instance}
        self._target_registry = TargetRegistry(store)
        self._target_registry.add(job, labels, f"http://{instance}/metrics")
        self._buffer = SeriesBuffer(store, labels)
        self._reads = [read for *_, read in rows]
        for name, kind, help, _, _ in rows:
            store.describe(name, kind, help)
        names = [{"__name__": name, **labels} for name, _, _, labels, _ in rows]
        self._buffer.put("", names, [0.0] * len(rows))

    def scrape(self, now: float) -> None:
        self._buffer.set("", [float(read()) for read in self._reads])
        self._target_registry.record_scrape(self.job, now, self._buffer.write(now), 0.001)
        self._target_registry.write(now)

    def targets(self) -> Sequence[Target]:
        return self._target_registry.targets()


def self_metrics_collectors(metrics: MetricStore, logs: LogStore, spans: SpanStore) -> list[SelfMetricsCollector]:
    discarded = {"reason": LIMIT}
    return [
        SelfMetricsCollector(
            "prometheus",
            "prometheus:9090",
            metrics,
            [("prometheus_tsdb_head_series", "gauge", "Series in the head block.", {}, lambda: len(metrics))],
        ),
        SelfMetricsCollector(
            "loki",
            "loki:3100",
            metrics,
            [
                ("loki_ingester_memory_streams", "gauge", "Streams in memory.", {}, lambda: logs.stream_count),
                (
                    "loki_distributor_lines_received_total",
                    "counter",
                    "Lines received.",
                    {},
                    lambda: logs.received_lines,
                ),
                (
                    "loki_discarded_samples_total",
                    "counter",
                    "Lines that were discarded.",
                    discarded,
                    lambda: logs.dropped_lines,
                ),
                (
                    "loki_discarded_bytes_total",
                    "counter",
                    "Bytes of lines that were discarded.",
                    discarded,
                    lambda: logs.dropped_bytes,
                ),
            ],
        ),
        SelfMetricsCollector(
            "jaeger",
            "jaeger:14269",
            metrics,
            [
                (
                    "jaeger_collector_spans_received_total",
                    "counter",
                    "Spans received.",
                    {},
                    lambda: spans.spans + spans.dropped_spans,
                ),
                (
                    "jaeger_collector_spans_dropped_total",
                    "counter",
                    "Spans dropped in favour of younger ones.",
                    {},
                    lambda: spans.dropped_spans,
                ),
            ],
        ),
    ]
