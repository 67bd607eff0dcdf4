"""kube-proxy: metrics of the proxy on every node, a target while its container runs.

Rules change here at the instant of a change in the API. The real program gathers changes for up to a second, and syncs
every 30 seconds in any case: that is how syncs are counted.
"""

from __future__ import annotations

from collections.abc import Mapping

from srearena.cluster.embedded.instruments import Histogram
from srearena.cluster.embedded.kubelet.kubelet import Kubelet
from srearena.cluster.embedded.kubelet.nodes import Nodes
from srearena.cluster.embedded.machine.containers.runtime import ContainerRecord
from srearena.cluster.embedded.machine.machine import Machine
from srearena.cluster.embedded.store import Change
from srearena.cluster.embedded.telemetry.collectors import go_process
from srearena.cluster.embedded.telemetry.collectors.api_requests import ApiRequests
from srearena.cluster.embedded.telemetry.collectors.collector import SLOW_INTERVAL
from srearena.cluster.embedded.telemetry.collectors.control_plane import CLIENT_METRICS, write_client
from srearena.cluster.embedded.telemetry.collectors.go_process import GoProcess
from srearena.cluster.embedded.telemetry.collectors.node_job import NodeJob
from srearena.cluster.embedded.telemetry.collectors.scraper import Scraper
from srearena.cluster.embedded.telemetry.collectors.sections import Sections
from srearena.cluster.embedded.telemetry.collectors.series_buffer import SeriesBuffer
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore

PROGRAM = "kube-proxy"
SYNC_PERIOD = 30.0
MINIMUM_SYNC_PERIOD = 1.0
_INFORMERS = ("services", "endpointslices.discovery.k8s.io", "nodes", "servicecidrs.networking.k8s.io")
_SYNC_BOUNDS = tuple(0.001 * 2**power for power in range(15))
_PROGRAMMING_BOUNDS = (0.25, 0.5, *(float(second) for second in (1, 2, 3, 4, 5, 10, 15, 20, 30, 45, 60, 120, 300)))
"""Bounds in kube-proxy's histogram; of its 80 only these."""
_SYNC_SECONDS = 0.018
"""Median duration of a sync of a small cluster's rules with iptables."""
_PROGRAMMING_SECONDS = 0.42
"""Median time from a change of an endpoint to the rules: the second that changes are gathered, and the sync."""
_NONE: Mapping[str, str] = {}


class _Changes:
    """Changes of Services and EndpointSlices, gathered as kube-proxy gathers them."""

    def __init__(self, nodes: Nodes) -> None:
        self.syncs = 0
        self.endpoints = 0
        self._last = 0.0
        self._clock = nodes.world.clock
        nodes.world.on_change("services", self._service_changed)
        nodes.world.on_change("endpointslices.discovery.k8s.io", self._endpoints_changed)

    def _service_changed(self, change: Change) -> None:
        if self._clock.now - self._last >= MINIMUM_SYNC_PERIOD:
            self._last = self._clock.now
            self.syncs += 1

    def _endpoints_changed(self, change: Change) -> None:
        self.endpoints += 1
        self._service_changed(change)


class _Proxy:
    """The proxy of one node, since its container was started."""

    def __init__(self, record: ContainerRecord, changes: _Changes, buffer: SeriesBuffer) -> None:
        self.record = record
        self.sections = Sections(buffer)
        self.process = GoProcess(record.id)
        self.syncs = Histogram(_SYNC_BOUNDS)
        self.programming = Histogram(_PROGRAMMING_BOUNDS)
        self._changes = changes
        self._before = (changes.syncs, changes.endpoints)

    def catch_up(self, now: float) -> None:
        changes, (syncs, endpoints) = self._changes, self._before
        periodic = int((now - self.record.started_at) / SYNC_PERIOD)
        self.syncs.observe_spread(1 + periodic + changes.syncs - syncs - self.syncs.count, _SYNC_SECONDS)
        self.programming.observe_spread(changes.endpoints - endpoints - self.programming.count, _PROGRAMMING_SECONDS)


class KubeProxyCollector(NodeJob):
    job = PROGRAM
    port = 10249
    interval = SLOW_INTERVAL
    metrics = (
        *go_process.METRICS,
        *CLIENT_METRICS,
        ("kubeproxy_sync_proxy_rules_duration_seconds", "histogram", "Duration of a sync of the rules."),
        ("kubeproxy_network_programming_duration_seconds", "histogram", "Time from a changed endpoint to the rules."),
        ("kubeproxy_sync_proxy_rules_last_timestamp_seconds", "gauge", "When the rules were last synced."),
    )

    def __init__(self, nodes: Nodes, requests: ApiRequests, scraper: Scraper, store: MetricStore) -> None:
        super().__init__(nodes, scraper, store)
        self._changes = _Changes(nodes)
        self._requests = requests
        self._proxies: dict[str, _Proxy] = {}
        server = nodes.kubelets[nodes.world.control_plane_name].machine
        self._host = f"{server.address}:6443"

    def labels(self, machine: Machine) -> Mapping[str, str]:
        return {**super().labels(machine), "namespace": "kube-system", "node": machine.name}

    def runs(self, kubelet: Kubelet) -> bool:
        return kubelet.machine.powered and _record(kubelet.machine) is not None

    def forget(self, node: str) -> None:
        self._proxies.pop(node, None)

    def fill(self, buffer: SeriesBuffer, kubelet: Kubelet, now: float) -> None:
        machine = kubelet.machine
        record = _record(machine)
        assert record is not None and record.container is not None
        proxy, program = self._proxies.get(machine.name), f"{PROGRAM}/{machine.name}"
        if proxy is None or proxy.record is not record:
            if proxy is not None:
                proxy.sections.reset(now)
                self._requests.forget(program)
            proxy = self._proxies[machine.name] = _Proxy(record, self._changes, buffer)
            self._requests.register(program, machine, lambda: _record(machine) is not None, lambda: _INFORMERS)
        proxy.catch_up(now)
        sections, meter = proxy.sections, record.container.meter
        values = proxy.process.values(
            now, record.started_at, meter.cpu_seconds(), meter.resident_bytes(), workers=2 * len(_INFORMERS)
        )
        sections.numbers("process", go_process.ROWS, values)
        sections.histogram("kubeproxy_sync_proxy_rules_duration_seconds", _NONE, proxy.syncs)
        sections.histogram("kubeproxy_network_programming_duration_seconds", _NONE, proxy.programming)
        last = now - (now - record.started_at) % SYNC_PERIOD
        sections.number("kubeproxy_sync_proxy_rules_last_timestamp_seconds", _NONE, last)
        self._requests.update(now)
        write_client(sections, self._requests.of(program), self._host)
        sections.fresh = False


def _record(machine: Machine) -> ContainerRecord | None:
    for record in machine.live.values():
        if record.name == PROGRAM and record.container is not None:
            return record
    return None
