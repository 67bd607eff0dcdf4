"""Programs that show numbers of their own: whatever listens in a pod and is `Metered` is a target.

Found as annotated pods are: `prometheus.io/scrape: "false"` on a pod leaves it out. A target is down when nobody
listens there any more while its pod still runs, or when it cannot be reached.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from srearena.cluster.embedded.node.metered import Metered
from srearena.cluster.embedded.node.nodes import Nodes
from srearena.cluster.embedded.node.runtime import Sandbox
from srearena.cluster.embedded.node.sockets import Listener
from srearena.cluster.embedded.objects import annotations_of, labels_of, name_of, namespace_of
from srearena.cluster.embedded.telemetry.collectors.book import Book
from srearena.cluster.embedded.telemetry.collectors.collector import Target
from srearena.cluster.embedded.telemetry.collectors.roster import Roster
from srearena.cluster.embedded.telemetry.collectors.vantage import Vantage
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore

SCRAPE = "prometheus.io/scrape"
_DNS_LABEL = ("k8s-app", "kube-dns")
_Shape = list[tuple[str, Mapping[str, str]]]


class ProgramCollector:
    job = "kubernetes-pods"

    def __init__(self, nodes: Nodes, vantage: Vantage, store: MetricStore) -> None:
        self._nodes = nodes
        self._vantage = vantage
        self._store = store
        self._roster = Roster(store)
        self._books: dict[str, Book] = {}
        self._shapes: dict[str, _Shape] = {}
        self._found: dict[str, tuple[Sandbox, Listener]] = {}
        self._epoch = -1

    def scrape(self, now: float) -> None:
        if self._epoch != self._vantage.epoch:
            self._epoch = self._vantage.epoch
            self._discover(now)
        for key, (sandbox, listener) in self._found.items():
            sight = self._vantage.of_endpoint(sandbox.address, listener.port)
            if sight.ok and listener.open and isinstance(listener.server, Metered):
                self._roster.note(key, now, self._read(key, listener.server, now), sight.seconds)
            else:
                self._end(key, now)
                self._roster.note(key, now, 0, sight.seconds, sight.error or "EOF")
        self._roster.write(now)

    def targets(self) -> Sequence[Target]:
        return self._roster.targets()

    def _discover(self, now: float) -> None:
        found: dict[str, tuple[Sandbox, Listener]] = {}
        for kubelet in self._nodes.kubelets.values():
            for sandbox in kubelet.machine.sandboxes.values():
                if not sandbox.ready or annotations_of(sandbox.pod).get(SCRAPE) == "false":
                    continue
                for listener in sandbox.namespace.listeners() if not sandbox.host_network else ():
                    if isinstance(listener.server, Metered) and listener.protocol == "TCP":
                        found[f"{sandbox.uid}:{listener.port}"] = (sandbox, listener)
                # What was scraped and went silent stays a target while its pod is there.
                for key, (known, listener) in self._found.items():
                    if known is sandbox:
                        found.setdefault(key, (sandbox, listener))
        for key in [key for key in self._found if key not in found]:
            self._end(key, now)
            self._roster.remove(key)
        for key, (sandbox, listener) in found.items():
            labels = self._labels(sandbox, listener)
            self._roster.add(key, labels, f"http://{labels['instance']}/metrics")
        self._found = found

    def _labels(self, sandbox: Sandbox, listener: Listener) -> Mapping[str, str]:
        pod = sandbox.pod
        key, value = _DNS_LABEL
        is_dns = labels_of(pod).get(key) == value
        container = getattr(getattr(listener.owner, "container", None), "config", None)
        return {
            "job": value if is_dns else self.job,
            "instance": f"{sandbox.address}:{listener.port}",
            "namespace": namespace_of(pod),
            "pod": name_of(pod),
            "container": getattr(container, "name", ""),
            "node": sandbox.node_name,
        }

    def _read(self, key: str, server: Metered, now: float) -> int:
        book = self._books.get(key)
        if book is None:
            book = self._books[key] = Book(self._store, self._labels(*self._found[key]))
        shape: _Shape = []
        values: list[float] = []
        for name, labels, value in server.metrics():
            shape.append((name, labels))
            values.append(value)
        if key in self._shapes and self._shapes[key] == shape:
            book.set(key, values)
        else:
            self._shapes[key] = shape
            book.put(key, [{"__name__": name, **labels} for name, labels in shape], values)
            for name, _ in shape:
                if name not in self._store.metadata:
                    kind = "counter" if name.endswith("_total") else "gauge"
                    self._store.describe(name, kind, f"{name.replace('_', ' ').capitalize()}.")
        return book.write(now)

    def _end(self, key: str, now: float) -> None:
        self._shapes.pop(key, None)
        book = self._books.pop(key, None)
        if book is not None:
            book.end(now)
