"""Metrics of a Go process: what client_golang exports about the process and its runtime.

Processor time, memory and start are those of the process; the rest follows from them as in a Go program: the heap
grows from the live heap to twice its size between two garbage collections, and goroutines serve informers and workers.
"""

from __future__ import annotations

from collections.abc import Mapping

from srearena.cluster.embedded.instruments import Fluctuation

GO_VERSION = "go1.24.6"
"""The Go version Kubernetes 1.34 is built with."""
_SERIES: tuple[tuple[str, str, str], ...] = (
    ("process_cpu_seconds_total", "counter", "Processor time of the program."),
    ("process_resident_memory_bytes", "gauge", "Memory of the program."),
    ("process_virtual_memory_bytes", "gauge", "Address space of the program."),
    ("process_start_time_seconds", "gauge", "When the program was started."),
    ("process_open_fds", "gauge", "Open file descriptors."),
    ("process_max_fds", "gauge", "How many there may be."),
    ("go_goroutines", "gauge", "Goroutines that exist."),
    ("go_threads", "gauge", "Threads of the operating system."),
    ("go_memstats_heap_alloc_bytes", "gauge", "Bytes of the heap that are in use."),
    ("go_memstats_heap_inuse_bytes", "gauge", "Bytes of spans in use."),
    ("go_gc_duration_seconds_count", "counter", "Garbage collections."),
    ("go_gc_duration_seconds_sum", "counter", "Time that garbage collections stopped the program."),
    ("go_info", "gauge", "The Go version."),
)
METRICS = (
    *(row for row in _SERIES if "gc_duration" not in row[0]),
    ("go_gc_duration_seconds", "summary", "Pauses of garbage collections."),
)
ROWS: list[Mapping[str, str]] = [
    {"__name__": name, **({"version": GO_VERSION} if name == "go_info" else {})} for name, _, _ in _SERIES
]
_FORCED_COLLECTION = 120.0
"""Seconds after which the runtime collects garbage in any case."""
_COLLECTION_CPU = 1.4
"""Seconds of processor time between two collections: allocation is proportional to work."""
_PAUSE = 0.00018
"""Seconds that a collection stops the program."""
_ADDRESS_SPACE = 1_250_000_000
_MAX_FDS = 1_048_576


class GoProcess:
    """The runtime of one process, by a key that is its own (a container's ID)."""

    __slots__ = ("_fluctuation",)

    def __init__(self, key: str) -> None:
        self._fluctuation = Fluctuation(key)

    def values(self, now: float, started: float, cpu: float, memory: float, *, workers: int) -> list[float]:
        """Return the values of `ROWS`; `workers` are informers, control loops and connections of the program."""
        wave = self._fluctuation.at(now)
        collections = int((now - started) / _FORCED_COLLECTION + cpu / _COLLECTION_CPU)
        live = 0.34 * memory
        # A saw tooth: the share of the way to the next collection.
        grown = ((now - started) / _FORCED_COLLECTION + cpu / _COLLECTION_CPU) % 1.0
        heap = live * (1 + grown)
        return [
            int(cpu * 100) / 100,  # of /proc/PID/stat, in clock ticks
            float(int(memory)),
            float(_ADDRESS_SPACE + int(memory) // 4096 * 4096),
            started,
            float(9 + workers + round(2 * (1 + wave))),
            float(_MAX_FDS),
            float(28 + 6 * workers + round((4 + 0.1 * workers) * (1 + wave))),
            float(8 + min(workers, 16) // 2),
            float(int(heap)),
            float(int(heap * 1.06) // 8192 * 8192),
            float(collections),
            collections * _PAUSE,
            1.0,
        ]
