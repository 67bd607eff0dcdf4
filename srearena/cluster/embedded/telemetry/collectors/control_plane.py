"""Metrics of the control plane: API server, etcd, scheduler and controller manager.

Its programs are pods whose containers have meters, which give the metrics of a Go process. What they did is counted by
the simulator's own components: requests by the API and its clients, keys by control loops, attempts by the scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from srearena.cluster.embedded.controllers.api_services import ApiServices
from srearena.cluster.embedded.controllers.controller import Controller
from srearena.cluster.embedded.kubelet.nodes import Nodes
from srearena.cluster.embedded.machine.containers.runtime import ContainerRecord
from srearena.cluster.embedded.scheduler.scheduler import NAME as PROFILE
from srearena.cluster.embedded.scheduler.scheduler import Scheduler
from srearena.cluster.embedded.telemetry.collectors import go_process, work_queues
from srearena.cluster.embedded.telemetry.collectors.api_requests import ApiRequests, ClientTraffic
from srearena.cluster.embedded.telemetry.collectors.collector import SLOW_INTERVAL, Pace, Target
from srearena.cluster.embedded.telemetry.collectors.go_process import GoProcess
from srearena.cluster.embedded.telemetry.collectors.scraper import Scraper, scrape_exchange
from srearena.cluster.embedded.telemetry.collectors.sections import Sections
from srearena.cluster.embedded.telemetry.collectors.series_buffer import SeriesBuffer
from srearena.cluster.embedded.telemetry.collectors.target_registry import TargetRegistry
from srearena.cluster.embedded.telemetry.collectors.work_queues import OF_SERVER, WorkQueues
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore
from srearena.cluster.embedded.world import World

Write = Callable[[Sections, float], None]
_NONE: Mapping[str, str] = {}
CLIENT_METRICS = (
    ("rest_client_requests_total", "counter", "Requests to the API server, by method and code."),
    ("rest_client_request_duration_seconds", "histogram", "Duration of requests to the API server, by method."),
)
_METRICS = (
    *go_process.METRICS,
    *CLIENT_METRICS,
    ("apiserver_request_total", "counter", "Requests, by what they were about and how they ended."),
    ("apiserver_request_sli_duration_seconds", "histogram", "Duration of requests, without waiting for webhooks."),
    ("apiserver_client_certificate_expiration_seconds", "histogram", "Remaining lifetime of client certificates."),
    ("apiserver_storage_objects", "gauge", "Stored objects, by resource."),
    ("aggregator_unavailable_apiservice", "gauge", "1 for an API service that is not available."),
    ("aggregator_unavailable_apiservice_total", "counter", "How often an API service was found not to be available."),
    ("etcd_server_has_leader", "gauge", "1 while there is a leader."),
    ("etcd_debugging_mvcc_current_revision", "gauge", "Revision of the last write."),
    ("etcd_debugging_mvcc_keys_total", "gauge", "Stored keys."),
    ("scheduler_pending_pods", "gauge", "Pods that wait for a node, by part of the queue."),
    ("scheduler_schedule_attempts_total", "counter", "Attempts to schedule a pod, by result."),
    ("scheduler_scheduling_attempt_duration_seconds", "histogram", "Duration of an attempt, by result."),
    ("scheduler_scheduling_algorithm_duration_seconds", "histogram", "Duration of the choice of a node."),
    ("scheduler_pod_scheduling_sli_duration_seconds", "histogram", "Time from the first sight of a pod to its node."),
    *work_queues.METRICS,
)
_REQUEST = ("verb", "group", "version", "resource", "subresource", "scope", "code")
_SCHEDULER_INFORMERS = (
    *("pods", "nodes", "namespaces", "services", "persistentvolumes", "persistentvolumeclaims"),
    *("replicationcontrollers", "replicasets.apps", "statefulsets.apps", "poddisruptionbudgets.policy"),
    *("storageclasses.storage.k8s.io", "csinodes.storage.k8s.io", "csidrivers.storage.k8s.io"),
)
_SERVER_INFORMERS = (
    *("namespaces", "services", "secrets", "configmaps", "nodes", "pods", "serviceaccounts", "resourcequotas"),
    *("limitranges", "roles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io"),
    *("clusterroles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io"),
    *("apiservices.apiregistration.k8s.io", "customresourcedefinitions.apiextensions.k8s.io"),
    *("validatingwebhookconfigurations.admissionregistration.k8s.io", "priorityclasses.scheduling.k8s.io"),
    *("mutatingwebhookconfigurations.admissionregistration.k8s.io", "storageclasses.storage.k8s.io"),
    *("endpointslices.discovery.k8s.io", "flowschemas.flowcontrol.apiserver.k8s.io"),
)


class ControlPlaneCollector:
    """One program of the control plane on its node."""

    def __init__(self, job: str, program: str, port: int, nodes: Nodes, scraper: Scraper, store: MetricStore) -> None:
        self.job = job
        self.write: Write = lambda sections, now: None
        """Writes the metrics of the program beside its resource usage."""
        self.workers: Callable[[], int] = lambda: 8
        """Informers, control loops and connections of the program."""
        self.on_start: Callable[[], None] = lambda: None
        """Called when the process is another one than at the last scrape: its counters begin at zero."""
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
        self._sections = Sections(SeriesBuffer(store, labels))
        self._pace = Pace(SLOW_INTERVAL)
        self._process: tuple[str, GoProcess] | None = None
        """The container that was scraped last."""
        for row in _METRICS:
            store.describe(*row)

    @property
    def is_running(self) -> bool:
        return self._record() is not None

    def scrape(self, now: float) -> None:
        if not self._pace.is_due(now):
            return
        record = self._record()
        check = self._scraper.check_agent(self._machine.address, self._port, runs=record is not None)
        if not check.ok or record is None:
            self._sections.reset(now)
            self._target_registry.record_scrape(self.job, now, 0, check.seconds, check.error)
        else:
            self._write_process(record, now)
            self.write(self._sections, now)
            self._sections.fresh = False
            written = self._sections.buffer.write(now)
            self._machine.namespace.carried.add_exchange(scrape_exchange(written))
            self._target_registry.record_scrape(self.job, now, written, check.seconds)
        self._target_registry.write(now)

    def targets(self) -> Sequence[Target]:
        return self._target_registry.targets()

    def _record(self) -> ContainerRecord | None:
        """Return the program's container, if it runs."""
        for record in self._machine.live.values():
            if record.name == self._program and record.container is not None:
                return record
        return None

    def _write_process(self, record: ContainerRecord, now: float) -> None:
        if self._process is None or self._process[0] != record.id:
            if self._process is not None:
                self._sections.reset(now)
                self.on_start()
            self._process = (record.id, GoProcess(record.id))
        assert record.container is not None
        meter = record.container.meter
        values = self._process[1].values(
            now, record.started_at, meter.cpu_seconds(), meter.resident_bytes(), workers=self.workers()
        )
        self._sections.numbers("process", go_process.ROWS, values)


def control_plane_collectors(
    world: World,
    nodes: Nodes,
    scheduler: Scheduler,
    controllers: Mapping[str, Controller],
    requests: ApiRequests,
    scraper: Scraper,
    store: MetricStore,
) -> list[ControlPlaneCollector]:
    loops = {name: controller for name, controller in controllers.items() if name not in OF_SERVER}
    own_loops = {OF_SERVER[name]: controller for name, controller in controllers.items() if name in OF_SERVER}
    queues, own_queues = WorkQueues(loops, world), WorkQueues(own_loops, world)
    services = controllers[ApiServices.name]
    assert isinstance(services, ApiServices)
    server = nodes.kubelets[world.control_plane_name].machine
    stored: set[str] = set()
    hosts = {"": f"{server.address}:6443", "apiserver": "[::1]:6443"}

    def informers() -> Iterable[str]:
        return dict.fromkeys(resource for loop in loops.values() for resource in loop.watched)

    def of_server(sections: Sections, now: float) -> None:
        _write_server(world, services, requests, stored, sections)
        own_queues.write(sections, now)

    def of_controllers(sections: Sections, now: float) -> None:
        queues.write(sections, now)

    programs: dict[str, tuple[str, int, Write, Callable[[], Iterable[str]] | None]] = {
        "apiserver": ("kube-apiserver", 6443, of_server, lambda: _SERVER_INFORMERS),
        "etcd": ("etcd", 2381, lambda sections, now: _write_etcd(world, sections), None),
        "kube-scheduler": (
            "kube-scheduler",
            10259,
            lambda sections, now: _write_scheduler(scheduler, sections),
            lambda: _SCHEDULER_INFORMERS,
        ),
        "kube-controller-manager": ("kube-controller-manager", 10257, of_controllers, informers),
    }
    collectors: list[ControlPlaneCollector] = []
    for job, (program, port, write, resources) in programs.items():
        collector = ControlPlaneCollector(job, program, port, nodes, scraper, store)
        if resources is None:
            collector.write = write
        else:
            _add_client(collector, program, hosts.get(job, hosts[""]), write, resources, requests)
        collectors.append(collector)
    collectors[0].on_start = requests.forget_server
    collectors[0].workers = lambda: 60 + 2 * len(nodes.kubelets)
    return collectors


def _add_client(
    collector: ControlPlaneCollector,
    program: str,
    host: str,
    write: Write,
    resources: Callable[[], Iterable[str]],
    requests: ApiRequests,
) -> None:
    """Let a program show the requests that its client made."""
    requests.register(program, requests.server, lambda: collector.is_running, resources)

    def write_all(sections: Sections, now: float) -> None:
        requests.update(now)
        write(sections, now)
        write_client(sections, requests.of(program), host)

    collector.write = write_all
    collector.on_start = lambda: requests.forget(program)
    collector.workers = lambda: 2 * requests.watches(program)


def write_client(sections: Sections, client: ClientTraffic, host: str) -> None:
    """Write the metrics of a program's client-go."""
    for method, code in client.requests if sections.fresh else client.changed:
        labels = {"code": code, "host": host, "method": method}
        sections.number("rest_client_requests_total", labels, client.requests[method, code])
        sections.histogram(
            "rest_client_request_duration_seconds", {"host": host, "verb": method}, client.durations[method]
        )
    client.changed.clear()


def _write_server(
    world: World, services: ApiServices, requests: ApiRequests, stored: set[str], sections: Sections
) -> None:
    """Write what the server did, and its objects; `stored` is to keep the resources that have or had some."""
    stored.update(world.store.resources())
    for resource in sorted(stored):
        sections.number("apiserver_storage_objects", {"resource": resource}, world.store.count(resource))
    for key in requests.totals if sections.fresh else sorted(requests.changed):
        labels = {"component": "apiserver", **dict(zip(_REQUEST, key, strict=True))}
        sections.number("apiserver_request_total", labels, requests.totals[key])
        del labels["code"]
        durations = requests.durations.get(key[:-1])
        if durations is not None:
            sections.histogram("apiserver_request_sli_duration_seconds", labels, durations)
    requests.changed.clear()
    sections.histogram("apiserver_client_certificate_expiration_seconds", _NONE, requests.certificates)
    for name, unavailable in services.unavailable.items():
        sections.number("aggregator_unavailable_apiservice", {"name": name}, unavailable)
    for (name, reason), number in services.unavailable_count.items():
        sections.number("aggregator_unavailable_apiservice_total", {"name": name, "reason": reason}, number)


def _write_etcd(world: World, sections: Sections) -> None:
    sections.number("etcd_server_has_leader", _NONE, 1.0)
    sections.number("etcd_debugging_mvcc_current_revision", _NONE, world.store.revision)
    keys = sum(map(world.store.count, world.store.resources()))
    sections.number("etcd_debugging_mvcc_keys_total", _NONE, keys)


def _write_scheduler(scheduler: Scheduler, sections: Sections) -> None:
    for part, number in scheduler.queue.depths().items():
        sections.number("scheduler_pending_pods", {"queue": part}, number)
    statistics = scheduler.statistics
    for result, attempts in statistics.attempts.items():
        labels = {"profile": PROFILE, "result": result}
        sections.number("scheduler_schedule_attempts_total", labels, attempts.count)
        if attempts.count:
            sections.histogram("scheduler_scheduling_attempt_duration_seconds", labels, attempts)
    sections.histogram("scheduler_scheduling_algorithm_duration_seconds", _NONE, statistics.algorithm)
    for number_of_attempts, waited in statistics.waited.items():
        labels = {"attempts": number_of_attempts}
        sections.histogram("scheduler_pod_scheduling_sli_duration_seconds", labels, waited)
