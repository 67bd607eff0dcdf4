"""What the exporters that run on every node have in common: a target per node, that is there or is not.

A node whose agent does not answer is `up == 0` and its series end; when it is back they begin anew.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from srearena.cluster.embedded.kubelet.kubelet import Kubelet
from srearena.cluster.embedded.kubelet.nodes import Nodes
from srearena.cluster.embedded.machine.machine import Machine
from srearena.cluster.embedded.telemetry.collectors.book import Book
from srearena.cluster.embedded.telemetry.collectors.collector import Target
from srearena.cluster.embedded.telemetry.collectors.roster import Roster
from srearena.cluster.embedded.telemetry.collectors.vantage import Vantage
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore

Description = tuple[str, str, str]
"""Name, type and help of a metric."""


class NodeJob(ABC):
    """Derive, set the class attributes, and implement `fill`."""

    job = ""
    port = 0
    scheme = "http"
    path = "/metrics"
    metrics: Sequence[Description] = ()

    def __init__(self, nodes: Nodes, vantage: Vantage, store: MetricStore) -> None:
        self.nodes = nodes
        self._vantage = vantage
        self._store = store
        self._roster = Roster(store)
        self._books: dict[str, Book] = {}
        for name, kind, help in self.metrics:
            store.describe(name, kind, help)

    def labels(self, machine: Machine) -> Mapping[str, str]:
        """Labels of the target."""
        return {"job": self.job, "instance": f"{machine.address}:{self.port}"}

    def runs(self, kubelet: Kubelet) -> bool:
        """Whether the agent's process is there."""
        return kubelet.machine.powered

    @abstractmethod
    def fill(self, book: Book, kubelet: Kubelet, now: float) -> None:
        """Bring a node's book up to date."""

    def forget(self, node: str) -> None:  # noqa: B027 - most keep nothing beside the book
        """The series of a node have ended."""

    def scrape(self, now: float) -> None:
        known = self.nodes.world.store
        for name, kubelet in self.nodes.kubelets.items():
            if known.get("nodes", "", name) is None:
                self._roster.remove(name)
                self._end(name, now)
                continue
            machine = kubelet.machine
            labels = self.labels(machine)
            self._roster.add(name, labels, f"{self.scheme}://{machine.address}:{self.port}{self.path}")
            sight = self._vantage.of_agent(machine.address, self.port, runs=self.runs(kubelet))
            if not sight.ok:
                self._end(name, now)
                self._roster.note(name, now, 0, sight.seconds, sight.error)
                continue
            book = self._books.get(name)
            if book is None:
                book = self._books[name] = Book(self._store, labels)
            self.fill(book, kubelet, now)
            self._roster.note(name, now, book.write(now), sight.seconds)
        self._roster.write(now)

    def _end(self, name: str, now: float) -> None:
        book = self._books.pop(name, None)
        if book is not None:
            book.end(now)
            self.forget(name)

    def targets(self) -> Sequence[Target]:
        return self._roster.targets()


class KubeletJob(NodeJob):
    """What the kubelet serves, on one of its paths."""

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
