"""The telemetry pipeline of one cluster: stores, collectors, and the scrape rounds.

Metrics are scraped and logs are shipped at fixed intervals of virtual time; spans and events are pushed. Every round
happens at one instant, in the order in which the collectors were added.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from srearena.cluster.embedded.kubelet.nodes import Nodes
from srearena.cluster.embedded.telemetry.collectors.collector import Collector, Target
from srearena.cluster.embedded.telemetry.logs.events import EventLog
from srearena.cluster.embedded.telemetry.logs.shipper import Shipper
from srearena.cluster.embedded.telemetry.logs.store import LogStore
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore
from srearena.cluster.embedded.telemetry.observability.receivers import SpanReceivers
from srearena.cluster.embedded.telemetry.self_metrics import self_metrics_collectors
from srearena.cluster.embedded.telemetry.traces.store import SpanStore
from srearena.cluster.embedded.world import World

SCRAPE_SECONDS = 15.0
"""Scrape interval; common in practice, and that of the packaged alert rules."""
_ROUNDS_BETWEEN_SWEEPS = 40
"""Rounds between removals of expired samples. Chosen: every ten minutes, since a removal visits all series."""


class Telemetry:
    """Stores and their sources. Created before the first machine starts, since it follows every container."""

    def __init__(self, world: World, nodes: Nodes) -> None:
        self.clock = world.clock
        self.metrics = MetricStore()
        self.spans = SpanStore()
        self.receivers = SpanReceivers()
        self.logs = LogStore(detects_levels=True)
        self.shipper = Shipper(self.logs, world.clock)
        self.events = EventLog(world, self.logs)
        self.collectors: list[Collector] = [*self_metrics_collectors(self.metrics, self.logs, self.spans)]
        self._rounds = 0
        nodes.on_container = self.shipper.follow

    def add(self, collectors: Iterable[Collector]) -> None:
        self.collectors.extend(collectors)

    def targets(self) -> Iterator[Target]:
        for collector in self.collectors:
            yield from collector.targets()

    def start(self) -> None:
        """Start the rounds, the first at the next multiple of the interval."""
        self.clock.at((self.clock.now // SCRAPE_SECONDS + 1) * SCRAPE_SECONDS, self._round)

    def _round(self) -> None:
        now = self.clock.now
        self.clock.at(now + SCRAPE_SECONDS, self._round)
        for collector in self.collectors:
            collector.scrape(now)
        self.shipper.round()
        self._rounds += 1
        if not self._rounds % _ROUNDS_BETWEEN_SWEEPS:
            self.metrics.forget(now)
