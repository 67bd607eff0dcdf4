"""What Loki, Jaeger and Prometheus say of themselves: how much they took in, keep, and had to let go.

A flood of lines or spans is bounded by the stores; these counters are where it can be seen and alerted on.
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
"""Name, type, help, labels, and where the value comes from."""

LIMIT = "stream_limit"


class OwnCollector:
    """One program of the telemetry, scraped by itself or its neighbour."""

    def __init__(self, job: str, instance: str, store: MetricStore, rows: Sequence[Row]) -> None:
        self.job = job
        labels = {"job": job, "instance": instance}
        self._target_registry = TargetRegistry(store)
        self._target_registry.add(job, labels, f"http://{instance}/metrics")
        self._buffer = SeriesBuffer(store, labels)
        self._reads = [read for *_, read in rows]
        for name, kind, help, _, _ in rows:
            store.describe(name, kind, help)
        names = [{"__name__": name, **own} for name, _, _, own, _ in rows]
        self._buffer.put("", names, [0.0] * len(rows))

    def scrape(self, now: float) -> None:
        self._buffer.set("", [float(read()) for read in self._reads])
        self._target_registry.record_scrape(self.job, now, self._buffer.write(now), 0.001)
        self._target_registry.write(now)

    def targets(self) -> Sequence[Target]:
        return self._target_registry.targets()


def own_collectors(metrics: MetricStore, logs: LogStore, spans: SpanStore) -> list[OwnCollector]:
    discarded = {"reason": LIMIT}
    return [
        OwnCollector(
            "prometheus",
            "prometheus:9090",
            metrics,
            [("prometheus_tsdb_head_series", "gauge", "Series in the head block.", {}, lambda: len(metrics))],
        ),
        OwnCollector(
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
        OwnCollector(
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
                    "Spans that had to make room for younger ones.",
                    {},
                    lambda: spans.dropped_spans,
                ),
            ],
        ),
    ]
