"""cAdvisor, as part of every kubelet: resource usage of containers, from their meters.

A container has series of its own while it runs: a restart has another container ID, so its counters start at zero and
the previous series become stale. A pod has series without a container name (its cgroup as a whole) and the counters of
its network interface, which outlive the containers.

Reads of the disk are those of an image by its first container on the machine; writes are bytes added to files, on the
container's own layer and on volumes. Interfaces have no hardware errors; packets that a link loses count as dropped by
their sender. Left out because the simulation has no such state: the split of processor time into user and system, and
page faults. There is no page cache: usage, resident and working set agree. Times are whole seconds, as cAdvisor's are.
"""

from __future__ import annotations

from collections.abc import Mapping

from srearena.cluster.embedded.kubelet.kubelet import Kubelet
from srearena.cluster.embedded.kubelet.node.resources import container_of
from srearena.cluster.embedded.kubelet.nodes import Nodes
from srearena.cluster.embedded.machine.containers.container import Container
from srearena.cluster.embedded.machine.containers.memory_parts import MACHINE_RSS, NO_MEMORY, memory_parts
from srearena.cluster.embedded.machine.containers.runtime import ContainerRecord, Sandbox
from srearena.cluster.embedded.machine.machine import Machine
from srearena.cluster.embedded.machine.meter import PERIOD
from srearena.cluster.embedded.objects import Obj, dig, name_of, namespace_of
from srearena.cluster.embedded.quantity import milli
from srearena.cluster.embedded.registry.strategies.pod_resources import qos_class
from srearena.cluster.embedded.telemetry.collectors.machine_usage import (
    READ_BLOCK,
    WRITE_BLOCK,
    ContainerUsage,
    MachineUsages,
)
from srearena.cluster.embedded.telemetry.collectors.node_job import KubeletJob
from srearena.cluster.embedded.telemetry.collectors.scraper import Scraper
from srearena.cluster.embedded.telemetry.collectors.series_buffer import SeriesBuffer
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore

_CPU = "container_cpu_usage_seconds_total"
_SETS = (
    "container_memory_usage_bytes",
    "container_memory_working_set_bytes",
    "container_memory_rss",
    "container_memory_cache",
)
"""In the order of `MemoryParts`."""
_NETWORK = (
    "container_network_receive_bytes_total",
    "container_network_receive_packets_total",
    "container_network_transmit_bytes_total",
    "container_network_transmit_packets_total",
    "container_network_transmit_packets_dropped_total",
)
_NETWORK_FIXED = (
    "container_network_receive_packets_dropped_total",
    "container_network_receive_errors_total",
    "container_network_transmit_errors_total",
)
_QUOTA = (
    "container_cpu_cfs_periods_total",
    "container_cpu_cfs_throttled_periods_total",
    "container_cpu_cfs_throttled_seconds_total",
)
_DISK = (
    "container_fs_reads_bytes_total",
    "container_fs_reads_total",
    "container_fs_writes_bytes_total",
    "container_fs_writes_total",
)
_OF_CONTAINER = (
    _CPU,
    *_SETS,
    "container_memory_max_usage_bytes",
    "container_oom_events_total",
    "container_fs_usage_bytes",
    *_DISK,
    "container_processes",
    "container_threads",
    "container_file_descriptors",
    "container_sockets",
    "container_last_seen",
)
_ULIMIT = "container_ulimits_soft"
_FIXED = (
    "container_start_time_seconds",
    "container_memory_swap",
    "container_memory_failcnt",
    "container_fs_limit_bytes",
    _ULIMIT,
    "container_spec_cpu_period",
    "container_spec_cpu_shares",
    "container_spec_memory_limit_bytes",
    "container_spec_memory_reservation_limit_bytes",
    "container_spec_memory_swap_limit_bytes",
)
"""Metrics that are constant while a container runs."""
_QUOTA_FIXED = "container_spec_cpu_quota"
_OF_POD = (_CPU, *_SETS, "container_last_seen", "container_start_time_seconds")
_OF_MACHINE = (_CPU, *_SETS, "container_last_seen", "container_start_time_seconds")
_CONSTANT = ("machine_cpu_cores", "machine_memory_bytes")
_COUNTERS = frozenset(
    (_CPU, *_NETWORK, *_NETWORK_FIXED, *_QUOTA, *_DISK, "container_memory_failcnt", "container_oom_events_total")
)
_HELP = {
    _CPU: "Processor time used.",
    "container_cpu_cfs_periods_total": "Elapsed enforcement periods.",
    "container_cpu_cfs_throttled_periods_total": "Throttled periods.",
    "container_cpu_cfs_throttled_seconds_total": "Time spent throttled by the quota.",
    "container_memory_working_set_bytes": "Memory that cannot be reclaimed.",
    "container_oom_events_total": "Processes killed out of memory.",
}
_DEVICE = "/dev/sda"
_FILE_SYSTEM = "/dev/sda1"


def _described() -> list[tuple[str, str, str]]:
    names = dict.fromkeys((*_OF_CONTAINER, *_QUOTA, *_FIXED, _QUOTA_FIXED, *_NETWORK, *_NETWORK_FIXED, *_CONSTANT))
    return [
        (name, "counter" if name in _COUNTERS else "gauge", _HELP.get(name, name.replace("_", " ").capitalize() + "."))
        for name in names
    ]


class CadvisorCollector(KubeletJob):
    path = "/metrics/cadvisor"
    metrics = _described()

    def __init__(self, nodes: Nodes, times: MachineUsages, scraper: Scraper, store: MetricStore) -> None:
        super().__init__(nodes, scraper, store)
        self._usages = times
        self._pods: dict[str, dict[str, _Pod]] = {}
        """By node and UID: the pods with series."""

    def forget(self, node: str) -> None:
        self._pods.pop(node, None)

    def fill(self, buffer: SeriesBuffer, kubelet: Kubelet, now: float) -> None:
        machine = kubelet.machine
        pods = self._pods.setdefault(kubelet.name, {})
        usage = self._usages.of(machine)
        usage.update(now)
        if "/" not in buffer:
            buffer.put("/", _machine_labels(machine), [0.0] * (len(_OF_MACHINE) + len(_CONSTANT)))
        sandboxes = machine.sandboxes
        for uid in [uid for uid in pods if uid not in sandboxes]:
            self._drop(buffer, pods, uid)
        for uid, sandbox in sandboxes.items():
            pod = pods.get(uid)
            if pod is not None and pod.sandbox is not sandbox:
                self._drop(buffer, pods, uid)
                pod = None
            if not sandbox.ready:
                self._drop(buffer, pods, uid)
                continue
            if pod is None:
                pod = pods[uid] = _Pod(sandbox)
            changed = pod.find_running(usage.containers)
            values = pod.values(usage.containers, now)
            if not changed:
                buffer.set(uid, values)
            else:
                buffer.put(uid, _labels(sandbox, pod.running), values)
                buffer.put((uid, "fixed"), *_fixed(sandbox, pod.running, machine))
        buffer.set("/", self._machine_values(machine, now))

    @staticmethod
    def _drop(buffer: SeriesBuffer, pods: dict[str, _Pod], uid: str) -> None:
        if pods.pop(uid, None) is not None:
            buffer.drop(uid)
            buffer.drop((uid, "fixed"))

    def _machine_values(self, machine: Machine, now: float) -> tuple[float, ...]:
        usage = self._usages.of(machine)
        busy, memory = _microseconds(sum(usage.busy(now))), machine.memory_working_set() - usage.reclaimed
        cache = usage.page_cache(max(0, machine.memory - memory))
        parts = (memory + cache, memory, int(MACHINE_RSS * memory), cache + int((1 - MACHINE_RSS) * memory))
        return (busy, *parts, int(now), int(machine.booted_at), machine.cores, machine.memory)


Running = tuple[ContainerRecord, Container]


class _Pod:
    """A pod with series: its running containers, and what those that ended have used."""

    __slots__ = ("_ended_cpu", "_shape", "running", "sandbox")

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.running: list[Running] = []
        self._shape: list[object] | None = None
        """The state that determines the series."""
        self._ended_cpu = 0.0

    def find_running(self, usages: Mapping[str, ContainerUsage]) -> bool:
        """Find the running containers; return whether the pod has other series than before."""
        shape: list[object] = []
        running: list[Running] = []
        for record in self.sandbox.running():
            container = record.container
            if container is not None and record.id in usages:
                running.append((record, container))
                shape += (container, container.meter.cpu_limit, container.meter.memory_limit)
        if shape == self._shape:
            return False
        # The cgroup of the pod counts on when a container ends.
        self._ended_cpu += sum(one.meter.cpu_seconds() for _, one in self.running if one not in shape)
        self._shape, self.running = shape, running
        return True

    def values(self, usages: Mapping[str, ContainerUsage], now: float) -> list[float]:
        values: list[float] = []
        pod_cpu, pod_memory = self._ended_cpu, NO_MEMORY
        for record, container in self.running:
            meter, usage = container.meter, usages[record.id]
            cpu, parts = usage.cpu, memory_parts(container, usage.memory)
            pod_cpu += cpu
            pod_memory = parts if pod_memory is NO_MEMORY else pod_memory.plus(parts)
            written = usage.written_bytes
            values += (
                _microseconds(cpu),
                *parts,
                meter.peak_memory + parts.usage - parts.working_set,
                container.oom_killed,
                container.filesystem.root.volume.space.used,
                int(usage.read_bytes),
                int(usage.read_bytes / READ_BLOCK),
                written,
                int(written / WRITE_BLOCK),
                len(container.pids.processes),
                sum(process.thread_count for process in container.pids.processes.values()),
                usage.descriptors,
                usage.sockets,
                int(now),
            )
            if meter.cpu_limit is not None:
                values += (int(meter.nr_periods), int(meter.nr_throttled), _microseconds(meter.throttled_seconds))
        values += (_microseconds(pod_cpu), *pod_memory, int(now), int(self.sandbox.created_at))
        if not self.sandbox.host_network:
            values += map(int, self.sandbox.namespace.carried.totals(now))
        return values


def _microseconds(seconds: float) -> float:
    """Seconds as the kernel counts them for a cgroup: in whole microseconds."""
    return int(seconds * 1e6) / 1e6


def _shares(pod: Obj, name: str) -> float:
    request = dig(container_of(pod, name), "resources", "requests", "cpu")
    return max(2.0, milli(request) * 1024 // 1000) if request else 2.0


def _fixed(sandbox: Sandbox, running: list[Running], machine: Machine) -> tuple[list[Mapping[str, str]], list[float]]:
    rows: list[Mapping[str, str]] = []
    values: list[float] = []
    for record, container in running:
        labels, meter = _container_labels(sandbox, record), container.meter
        rows += (_row(name, labels) for name in _FIXED)
        values += (int(record.started_at), 0.0, 0.0, machine.disk.capacity or 0, container.nofile, PERIOD * 1e6)
        values += (_shares(sandbox.pod, record.name), meter.memory_limit or 0, 0.0, 0.0)
        if meter.cpu_limit is not None:
            rows.append(_row(_QUOTA_FIXED, labels))
            values.append(round(meter.cpu_limit * PERIOD * 1e6))
    if not sandbox.host_network:
        rows += ({"__name__": name, **_interface_labels(sandbox)} for name in _NETWORK_FIXED)
        values += (0.0 for _ in _NETWORK_FIXED)
    return rows, values


def _container_labels(sandbox: Sandbox, record: ContainerRecord) -> dict[str, str]:
    pod = sandbox.pod
    return {
        "namespace": namespace_of(pod),
        "pod": name_of(pod),
        "container": record.name,
        "image": str(record.image.reference),
        "name": record.id,
        "id": f"{_group(pod, sandbox.uid)}/cri-containerd-{record.id}.scope",
    }


def _labels(sandbox: Sandbox, running: list[Running]) -> list[Mapping[str, str]]:
    pod = sandbox.pod
    pod_labels = {"namespace": namespace_of(pod), "pod": name_of(pod)}
    group = _group(pod, sandbox.uid)
    rows: list[Mapping[str, str]] = []
    for record, container in running:
        labels = _container_labels(sandbox, record)
        names = _OF_CONTAINER if container.meter.cpu_limit is None else (*_OF_CONTAINER, *_QUOTA)
        rows += (_row(name, labels) for name in names)
    rows += (_row(name, {**pod_labels, "id": group}) for name in _OF_POD)
    if not sandbox.host_network:
        rows += ({"__name__": name, **_interface_labels(sandbox)} for name in _NETWORK)
    return rows


def _interface_labels(sandbox: Sandbox) -> dict[str, str]:
    pod = sandbox.pod
    return {
        "namespace": namespace_of(pod),
        "pod": name_of(pod),
        "id": f"{_group(pod, sandbox.uid)}/cri-containerd-{sandbox.id}.scope",
        "name": sandbox.id,
        "interface": "eth0",
    }


def _machine_labels(machine: Machine) -> list[Mapping[str, str]]:
    facts = {"boot_id": machine.boot_id, "machine_id": machine.machine_id, "system_uuid": machine.system_uuid}
    return [*(_row(name, {"id": "/"}) for name in _OF_MACHINE), *({"__name__": name, **facts} for name in _CONSTANT)]


def _row(name: str, labels: Mapping[str, str]) -> Mapping[str, str]:
    row = {"__name__": name, **labels}
    if name == _CPU:
        row["cpu"] = "total"
    elif name == _ULIMIT:
        row["ulimit"] = "max_open_files"
    elif name.startswith("container_fs_"):
        row["device"] = _DEVICE if name in _DISK else _FILE_SYSTEM
    return row


def _group(pod: Obj, uid: str) -> str:
    """Return the pod's cgroup in systemd's notation."""
    quality = qos_class(pod["spec"]).lower()
    slice_name = "kubepods" if quality == "guaranteed" else f"kubepods-{quality}"
    parent = "/kubepods.slice" if quality == "guaranteed" else f"/kubepods.slice/{slice_name}.slice"
    return f"{parent}/{slice_name}-pod{uid.replace('-', '_')}.slice"
