"""The targets of a job, and what Prometheus itself notes about each scrape: `up` and its kin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from srearena.cluster.embedded.telemetry.collectors.book import Book
from srearena.cluster.embedded.telemetry.collectors.collector import Target
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore

_ABOUT_SCRAPES = {
    "up": "1 where the last scrape worked.",
    "scrape_duration_seconds": "How long the scrape took.",
    "scrape_samples_scraped": "How many samples the target showed.",
    "scrape_samples_post_metric_relabeling": "How many of them were kept.",
}


class Roster:
    def __init__(self, store: MetricStore) -> None:
        self._book = Book(store)
        self._targets: dict[str, Target] = {}
        for name, help in _ABOUT_SCRAPES.items():
            store.describe(name, "gauge", help)

    def targets(self) -> Sequence[Target]:
        return [self._targets[key] for key in sorted(self._targets)]

    def add(self, key: str, labels: Mapping[str, str], url: str) -> None:
        """A target was discovered; one that is known under that key stays as it is."""
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
        self._book.put(key, [{"__name__": name, **labels} for name in _ABOUT_SCRAPES], [0.0] * len(_ABOUT_SCRAPES))

    def remove(self, key: str) -> None:
        """A target is no more."""
        if self._targets.pop(key, None) is not None:
            self._book.drop(key)

    def keys(self) -> list[str]:
        return list(self._targets)

    def note(self, key: str, now: float, samples: int, seconds: float, error: str = "") -> None:
        """How a scrape went."""
        target = self._targets[key]
        target.scraped_at = now
        if target.samples != samples or target.seconds != seconds or target.error != error or not target.known:
            target.health = "down" if error else "up"
            target.error, target.seconds, target.samples = error, seconds, samples
            self._book.set(key, (0.0 if error else 1.0, seconds, samples, samples))

    def write(self, now: float) -> None:
        self._book.write(now)
