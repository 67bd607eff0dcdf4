"""Metrics of language runtimes through their OpenTelemetry SDK: heap, garbage collections, threads, goroutines.

Only instrumented programs have them, and only those that their state supports: memory, requests in progress,
allocation and garbage collection from the traffic engine. Counters start at zero with the process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from srearena.cluster.embedded.telemetry.collectors.collector import Target
from srearena.cluster.embedded.telemetry.metrics.blocks import Block
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore
from srearena.cluster.embedded.traffic.engine import Traffic
from srearena.cluster.embedded.traffic.servers import Instance

INSTANCE = "otel-collector.observe:8890"
_Series = tuple[str, dict[str, str], Callable[[Instance], float]]
_IDLE_THREADS = 24


def _heap(instance: Instance, share: float, live: float) -> float:
    """Bytes of a heap that has a share of the process' memory: a saw tooth from garbage collection to collection."""
    grown = live + (1 - live) * (instance.collections % 1.0)
    return float(int(instance.meter.resident_bytes() * share * grown))


def _resident(instance: Instance) -> float:
    return float(instance.meter.resident_bytes())


_GO: tuple[_Series, ...] = (
    ("go_goroutine_count", {}, lambda one: 8 + round(one.in_flight * 2)),
    ("go_memory_used_bytes", {"go_memory_type": "other"}, lambda one: _heap(one, 1.0, 0.86)),
    ("go_memory_allocated_bytes_total", {}, lambda one: float(int(one.allocated))),
    ("go_memory_gc_count_total", {}, lambda one: float(int(one.collections))),
    ("go_processor_limit", {}, lambda one: float(one.container.host.kernel.cpus)),
)
_JAVA: tuple[_Series, ...] = (
    ("jvm_memory_used_bytes", {"jvm_memory_type": "heap"}, lambda one: _heap(one, 0.6, 0.45)),
    ("jvm_memory_used_bytes", {"jvm_memory_type": "non_heap"}, lambda one: float(int(one.process.memory * 0.4))),
    ("jvm_thread_count", {}, lambda one: _IDLE_THREADS + round(one.in_flight)),
    ("jvm_gc_duration_seconds_count", {}, lambda one: float(int(one.collections))),
    ("jvm_gc_duration_seconds_sum", {}, lambda one: round(one.collection_seconds, 4)),
    ("jvm_cpu_time_seconds_total", {}, lambda one: round(one.meter.cpu_seconds(), 3)),
)
_NODE: tuple[_Series, ...] = (
    ("v8js_memory_heap_used_bytes", {}, lambda one: _heap(one, 0.5, 0.7)),
    ("nodejs_eventloop_utilization_ratio", {}, lambda one: min(1.0, one.meter.wanted_cores)),
)
_PYTHON: tuple[_Series, ...] = (
    ("process_runtime_cpython_memory_bytes", {"type": "rss"}, _resident),
    ("process_runtime_cpython_cpu_time_seconds_total", {"type": "user"}, lambda one: round(one.meter.cpu_seconds(), 3)),
)
_DOTNET: tuple[_Series, ...] = (
    ("dotnet_process_memory_working_set_bytes", {}, _resident),
    ("dotnet_process_cpu_time_seconds_total", {}, lambda one: round(one.meter.cpu_seconds(), 3)),
)
_BY_RUNTIME = {"go": _GO, "java": _JAVA, "node": _NODE, "python": _PYTHON, "dotnet": _DOTNET}


class RuntimeMetricsCollector:
    job = "otel-collector"

    def __init__(self, traffic: Traffic, store: MetricStore) -> None:
        self._traffic = traffic
        self._store = store
        self._blocks: dict[Instance, Block] = {}
        self._target = Target({"job": self.job, "instance": INSTANCE}, f"http://{INSTANCE}/metrics")
        for series in _BY_RUNTIME.values():
            for name, _, _ in series:
                family, kind = _family(name)
                store.describe(family, kind, f"{family.replace('_', ' ').capitalize()}.")

    def targets(self) -> Sequence[Target]:
        return [self._target] if self._blocks else []

    def scrape(self, now: float) -> None:
        living = {
            instance: _BY_RUNTIME[instance.runtime]
            for instance in self._traffic.instances.values()
            if instance.program.traced and instance.runtime in _BY_RUNTIME and instance.program.listen
        }
        for gone in [instance for instance in self._blocks if instance not in living]:
            self._blocks.pop(gone).end(now)
        for instance, series in living.items():
            block = self._blocks.get(instance)
            if block is None:
                block = self._blocks[instance] = self._store.block([_labels(instance, one) for one in series])
            block.append(now, [read(instance) for _, _, read in series])
        self._target.health, self._target.scraped_at = "up", now


def _family(name: str) -> tuple[str, str]:
    """Return the family of a series and its type; a number of threads or goroutines is a gauge, too."""
    duration, mark, part = name.partition("_duration_seconds")
    if mark and part in ("_count", "_sum"):
        return duration + mark, "histogram"
    return name, "counter" if name.endswith("_total") else "gauge"


def _labels(instance: Instance, series: _Series) -> dict[str, str]:
    name, series_labels, _ = series
    return {
        "__name__": name,
        "job": RuntimeMetricsCollector.job,
        "instance": INSTANCE,
        "service_name": instance.name,
        "namespace": instance.namespace,
        "k8s_pod_name": instance.pod,
        **series_labels,
    }
