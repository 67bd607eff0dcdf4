"""Metrics of the kubelet: the pods it runs, the volumes of their claims, the results of probes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from srearena.cluster.embedded.instruments import Fluctuation, Histogram
from srearena.cluster.embedded.kubelet.kubelet import RELIST_SECONDS, Kubelet
from srearena.cluster.embedded.kubelet.node.node_object import KUBELET_VERSION
from srearena.cluster.embedded.kubelet.nodes import Nodes
from srearena.cluster.embedded.kubelet.pods.worker import PodWorker
from srearena.cluster.embedded.kubelet.probing.probes import Probe
from srearena.cluster.embedded.kubelet.statistics import (
    DEFAULT_BOUNDS,
    RUNTIME_BOUNDS,
    SYNC,
    TOKEN_MOUNT,
    Statistics,
    plugin_of,
)
from srearena.cluster.embedded.kubelet.summary import BYTES_PER_FILE, BYTES_PER_INODE
from srearena.cluster.embedded.kubelet.volumes.volumes import needed_volumes
from srearena.cluster.embedded.machine.files.mounted_volume import MountedVolume
from srearena.cluster.embedded.machine.machine import Machine
from srearena.cluster.embedded.objects import name_of, namespace_of
from srearena.cluster.embedded.telemetry.collectors import go_process
from srearena.cluster.embedded.telemetry.collectors.api_requests import ApiRequests
from srearena.cluster.embedded.telemetry.collectors.collector import SLOW_INTERVAL
from srearena.cluster.embedded.telemetry.collectors.control_plane import CLIENT_METRICS, write_client
from srearena.cluster.embedded.telemetry.collectors.go_process import GoProcess
from srearena.cluster.embedded.telemetry.collectors.machine_usage import MachineUsages
from srearena.cluster.embedded.telemetry.collectors.node_job import KubeletJob
from srearena.cluster.embedded.telemetry.collectors.scraper import Scraper
from srearena.cluster.embedded.telemetry.collectors.sections import Sections, histogram_rows
from srearena.cluster.embedded.telemetry.collectors.series_buffer import SeriesBuffer
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore

_STATES = ("created", "exited", "running")
_VOLUME = (
    "kubelet_volume_stats_capacity_bytes",
    "kubelet_volume_stats_available_bytes",
    "kubelet_volume_stats_used_bytes",
    "kubelet_volume_stats_inodes",
    "kubelet_volume_stats_inodes_free",
    "kubelet_volume_stats_inodes_used",
    "kubelet_volume_stats_health_status_abnormal",
)
_NONE: Mapping[str, str] = {}
_OF_SYNCS = {"operation_type": SYNC}
_LISTINGS = ("list_containers", "list_podsandbox")
INFORMERS = ("nodes", "pods", "services", "csidrivers.storage.k8s.io", "runtimeclasses.node.k8s.io")
_MEMORY = 68 * 1024**2
_MEMORY_PER_POD = 900_000
"""Resident memory of the kubelet: a base, and what each pod adds. Chosen: a kind worker's has 70 to 90 MiB."""
_SYSTEM_SHARE = 0.55
"""Share of the system's processor time that is the kubelet's; the rest is the runtime's and the kernel's."""
_RELIST_SECONDS = 0.0028
_RELIST_PER_CONTAINER = 0.00012
"""Median duration of a relist, and what each container adds. Chosen."""
_CGROUP_UPDATES = 3 / 60.0
"""Updates a second: the cgroups of the three QoS classes, once a minute."""
_CERTIFICATE_SECONDS = 365 * 86_400.0
_INODES_OF_EMPTY = 11
"""Inodes that a new ext4 file system uses itself."""


def _relist_rows() -> list[Mapping[str, str]]:
    rows = [
        *histogram_rows("kubelet_pleg_relist_duration_seconds", _NONE, DEFAULT_BOUNDS),
        *histogram_rows("kubelet_pleg_relist_interval_seconds", _NONE, DEFAULT_BOUNDS),
    ]
    for operation in _LISTINGS:
        labels = {"operation_type": operation}
        rows.append({"__name__": "kubelet_runtime_operations_total", **labels})
        rows += histogram_rows("kubelet_runtime_operations_duration_seconds", labels, RUNTIME_BOUNDS)
    updates = {"operation_type": "update"}
    return [*rows, *histogram_rows("kubelet_cgroup_manager_duration_seconds", updates, DEFAULT_BOUNDS)]


_RELIST_ROWS = _relist_rows()


class _Relists:
    """The relists of one kubelet: their number is real, their duration follows from the containers on the machine."""

    def __init__(self) -> None:
        self.durations = Histogram(DEFAULT_BOUNDS)
        self.intervals = Histogram(DEFAULT_BOUNDS)
        self.listings = Histogram(RUNTIME_BOUNDS)
        """Each relist lists sandboxes and containers."""
        self.updates = Histogram(DEFAULT_BOUNDS)

    def catch_up(self, kubelet: Kubelet, now: float) -> None:
        elapsed = now - kubelet.statistics.started_at
        number = int(elapsed / RELIST_SECONDS) - self.durations.count
        machine = kubelet.machine
        seconds = _RELIST_SECONDS + _RELIST_PER_CONTAINER * len(machine.live)
        if machine.contended:
            seconds *= max(1.0, machine.survey()[1] / machine.cores)
        self.durations.observe_spread(number, seconds)
        self.intervals.observe_spread(number, RELIST_SECONDS + seconds, 0.01)
        self.listings.observe_spread(number, seconds / 2)
        self.updates.observe_spread(int(elapsed * _CGROUP_UPDATES) - self.updates.count, 0.0012)

    def values(self) -> list[float]:
        """Return the values of `_RELIST_ROWS`: they move together, at every scrape."""
        listings = self.listings.values()
        values = [*self.durations.values(), *self.intervals.values()]
        for _ in _LISTINGS:
            values += (self.listings.count, *listings)
        return [*values, *self.updates.values()]


class _Agent:
    """What belongs to one kubelet process."""

    def __init__(self, statistics: Statistics, buffer: SeriesBuffer, machine: Machine) -> None:
        self.statistics = statistics
        self.buffer = buffer
        self.sections = Sections(buffer)
        self.relists = _Relists()
        self.process = GoProcess(f"{machine.machine_id}/kubelet/{statistics.started_at}")
        self.memory = Fluctuation(f"{machine.machine_id}/kubelet/memory")
        self.volumes: list[int] = []
        self.version = -1


class KubeletCollector(KubeletJob):
    path = "/metrics"
    interval = SLOW_INTERVAL
    metrics = (
        *go_process.METRICS,
        *CLIENT_METRICS,
        ("kubelet_running_pods", "gauge", "Pods with a running sandbox."),
        ("kubelet_running_containers", "gauge", "Containers by state."),
        ("kubelet_node_name", "gauge", "The node's name."),
        ("kubernetes_build_info", "gauge", "The kubelet's version."),
        ("kubelet_volume_stats_capacity_bytes", "gauge", "Size of a claim's volume."),
        ("kubelet_volume_stats_available_bytes", "gauge", "What is free of it."),
        ("kubelet_volume_stats_used_bytes", "gauge", "What is used of it."),
        ("kubelet_volume_stats_inodes", "gauge", "Inodes of a claim's volume."),
        ("kubelet_volume_stats_inodes_free", "gauge", "How many of them are free."),
        ("kubelet_volume_stats_inodes_used", "gauge", "How many of them are used."),
        ("kubelet_volume_stats_health_status_abnormal", "gauge", "1 where the volume cannot be used."),
        ("kubelet_pleg_relist_duration_seconds", "histogram", "Duration of a listing of the runtime's containers."),
        ("kubelet_pleg_relist_interval_seconds", "histogram", "Time between two listings."),
        ("kubelet_pod_worker_duration_seconds", "histogram", "Duration of a sync of a pod, by type of operation."),
        ("kubelet_pod_start_duration_seconds", "histogram", "Time from the first sight of a pod until it runs."),
        ("kubelet_runtime_operations_total", "counter", "Operations of the container runtime."),
        ("kubelet_runtime_operations_errors_total", "counter", "Operations of the container runtime that failed."),
        ("kubelet_runtime_operations_duration_seconds", "histogram", "Duration of operations of the runtime."),
        ("kubelet_cgroup_manager_duration_seconds", "histogram", "Duration of operations on cgroups."),
        ("kubelet_evictions", "counter", "Pods evicted by the kubelet, by signal."),
        ("kubelet_certificate_manager_client_ttl_seconds", "gauge", "Remaining lifetime of the client certificate."),
        ("kubelet_certificate_manager_server_ttl_seconds", "gauge", "Remaining lifetime of the server certificate."),
        ("kubelet_certificate_manager_client_expiration_renew_errors", "gauge", "Failed renewals of the certificate."),
        ("kubelet_server_expiration_renew_errors", "gauge", "Failed renewals of the server certificate."),
        ("storage_operation_duration_seconds", "histogram", "Duration of operations on volumes."),
        ("volume_manager_total_volumes", "gauge", "Volumes, by plugin: those wanted, and those mounted."),
    )

    def __init__(
        self, nodes: Nodes, requests: ApiRequests, usages: MachineUsages, scraper: Scraper, store: MetricStore
    ) -> None:
        super().__init__(nodes, scraper, store)
        self._claims: dict[str, dict[str, list[tuple[str, str]]]] = {}
        """By node and pod: volumes and their claims, which are immutable."""
        self._mounts: dict[str, list[tuple[str, str]]] = {}
        """By node: the claims with series."""
        self._agents: dict[str, _Agent] = {}
        self._requests = requests
        self._usages = usages
        server = nodes.kubelets[nodes.world.control_plane_name].machine
        self._host = f"{server.address}:6443"

    def forget(self, node: str) -> None:
        self._agents.pop(node, None)

    def fill(self, buffer: SeriesBuffer, kubelet: Kubelet, now: float) -> None:
        agent = self._agents.get(kubelet.name)
        if agent is None or agent.statistics is not kubelet.statistics:
            if agent is not None:
                agent.sections.reset(now)
                self._requests.forget(kubelet.client.user.name)
            agent = self._agents[kubelet.name] = _Agent(kubelet.statistics, buffer, kubelet.machine)
            self._requests.register(
                kubelet.client.user.name,
                kubelet.machine,
                lambda: kubelet.running and kubelet.online,
                lambda: INFORMERS,
            )
            rows: list[Mapping[str, str]] = [{"__name__": "kubelet_running_pods"}]
            rows += ({"__name__": "kubelet_running_containers", "container_state": state} for state in _STATES)
            rows.append({"__name__": "kubelet_node_name"})
            version = {"git_version": KUBELET_VERSION, "major": "1", "minor": KUBELET_VERSION.split(".")[1]}
            rows.append({"__name__": "kubernetes_build_info", **version, "platform": "linux/amd64"})
            rows.append({"__name__": "kubelet_certificate_manager_client_expiration_renew_errors"})
            rows.append({"__name__": "kubelet_server_expiration_renew_errors"})
            rows.append({"__name__": "kubelet_certificate_manager_client_ttl_seconds"})
            rows.append({"__name__": "kubelet_certificate_manager_server_ttl_seconds"})
            buffer.put("kubelet", rows, [0.0] * len(rows))
        lifetime = _CERTIFICATE_SECONDS - int(now - kubelet.machine.booted_at)
        buffer.set("kubelet", (*_running(kubelet), 1.0, 1.0, 0.0, 0.0, lifetime, lifetime))
        self._write_process(agent, kubelet, now)
        self._write_statistics(agent, kubelet, now)
        self._write_volumes(agent, kubelet)
        self._volumes(buffer, kubelet)
        agent.sections.fresh = False

    def _write_process(self, agent: _Agent, kubelet: Kubelet, now: float) -> None:
        pods = len(kubelet.workers)
        memory = (_MEMORY + pods * _MEMORY_PER_POD) * (1 + 0.03 * agent.memory.at(now))
        started = kubelet.statistics.started_at
        _, system = self._usages.of(kubelet.machine).busy(now)
        since_boot = max(1.0, now - kubelet.machine.booted_at)
        cpu = _SYSTEM_SHARE * system * (now - started) / since_boot
        values = agent.process.values(now, started, cpu, memory, workers=len(INFORMERS) + pods)
        agent.sections.numbers("process", go_process.ROWS, values)

    def _write_statistics(self, agent: _Agent, kubelet: Kubelet, now: float) -> None:
        sections, statistics, relists = agent.sections, agent.statistics, agent.relists
        relists.catch_up(kubelet, now)
        sections.numbers("relists", _RELIST_ROWS, relists.values())
        self._requests.update(now)
        write_client(sections, self._requests.of(kubelet.client.user.name), self._host)
        statistics.repeat_syncs(now, len(kubelet.workers))
        if not sections.fresh and agent.version == statistics.version:
            if SYNC in statistics.pod_workers:
                durations = statistics.pod_workers[SYNC]
                sections.histogram("kubelet_pod_worker_duration_seconds", _OF_SYNCS, durations)
            if TOKEN_MOUNT in statistics.storage_operations:
                _write_storage(sections, TOKEN_MOUNT, statistics.storage_operations[TOKEN_MOUNT])
            return
        agent.version = statistics.version
        _write_operations(sections, statistics.runtime_operations)
        for operation, number in statistics.runtime_errors.items():
            sections.number("kubelet_runtime_operations_errors_total", {"operation_type": operation}, number)
        for operation, durations in statistics.pod_workers.items():
            sections.histogram("kubelet_pod_worker_duration_seconds", {"operation_type": operation}, durations)
        sections.histogram("kubelet_pod_start_duration_seconds", _NONE, statistics.pod_starts)
        for operation, durations in statistics.cgroups.items():
            sections.histogram("kubelet_cgroup_manager_duration_seconds", {"operation_type": operation}, durations)
        for key, durations in statistics.storage_operations.items():
            _write_storage(sections, key, durations)
        for signal, number in statistics.evictions.items():
            sections.number("kubelet_evictions", {"eviction_signal": signal}, number)

    @staticmethod
    def _write_volumes(agent: _Agent, kubelet: Kubelet) -> None:
        """Write the numbers of wanted and mounted volumes, if they changed."""
        numbers = [len(worker.volumes) for worker in kubelet.workers.values()]
        if numbers == agent.volumes:
            return
        agent.volumes = numbers
        wanted: Counter[str] = Counter()
        mounted: Counter[str] = Counter()
        for worker in kubelet.workers.values():
            for volume in needed_volumes(worker.pod):
                plugin = plugin_of(volume)
                wanted[plugin] += 1
                mounted[plugin] += volume["name"] in worker.volumes
        for state, found in (("desired_state_of_world", wanted), ("actual_state_of_world", mounted)):
            for plugin in wanted:
                labels = {"plugin_name": plugin, "state": state}
                agent.sections.number("volume_manager_total_volumes", labels, found[plugin])

    def _volumes(self, buffer: SeriesBuffer, kubelet: Kubelet) -> None:
        workers, claims = kubelet.workers, self._claims.setdefault(kubelet.name, {})
        if claims.keys() != workers.keys():
            claims = self._claims[kubelet.name] = {uid: _claims_of(worker) for uid, worker in workers.items()}
        mounts: dict[tuple[str, str], MountedVolume] = {}
        for uid, pairs in claims.items():
            for name, claim in pairs:
                mounted = workers[uid].volumes.get(name)
                if mounted is not None:
                    mounts[namespace_of(workers[uid].pod), claim] = mounted
        for key in [key for key in self._mounts.get(kubelet.name, ()) if key not in mounts]:
            buffer.drop(key)
        self._mounts[kubelet.name] = list(mounts)
        for key, mounted in mounts.items():
            size, used = mounted.volume.space.limits
            inodes = size // BYTES_PER_INODE
            taken = min(inodes, _INODES_OF_EMPTY + used // BYTES_PER_FILE)
            values = (size, max(0, size - used), used, inodes, inodes - taken, taken, mounted.volume.broken is not None)
            if key in buffer:
                buffer.set(key, values)
            else:
                labels = {"namespace": key[0], "persistentvolumeclaim": key[1]}
                buffer.put(key, [{"__name__": name, **labels} for name in _VOLUME], values)


def _write_operations(sections: Sections, operations: Mapping[str, Histogram]) -> None:
    for operation, durations in operations.items():
        labels = {"operation_type": operation}
        sections.number("kubelet_runtime_operations_total", labels, durations.count)
        sections.histogram("kubelet_runtime_operations_duration_seconds", labels, durations)


def _write_storage(sections: Sections, key: tuple[str, str, str], durations: Histogram) -> None:
    operation, plugin, status = key
    labels = {"migrated": "false", "operation_name": operation, "status": status, "volume_plugin": plugin}
    sections.histogram("storage_operation_duration_seconds", labels, durations)


def _claims_of(worker: PodWorker) -> list[tuple[str, str]]:
    """Return the volumes of a pod that are claims, and the claims."""
    pairs: list[tuple[str, str]] = []
    for spec in worker.pod["spec"].get("volumes") or ():
        if spec.get("persistentVolumeClaim"):
            pairs.append((spec["name"], spec["persistentVolumeClaim"]["claimName"]))
        elif spec.get("ephemeral"):
            pairs.append((spec["name"], f"{name_of(worker.pod)}-{spec['name']}"))
    return pairs


def _running(kubelet: Kubelet) -> tuple[float, ...]:
    """Return the numbers of pods, then of created, exited and running containers."""
    pods = containers = exited = 0
    for sandbox in kubelet.machine.sandboxes.values():
        pods += sandbox.ready
        for attempts in sandbox.records.values():
            for record in attempts:
                containers += 1
                if record.finished_at is not None:
                    exited += 1
    running = len(kubelet.machine.live)
    return pods, containers - exited - running, exited, running


class ProbeCollector(KubeletJob):
    path = "/metrics/probes"
    metrics = (("prober_probe_total", "counter", "Results of the probes of containers."),)

    def __init__(self, nodes: Nodes, scraper: Scraper, store: MetricStore) -> None:
        super().__init__(nodes, scraper, store)
        self._shapes: dict[str, list[_ProbeResult]] = {}
        """By pod: the state that determines its series."""

    def fill(self, buffer: SeriesBuffer, kubelet: Kubelet, now: float) -> None:
        workers = kubelet.workers
        for uid in [uid for uid in buffer if uid not in workers]:
            buffer.drop(uid)
        for uid, worker in workers.items():
            shape: list[_ProbeResult] = []
            values: list[float] = []
            for probe in worker.probes_begun:
                shape.append((probe, "successful"))
                values.append(probe.successes)
                if probe.failures:
                    shape.append((probe, "failed"))
                    values.append(probe.failures)
                if probe.unknowns:
                    shape.append((probe, "unknown"))
                    values.append(probe.unknowns)
            if uid in buffer and self._shapes[uid] == shape:
                buffer.set(uid, values)
            elif shape:
                self._shapes[uid] = shape
                pod_labels = {"namespace": namespace_of(worker.pod), "pod": name_of(worker.pod), "pod_uid": str(uid)}
                buffer.put(uid, [_probe_labels(pod_labels, result) for result in shape], values)


_ProbeResult = tuple[Probe, str]
"""A probe and its result."""


def _probe_labels(pod_labels: Mapping[str, str], probe_result: _ProbeResult) -> Mapping[str, str]:
    probe, result = probe_result
    about = {"container": probe.container["name"], "probe_type": probe.kind.capitalize(), "result": result}
    return {"__name__": "prober_probe_total", **pod_labels, **about}
