"""Base of exporters that run on every node: one target per node, up or down.

A node whose agent does not respond is `up == 0` and its series end; new ones begin when it responds again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from srearena.cluster.embedded.kubelet.kubelet import Kubelet
from srearena.cluster.embedded.kubelet.nodes import Nodes
from srearena.cluster.embedded.machine.machine import Machine
from srearena.cluster.embedded.telemetry.collectors.collector import Pace, Target
from srearena.cluster.embedded.telemetry.collectors.scraper import Scraper, scrape_exchange
from srearena.cluster.embedded.telemetry.collectors.series_buffer import SeriesBuffer
from srearena.cluster.embedded.telemetry.collectors.target_registry import TargetRegistry
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore

Description = tuple[str, str, str]
"""Name, type and help of a metric."""


class NodeJob(ABC):
    """Subclasses set the class attributes and implement `fill`."""

    job = ""
    port = 0
    scheme = "http"
    path = "/metrics"
    metrics: Sequence[Description] = ()
    interval = 0.0
    """Seconds between two scrapes; 0 for every round."""

    def __init__(self, nodes: Nodes, scraper: Scraper, store: MetricStore) -> None:
        self.nodes = nodes
        self._scraper = scraper
        self._store = store
        self._target_registry = TargetRegistry(store)
        self._buffers: dict[str, SeriesBuffer] = {}
        self._labels: dict[str, Mapping[str, str]] = {}
        """By node: the labels of its target."""
        self._discovered: dict[str, str | None] = {}
        self._pace = Pace(self.interval)
        for name, kind, help in self.metrics:
            store.describe(name, kind, help)

    def labels(self, machine: Machine) -> Mapping[str, str]:
        """Return the labels of the target."""
        return {"job": self.job, "instance": f"{machine.address}:{self.port}"}

    def runs(self, kubelet: Kubelet) -> bool:
        """Return whether the agent's process runs."""
        return kubelet.machine.powered

    def discovered(self, kubelet: Kubelet) -> str | None:
        """Return what is scraped, such as a pod's name; None where there is nothing. Another one is another target."""
        return ""

    @abstractmethod
    def fill(self, buffer: SeriesBuffer, kubelet: Kubelet, now: float) -> None:
        """Update the series of a node."""

    def forget(self, node: str) -> None:  # noqa: B027 - most keep no other state
        """Drop cached state of a node whose series have ended."""

    def scrape(self, now: float) -> None:
        if not self._pace.is_due(now):
            return
        objects = self.nodes.world.store
        for name, kubelet in self.nodes.kubelets.items():
            if objects.get("nodes", "", name) is None:
                self._target_registry.remove(name)
                self._labels.pop(name, None)
                self._end(name, now)
                continue
            machine = kubelet.machine
            discovered = self.discovered(kubelet)
            if discovered != self._discovered.get(name, ""):
                self._discovered[name] = discovered
                self._target_registry.remove(name)
                self._labels.pop(name, None)
                self._end(name, now)
            if discovered is None:
                continue
            labels = self._labels.get(name)
            if labels is None:
                labels = self._labels[name] = self.labels(machine)
                self._target_registry.add(name, labels, f"{self.scheme}://{machine.address}:{self.port}{self.path}")
            check = self._scraper.check_agent(machine.address, self.port, runs=self.runs(kubelet))
            if not check.ok:
                self._end(name, now)
                self._target_registry.record_scrape(name, now, 0, check.seconds, check.error)
                continue
            buffer = self._buffers.get(name)
            if buffer is None:
                buffer = self._buffers[name] = SeriesBuffer(self._store, labels)
            self.fill(buffer, kubelet, now)
            written = buffer.write(now)
            machine.namespace.carried.add_exchange(scrape_exchange(written))
            self._target_registry.record_scrape(name, now, written, check.seconds)
        self._target_registry.write(now)

    def _end(self, name: str, now: float) -> None:
        buffer = self._buffers.pop(name, None)
        if buffer is not None:
            buffer.end(now)
            self.forget(name)

    def targets(self) -> Sequence[Target]:
        return self._target_registry.targets()


class KubeletJob(NodeJob):
    """An endpoint of the kubelet."""

    job = "kubelet"
    port = 10250
    scheme = "https"

    def labels(self, machine: Machine) -> Mapping[str, str]:
        return {
            **super().labels(machine),
            "metrics_path": self.path,
            "node": machine.name,
            "namespace": "kube-system",
            "service": "kubelet",
            "endpoint": "https-metrics",
        }

    def runs(self, kubelet: Kubelet) -> bool:
        return kubelet.running and kubelet.machine.powered
