"""Metrics of the control plane, as far as the simulation has them.

Its programs are pods whose containers have meters, which give the metrics of a Go process. The API server counts
requests over HTTP (the cluster's own controllers do not use HTTP here) and stored objects. Its requests take no
measurable time, so there are no durations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from srearena.cluster.embedded.controllers.controller import Controller
from srearena.cluster.embedded.kubelet.nodes import Nodes
from srearena.cluster.embedded.machine.containers.runtime import ContainerRecord
from srearena.cluster.embedded.machine.exporter import Sample
from srearena.cluster.embedded.scheduler.scheduler import Scheduler
from srearena.cluster.embedded.telemetry.collectors.collector import Target
from srearena.cluster.embedded.telemetry.collectors.scraper import Scraper
from srearena.cluster.embedded.telemetry.collectors.series_buffer import SeriesBuffer
from srearena.cluster.embedded.telemetry.collectors.target_registry import TargetRegistry
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore
from srearena.cluster.embedded.world import World

Read = Callable[[], Iterable[Sample]]
_NONE: Mapping[str, str] = {}
_METRICS = (
    ("process_cpu_seconds_total", "counter", "Processor time of the program."),
    ("process_resident_memory_bytes", "gauge", "Memory of the program."),
    ("process_start_time_seconds", "gauge", "When the program was started."),
    ("apiserver_request_total", "counter", "Requests over HTTP, by what they were about and how they ended."),
    ("apiserver_storage_objects", "gauge", "Stored objects, by resource."),
    ("etcd_server_has_leader", "gauge", "1 while there is a leader."),
    ("etcd_debugging_mvcc_current_revision", "gauge", "Revision of the last write."),
    ("etcd_debugging_mvcc_keys_total", "gauge", "Stored keys."),
    ("scheduler_pending_pods", "gauge", "Pods that wait for a node, by part of the queue."),
    ("workqueue_adds_total", "counter", "Keys that were queued, by control loop."),
    ("workqueue_retries_total", "counter", "Keys that were queued again after a failure, by control loop."),
)
_REQUEST = ("verb", "group", "version", "resource", "subresource", "scope", "code")


class ControlPlaneCollector:
    """One program of the control plane on its node."""

    def __init__(self, job: str, program: str, port: int, nodes: Nodes, scraper: Scraper, store: MetricStore) -> None:
        self.job = job
        self.read: Read = lambda: ()
        """Reads the metrics of the program beside its resource usage."""
        self._program = program
        self._port = port
        self._machine = nodes.kubelets[nodes.world.control_plane_name].machine
        self._scraper = scraper
        self._target_registry = TargetRegistry(store)
        instance = f"{self._machine.address}:{port}"
        labels = {
            "job": job,
            "instance": instance,
            "namespace": "kube-system",
            "pod": f"{program}-{self._machine.name}",
            "node": self._machine.name,
        }
        self._target_registry.add(job, labels, f"https://{instance}/metrics")
        self._buffer = SeriesBuffer(store, labels)
        self._shape: list[tuple[str, Mapping[str, str]]] = []
        for row in _METRICS:
            store.describe(*row)

    def scrape(self, now: float) -> None:
        record = self._record()
        check = self._scraper.check_agent(self._machine.address, self._port, runs=record is not None)
        if not check.ok or record is None:
            self._buffer.end(now)
            self._shape = []
            self._target_registry.record_scrape(self.job, now, 0, check.seconds, check.error)
        else:
            self._fill([*_of_process(record), *self.read()])
            self._target_registry.record_scrape(self.job, now, self._buffer.write(now), check.seconds)
        self._target_registry.write(now)

    def targets(self) -> Sequence[Target]:
        return self._target_registry.targets()

    def _record(self) -> ContainerRecord | None:
        """Return the program's container, if it runs."""
        for record in self._machine.live.values():
            if record.name == self._program and record.container is not None:
                return record
        return None

    def _fill(self, samples: list[Sample]) -> None:
        shape = [(name, labels) for name, labels, _ in samples]
        values = [value for _, _, value in samples]
        if shape == self._shape:
            self._buffer.set("", values)
        else:
            self._shape = shape
            self._buffer.put("", [{"__name__": name, **labels} for name, labels in shape], values)


def control_plane_collectors(
    world: World,
    nodes: Nodes,
    scheduler: Scheduler,
    controllers: Mapping[str, Controller],
    scraper: Scraper,
    store: MetricStore,
) -> list[ControlPlaneCollector]:
    readers: dict[tuple[str, str, int], Read] = {
        ("apiserver", "kube-apiserver", 6443): lambda: _of_api_server(world),
        ("etcd", "etcd", 2381): lambda: _of_etcd(world),
        ("kube-scheduler", "kube-scheduler", 10259): lambda: _of_scheduler(scheduler),
        ("kube-controller-manager", "kube-controller-manager", 10257): lambda: _of_controllers(controllers),
    }
    collectors: list[ControlPlaneCollector] = []
    for (job, program, port), read in readers.items():
        collector = ControlPlaneCollector(job, program, port, nodes, scraper, store)
        collector.read = read
        collectors.append(collector)
    return collectors


def _of_process(record: ContainerRecord) -> Iterable[Sample]:
    assert record.container is not None
    meter = record.container.meter
    yield "process_cpu_seconds_total", _NONE, meter.cpu_seconds()
    yield "process_resident_memory_bytes", _NONE, meter.working_set
    yield "process_start_time_seconds", _NONE, record.started_at


def _of_api_server(world: World) -> Iterable[Sample]:
    for resource in world.store.resources():
        yield "apiserver_storage_objects", {"resource": resource}, world.store.count(resource)
    for about, number in world.api_requests.items():
        labels = {"component": "apiserver", **dict(zip(_REQUEST, about, strict=True))}
        yield "apiserver_request_total", labels, number


def _of_etcd(world: World) -> Iterable[Sample]:
    yield "etcd_server_has_leader", _NONE, 1.0
    yield "etcd_debugging_mvcc_current_revision", _NONE, world.store.revision
    yield "etcd_debugging_mvcc_keys_total", _NONE, sum(map(world.store.count, world.store.resources()))


def _of_scheduler(scheduler: Scheduler) -> Iterable[Sample]:
    for part, number in scheduler.queue.depths().items():
        yield "scheduler_pending_pods", {"queue": part}, number


def _of_controllers(controllers: Mapping[str, Controller]) -> Iterable[Sample]:
    for name, controller in controllers.items():
        labels = {"name": name.removesuffix("-controller")}
        yield "workqueue_adds_total", labels, controller.added
        yield "workqueue_retries_total", labels, controller.retried
