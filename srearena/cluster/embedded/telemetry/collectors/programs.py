"""Programs that show numbers of their own, found where they listen.

Three ways lead here: what listens is `Metered`; it is a datastore that has an exporter; or its pod is annotated with
`prometheus.io/scrape: "true"`, a port and perhaps a path, where the program answers over HTTP. `"false"` leaves a pod
out altogether. A target stays one while its pod is there: when nobody listens any more, it is down.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from srearena.cluster.embedded.clock import begin
from srearena.cluster.embedded.kubelet.nodes import Nodes
from srearena.cluster.embedded.machine.containers.runtime import Sandbox
from srearena.cluster.embedded.machine.exporter import Exported, Exporter, Metered, Sample
from srearena.cluster.embedded.machine.networking.http_message import HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.networking.sockets import Listener
from srearena.cluster.embedded.objects import annotations_of, labels_of, name_of, namespace_of
from srearena.cluster.embedded.telemetry.collectors.book import Book
from srearena.cluster.embedded.telemetry.collectors.collector import Target
from srearena.cluster.embedded.telemetry.collectors.exposition import samples_of, types_of
from srearena.cluster.embedded.telemetry.collectors.roster import Roster
from srearena.cluster.embedded.telemetry.collectors.vantage import TIMEOUT, Sight, Vantage
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore

SCRAPE, PORT, PATH = "prometheus.io/scrape", "prometheus.io/port", "prometheus.io/path"
_DNS_LABEL = ("k8s-app", "kube-dns")
_Shape = list[tuple[str, Mapping[str, str]]]


class Unreadable(Exception):
    """A scrape failed after the connection was made."""


@dataclass(slots=True)
class Endpoint:
    """Where numbers are shown in a pod."""

    sandbox: Sandbox
    port: int
    path: str = "/metrics"
    job: str = ""
    listener: Listener | None = None
    exporter: Exporter | None = None

    @property
    def open(self) -> bool:
        return self.listener is not None and self.listener.open

    @property
    def container(self) -> str:
        config = getattr(getattr(self.listener and self.listener.owner, "container", None), "config", None)
        return str(getattr(config, "name", ""))


class ProgramCollector:
    job = "kubernetes-pods"

    def __init__(self, nodes: Nodes, vantage: Vantage, store: MetricStore) -> None:
        self._nodes = nodes
        self._vantage = vantage
        self._store = store
        self._roster = Roster(store)
        self._books: dict[str, Book] = {}
        self._shapes: dict[str, _Shape] = {}
        self._found: dict[str, Endpoint] = {}
        self._labels: dict[str, Mapping[str, str]] = {}
        self._epoch = -1

    def scrape(self, now: float) -> None:
        if self._epoch != self._vantage.epoch:
            self._epoch = self._vantage.epoch
            self._discover(now)
        for key, endpoint in self._found.items():
            sight = self._sight(endpoint)
            try:
                if not sight.ok:
                    raise Unreadable(sight.error)
                samples = self._read(endpoint)
            except Unreadable as error:
                self._end(key, now)
                self._roster.note(key, now, 0, sight.seconds, str(error))
            else:
                self._roster.note(key, now, self._write(key, samples, now), sight.seconds)
        self._roster.write(now)

    def targets(self) -> Sequence[Target]:
        return self._roster.targets()

    # Finding

    def _discover(self, now: float) -> None:
        found: dict[str, Endpoint] = {}
        for kubelet in self._nodes.kubelets.values():
            for sandbox in kubelet.machine.sandboxes.values():
                if sandbox.ready and not sandbox.host_network:
                    for endpoint in _endpoints(sandbox):
                        found[f"{sandbox.id}:{endpoint.port}"] = endpoint
        for key, endpoint in self._found.items():
            # What was scraped and went silent stays a target while its pod is there.
            if endpoint.sandbox.ready and key not in found:
                found[key] = endpoint
        for key in [key for key in self._found if key not in found]:
            self._end(key, now)
            self._roster.remove(key)
            del self._labels[key]
        for key, endpoint in found.items():
            if key not in self._labels:
                labels = self._labels[key] = self._labels_of(endpoint)
                self._roster.add(key, labels, f"http://{labels['instance']}{endpoint.path}")
        self._found = found

    def _labels_of(self, endpoint: Endpoint) -> Mapping[str, str]:
        sandbox = endpoint.sandbox
        key, value = _DNS_LABEL
        is_dns = labels_of(sandbox.pod).get(key) == value
        return {
            "job": endpoint.job or (value if is_dns else self.job),
            "instance": f"{sandbox.address}:{endpoint.port}",
            "namespace": namespace_of(sandbox.pod),
            "pod": name_of(sandbox.pod),
            "container": endpoint.container,
            "node": sandbox.node_name,
        }

    # Reading

    def _sight(self, endpoint: Endpoint) -> Sight:
        address, port = endpoint.sandbox.address, endpoint.port
        if endpoint.exporter is not None:
            return self._vantage.of_agent(address, port, runs=True)
        return self._vantage.of_endpoint(address, port)

    def _read(self, endpoint: Endpoint) -> Iterable[Sample]:
        listener, exporter = endpoint.listener, endpoint.exporter
        if exporter is not None:
            if not endpoint.open or listener is None:
                return [(exporter.alive, {}, 0.0)]
            return [(exporter.alive, {}, 1.0), *exporter.read(listener.server)]
        if not endpoint.open or listener is None:
            raise Unreadable("EOF")
        if isinstance(listener.server, Metered):
            return listener.server.metrics()
        return self._asked(endpoint, listener)

    def _asked(self, endpoint: Endpoint, listener: Listener) -> Iterable[Sample]:
        """What a program answers over HTTP, if it does so within the time a scrape may take."""
        if listener.http is None:
            raise Unreadable("EOF")
        request = HttpRequest(target=endpoint.path, headers={"Host": f"{endpoint.sandbox.address}:{endpoint.port}"})
        response = begin(listener.http(request), TIMEOUT)
        if not isinstance(response, HttpResponse):
            raise Unreadable("context deadline exceeded")
        if response.status != 200:
            raise Unreadable(f"server returned HTTP status {response.status} {response.phrase}")
        text = response.body.decode(errors="replace")
        samples: dict[tuple[object, ...], Sample] = {}
        try:
            for sample in samples_of(text):
                samples.setdefault((sample[0], *sorted(sample[1].items())), sample)
        except ValueError as error:
            raise Unreadable(str(error)) from None
        for name, kind in types_of(text):
            if name not in self._store.metadata:
                self._store.describe(name, kind, "")
        return samples.values()

    def _write(self, key: str, samples: Iterable[Sample], now: float) -> int:
        book = self._books.get(key)
        if book is None:
            book = self._books[key] = Book(self._store, self._labels[key])
        shape: _Shape = []
        values: list[float] = []
        for name, labels, value in samples:
            shape.append((name, labels))
            values.append(value)
        if key in self._shapes and self._shapes[key] == shape:
            book.set(key, values)
        else:
            self._shapes[key] = shape
            book.put(key, [{"__name__": name, **labels} for name, labels in shape], values)
            for name, _ in shape:
                if name not in self._store.metadata:
                    self._store.describe(name, "counter" if name.endswith("_total") else "gauge", "")
        return book.write(now)

    def _end(self, key: str, now: float) -> None:
        self._shapes.pop(key, None)
        book = self._books.pop(key, None)
        if book is not None:
            book.end(now)


def _endpoints(sandbox: Sandbox) -> Iterable[Endpoint]:
    wishes = annotations_of(sandbox.pod)
    wanted = wishes.get(SCRAPE)
    if wanted == "false":
        return
    listeners = sandbox.namespace.listeners()
    taken: set[int] = set()
    told: list[object] = []
    for listener in listeners:
        # A server may listen on several ports; one of them is enough.
        if listener.protocol == "TCP" and listener.server is not None and listener.server not in told:
            told.append(listener.server)
            exporter = listener.server.exporter if isinstance(listener.server, Exported) else None
            if isinstance(listener.server, Metered) or exporter is not None:
                job = exporter.job if exporter is not None else ""
                taken.add(listener.port)
                yield Endpoint(sandbox, listener.port, job=job, listener=listener, exporter=exporter)
    if wanted == "true" and wishes.get(PORT, "").isdigit() and int(wishes[PORT]) not in taken:
        port = int(wishes[PORT])
        found = sandbox.namespace.find(sandbox.address, port)
        yield Endpoint(sandbox, port, wishes.get(PATH) or "/metrics", listener=found)
