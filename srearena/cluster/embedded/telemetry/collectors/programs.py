"""Programs that export metrics, discovered by their listening sockets.

A target is a server that is `Metered`, a datastore with an exporter, or a pod annotated with
`prometheus.io/scrape: "true"`, a port and perhaps a path, where the program responds over HTTP. `"false"` excludes a
pod. A target remains while its pod exists: when nothing listens any more, it is down.
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
from srearena.cluster.embedded.telemetry.collectors.collector import Target
from srearena.cluster.embedded.telemetry.collectors.exposition import samples_of, types_of
from srearena.cluster.embedded.telemetry.collectors.scraper import TIMEOUT, ReachabilityCheck, Scraper, scrape_exchange
from srearena.cluster.embedded.telemetry.collectors.series_buffer import SeriesBuffer
from srearena.cluster.embedded.telemetry.collectors.target_registry import TargetRegistry
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore

SCRAPE, PORT, PATH = "prometheus.io/scrape", "prometheus.io/port", "prometheus.io/path"
_DNS_LABEL = ("k8s-app", "kube-dns")
_Shape = list[tuple[str, Mapping[str, str]]]


class ScrapeFailed(Exception):
    """A scrape failed; the text is Prometheus' error."""


@dataclass(slots=True)
class Endpoint:
    """An endpoint with metrics in a pod."""

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

    def __init__(self, nodes: Nodes, scraper: Scraper, store: MetricStore) -> None:
        self._nodes = nodes
        self._scraper = scraper
        self._store = store
        self._target_registry = TargetRegistry(store)
        self._buffers: dict[str, SeriesBuffer] = {}
        self._shapes: dict[str, _Shape] = {}
        self._endpoints: dict[str, Endpoint] = {}
        self._labels: dict[str, Mapping[str, str]] = {}
        self._epoch = -1

    def scrape(self, now: float) -> None:
        if self._epoch != self._scraper.epoch:
            self._epoch = self._scraper.epoch
            self._discover(now)
        for key, endpoint in self._endpoints.items():
            check = self._check(endpoint)
            try:
                if not check.ok:
                    raise ScrapeFailed(check.error)
                samples = self._read(endpoint)
            except ScrapeFailed as error:
                self._end(key, now)
                self._target_registry.record_scrape(key, now, 0, check.seconds, str(error))
            else:
                written = self._write(key, samples, now)
                endpoint.sandbox.namespace.carried.add_exchange(scrape_exchange(written))
                self._target_registry.record_scrape(key, now, written, check.seconds)
        self._target_registry.write(now)

    def targets(self) -> Sequence[Target]:
        return self._target_registry.targets()

    # Discovery

    def _discover(self, now: float) -> None:
        found: dict[str, Endpoint] = {}
        for kubelet in self._nodes.kubelets.values():
            for sandbox in kubelet.machine.sandboxes.values():
                if sandbox.ready and not sandbox.host_network:
                    for endpoint in _endpoints(sandbox):
                        found[f"{sandbox.id}:{endpoint.port}"] = endpoint
        for key, endpoint in self._endpoints.items():
            # A scraped endpoint that stops responding stays a target while its pod exists.
            if endpoint.sandbox.ready and key not in found:
                found[key] = endpoint
        for key in [key for key in self._endpoints if key not in found]:
            self._end(key, now)
            self._target_registry.remove(key)
            del self._labels[key]
        for key, endpoint in found.items():
            if key not in self._labels:
                labels = self._labels[key] = self._labels_of(endpoint)
                self._target_registry.add(key, labels, f"http://{labels['instance']}{endpoint.path}")
        self._endpoints = found

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

    # Scraping

    def _check(self, endpoint: Endpoint) -> ReachabilityCheck:
        address, port = endpoint.sandbox.address, endpoint.port
        if endpoint.exporter is not None:
            return self._scraper.check_agent(address, port, runs=True)
        return self._scraper.check_endpoint(address, port)

    def _read(self, endpoint: Endpoint) -> Iterable[Sample]:
        listener, exporter = endpoint.listener, endpoint.exporter
        if exporter is not None:
            if not endpoint.open or listener is None:
                return [(exporter.alive, {}, 0.0)]
            return [(exporter.alive, {}, 1.0), *exporter.read(listener.server)]
        if not endpoint.open or listener is None:
            raise ScrapeFailed("EOF")
        if isinstance(listener.server, Metered):
            return listener.server.metrics()
        return self._fetch(endpoint, listener)

    def _fetch(self, endpoint: Endpoint, listener: Listener) -> Iterable[Sample]:
        """Return the samples that a program serves over HTTP within the scrape timeout."""
        if listener.http is None:
            raise ScrapeFailed("EOF")
        request = HttpRequest(target=endpoint.path, headers={"Host": f"{endpoint.sandbox.address}:{endpoint.port}"})
        response = begin(listener.http(request), TIMEOUT)
        if not isinstance(response, HttpResponse):
            raise ScrapeFailed("context deadline exceeded")
        if response.status != 200:
            raise ScrapeFailed(f"server returned HTTP status {response.status} {response.phrase}")
        text = response.body.decode(errors="replace")
        samples: dict[tuple[object, ...], Sample] = {}
        try:
            for sample in samples_of(text):
                samples.setdefault((sample[0], *sorted(sample[1].items())), sample)
        except ValueError as error:
            raise ScrapeFailed(str(error)) from None
        for name, kind in types_of(text):
            if name not in self._store.metadata:
                self._store.describe(name, kind, "")
        return samples.values()

    def _write(self, key: str, samples: Iterable[Sample], now: float) -> int:
        buffer = self._buffers.get(key)
        if buffer is None:
            buffer = self._buffers[key] = SeriesBuffer(self._store, self._labels[key])
        shape: _Shape = []
        values: list[float] = []
        for name, labels, value in samples:
            shape.append((name, labels))
            values.append(value)
        if key in self._shapes and self._shapes[key] == shape:
            buffer.set(key, values)
        else:
            self._shapes[key] = shape
            buffer.put(key, [{"__name__": name, **labels} for name, labels in shape], values)
            for name, _ in shape:
                if name not in self._store.metadata:
                    self._store.describe(name, "counter" if name.endswith("_total") else "gauge", "")
        return buffer.write(now)

    def _end(self, key: str, now: float) -> None:
        self._shapes.pop(key, None)
        buffer = self._buffers.pop(key, None)
        if buffer is not None:
            buffer.end(now)


def _endpoints(sandbox: Sandbox) -> Iterable[Endpoint]:
    annotations = annotations_of(sandbox.pod)
    enabled = annotations.get(SCRAPE)
    if enabled == "false":
        return
    listeners = sandbox.namespace.listeners()
    ports: set[int] = set()
    servers: list[object] = []
    for listener in listeners:
        # A server may listen on several ports; one of them is scraped.
        if listener.protocol == "TCP" and listener.server is not None and listener.server not in servers:
            servers.append(listener.server)
            exporter = listener.server.exporter if isinstance(listener.server, Exported) else None
            if isinstance(listener.server, Metered) or exporter is not None:
                job = exporter.job if exporter is not None else ""
                ports.add(listener.port)
                yield Endpoint(sandbox, listener.port, job=job, listener=listener, exporter=exporter)
    if enabled == "true" and annotations.get(PORT, "").isdigit() and int(annotations[PORT]) not in ports:
        port = int(annotations[PORT])
        listener_at_port = sandbox.namespace.find(sandbox.address, port)
        yield Endpoint(sandbox, port, annotations.get(PATH) or "/metrics", listener=listener_at_port)
