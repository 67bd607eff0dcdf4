"""The targets of a job, and the metrics that Prometheus itself records about each scrape, such as `up`.

A scrape takes the way over the network and the time in which the exporter makes its page: so long per page and per
sample, around which it moves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from srearena.cluster.embedded.instruments import Fluctuation
from srearena.cluster.embedded.telemetry.collectors.collector import Target
from srearena.cluster.embedded.telemetry.collectors.series_buffer import SeriesBuffer
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore

_ABOUT_SCRAPES = {
    "up": "1 if the last scrape succeeded.",
    "scrape_duration_seconds": "How long the scrape took.",
    "scrape_samples_scraped": "How many samples the target showed.",
    "scrape_samples_post_metric_relabeling": "Samples left after relabelling.",
}


_PAGE_SECONDS = {
    "/metrics/cadvisor": 0.018,
    "node-exporter": 0.011,
    "mysqld-exporter": 0.012,
    "postgres-exporter": 0.014,
    "mongodb-exporter": 0.009,
    "redis-exporter": 0.0025,
    "kafka-exporter": 0.006,
}
"""By path or job: what an exporter needs to read its source (cgroups, /proc, a server). Chosen: usual magnitudes."""
_PLAIN_SECONDS = 0.0012
"""Of a program that prints its own counters."""
_SAMPLE_SECONDS = 4e-6
"""To print and compress one sample. Chosen: what client_golang takes on a core of a few GHz."""
_VARIATION = 0.3


class TargetRegistry:
    def __init__(self, store: MetricStore) -> None:
        self._buffer = SeriesBuffer(store)
        self._targets: dict[str, Target] = {}
        self._fluctuations: dict[str, Fluctuation] = {}
        self._page_seconds: dict[str, float] = {}
        for name, help in _ABOUT_SCRAPES.items():
            store.describe(name, "gauge", help)

    def targets(self) -> Sequence[Target]:
        return [self._targets[key] for key in sorted(self._targets)]

    def add(self, key: str, labels: Mapping[str, str], url: str) -> None:
        """Add a discovered target; an existing one with that key is kept."""
        if key in self._targets:
            return
        address = url.partition("://")[2].partition("/")[0]
        path = url[url.index(address) + len(address) :]
        discovered = {
            "__address__": address,
            "__metrics_path__": path,
            "__scheme__": url.partition(":")[0],
            "job": labels["job"],
        }
        self._targets[key] = Target(labels, url, discovered)
        self._fluctuations[key] = Fluctuation(url)
        self._page_seconds[key] = _PAGE_SECONDS.get(path) or _PAGE_SECONDS.get(labels["job"], _PLAIN_SECONDS)
        self._buffer.put(key, [{"__name__": name, **labels} for name in _ABOUT_SCRAPES], [0.0] * len(_ABOUT_SCRAPES))

    def remove(self, key: str) -> None:
        """Remove a target."""
        if self._targets.pop(key, None) is not None:
            self._buffer.drop(key)
            del self._fluctuations[key], self._page_seconds[key]

    def keys(self) -> list[str]:
        return list(self._targets)

    def record_scrape(self, key: str, now: float, samples: int, seconds: float, error: str = "") -> None:
        """Record the result of a scrape, to whose time on the network that of the exporter is added."""
        target = self._targets[key]
        target.scraped_at = now
        if not error:
            page = self._page_seconds[key] + _SAMPLE_SECONDS * samples
            seconds += page * (1 + _VARIATION * self._fluctuations[key].at(now))
        if target.samples != samples or target.seconds != seconds or target.error != error or not target.is_scraped:
            target.health = "down" if error else "up"
            target.error, target.seconds, target.samples = error, seconds, samples
            self._buffer.set(key, (0.0 if error else 1.0, seconds, samples, samples))

    def write(self, now: float) -> None:
        self._buffer.write(now)
