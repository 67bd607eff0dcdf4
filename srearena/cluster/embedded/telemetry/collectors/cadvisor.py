"""cAdvisor, as part of every kubelet: resource usage of containers, from their meters.

A container has series of its own while it runs: a restart has another container ID, so its counters start at zero and
the previous series become stale. A pod has series without a container name (its cgroup as a whole) and the counters of
its network interface, which outlive the containers.

Left out because the simulation has no such state: the split of processor time into user and system, block
device reads and writes, page faults, interface errors. There is no page cache: usage, resident and working set agree.
"""

from __future__ import annotations

from collections.abc import Mapping

from srearena.cluster.embedded.kubelet.kubelet import Kubelet
from srearena.cluster.embedded.kubelet.node.resources import container_of
from srearena.cluster.embedded.kubelet.nodes import Nodes
from srearena.cluster.embedded.machine.containers.container import Container
from srearena.cluster.embedded.machine.containers.runtime import ContainerRecord, Sandbox
from srearena.cluster.embedded.machine.machine import Machine
from srearena.cluster.embedded.machine.meter import PERIOD
from srearena.cluster.embedded.objects import Obj, dig, name_of, namespace_of
from srearena.cluster.embedded.quantity import milli
from srearena.cluster.embedded.registry.strategies.pod_resources import qos_class
from srearena.cluster.embedded.telemetry.collectors.machine_usage import MachineUsages
from srearena.cluster.embedded.telemetry.collectors.node_job import KubeletJob
from srearena.cluster.embedded.telemetry.collectors.scraper import Scraper
from srearena.cluster.embedded.telemetry.collectors.series_buffer import SeriesBuffer
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore

_CPU = "container_cpu_usage_seconds_total"
_SETS = ("container_memory_working_set_bytes", "container_memory_usage_bytes", "container_memory_rss")
_NETWORK = (
    "container_network_receive_bytes_total",
    "container_network_receive_packets_total",
    "container_network_transmit_bytes_total",
    "container_network_transmit_packets_total",
)
_QUOTA = (
    "container_cpu_cfs_periods_total",
    "container_cpu_cfs_throttled_periods_total",
    "container_cpu_cfs_throttled_seconds_total",
)
_OF_CONTAINER = (
    _CPU,
    *_SETS,
    "container_memory_max_usage_bytes",
    "container_oom_events_total",
    "container_fs_usage_bytes",
    "container_processes",
    "container_last_seen",
)
_FIXED = (
    "container_start_time_seconds",
    "container_memory_cache",
    "container_memory_swap",
    "container_memory_failcnt",
    "container_fs_limit_bytes",
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
_COUNTERS = frozenset((_CPU, *_NETWORK, *_QUOTA, "container_memory_failcnt", "container_oom_events_total"))
_HELP = {
    _CPU: "Processor time used.",
    "container_cpu_cfs_periods_total": "Elapsed enforcement periods.",
    "container_cpu_cfs_throttled_periods_total": "Throttled periods.",
    "container_cpu_cfs_throttled_seconds_total": "Time spent throttled by the quota.",
    "container_memory_working_set_bytes": "Memory that cannot be reclaimed.",
    "container_oom_events_total": "Processes killed out of memory.",
}
_DEVICE = "/dev/sda1"


def _described() -> list[tuple[str, str, str]]:
    names = dict.fromkeys((*_OF_CONTAINER, *_QUOTA, *_FIXED, _QUOTA_FIXED, *_NETWORK, *_CONSTANT))
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
        self._shapes: dict[str, dict[str, list[object]]] = {}
        """By node and pod: the state that determines its series."""

    def forget(self, node: str) -> None:
        self._shapes.pop(node, None)

    def fill(self, buffer: SeriesBuffer, kubelet: Kubelet, now: float) -> None:
        machine = kubelet.machine
        shapes = self._shapes.setdefault(kubelet.name, {})
        if "/" not in buffer:
            buffer.put("/", _machine_labels(machine), [0.0] * (len(_OF_MACHINE) + len(_CONSTANT)))
        sandboxes = machine.sandboxes
        for uid in [uid for uid in shapes if uid not in sandboxes]:
            self._drop(buffer, shapes, uid)
        for uid, sandbox in sandboxes.items():
            if not sandbox.ready:
                self._drop(buffer, shapes, uid)
                continue
            shape: list[object] = []
            running: list[Running] = []
            for record in sandbox.running():
                container = record.container
                if container is not None:
                    running.append((record, container))
                    shape += (container, container.meter.cpu_limit, container.meter.memory_limit)
            values = _values(sandbox, running, now)
            if shapes.get(uid) == shape:
                buffer.set(uid, values)
            else:
                shapes[uid] = shape
                buffer.put(uid, _labels(sandbox, running), values)
                buffer.put((uid, "fixed"), *_fixed(sandbox, running, machine))
        buffer.set("/", self._machine_values(machine, now))

    @staticmethod
    def _drop(buffer: SeriesBuffer, shapes: dict[str, list[object]], uid: str) -> None:
        if shapes.pop(uid, None) is not None:
            buffer.drop(uid)
            buffer.drop((uid, "fixed"))

    def _machine_values(self, machine: Machine, now: float) -> tuple[float, ...]:
        busy, memory = sum(self._usages.of(machine).busy(now)), machine.memory_working_set()
        return (busy, memory, memory, memory, now, machine.booted_at, machine.cores, machine.memory)


Running = tuple[ContainerRecord, Container]


def _values(sandbox: Sandbox, running: list[Running], now: float) -> list[float]:
    values: list[float] = []
    pod_cpu = pod_memory = 0.0
    for _, container in running:
        meter = container.meter
        cpu, memory = meter.cpu_seconds(), meter.working_set
        pod_cpu += cpu
        pod_memory += memory
        values += (
            cpu,
            memory,
            memory,
            memory,
            meter.peak_memory,
            container.oom_killed,
            container.filesystem.root.volume.space.used,
            len(container.pids.processes),
            now,
        )
        if meter.cpu_limit is not None:
            values += (meter.nr_periods, meter.nr_throttled, meter.throttled_seconds)
    values += (pod_cpu, pod_memory, pod_memory, pod_memory, now, sandbox.created_at)
    if not sandbox.host_network:
        counters = sandbox.namespace.carried
        values += (counters.received_bytes, counters.received_packets, counters.sent_bytes, counters.sent_packets)
    return values


def _shares(pod: Obj, name: str) -> float:
    request = dig(container_of(pod, name), "resources", "requests", "cpu")
    return max(2.0, milli(request) * 1024 // 1000) if request else 2.0


def _fixed(sandbox: Sandbox, running: list[Running], machine: Machine) -> tuple[list[Mapping[str, str]], list[float]]:
    rows: list[Mapping[str, str]] = []
    values: list[float] = []
    for record, container in running:
        labels, meter = _container_labels(sandbox, record), container.meter
        rows += (_row(name, labels) for name in _FIXED)
        values += (record.started_at, 0.0, 0.0, 0.0, machine.disk.capacity or 0, PERIOD * 1e6)
        values += (_shares(sandbox.pod, record.name), meter.memory_limit or 0, 0.0, 0.0)
        if meter.cpu_limit is not None:
            rows.append(_row(_QUOTA_FIXED, labels))
            values.append(meter.cpu_limit * PERIOD * 1e6)
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
        pause = {
            **pod_labels,
            "id": f"{group}/cri-containerd-{sandbox.id}.scope",
            "name": sandbox.id,
            "interface": "eth0",
        }
        rows += ({"__name__": name, **pause} for name in _NETWORK)
    return rows


def _machine_labels(machine: Machine) -> list[Mapping[str, str]]:
    facts = {"boot_id": machine.boot_id, "machine_id": machine.machine_id, "system_uuid": machine.system_uuid}
    return [*(_row(name, {"id": "/"}) for name in _OF_MACHINE), *({"__name__": name, **facts} for name in _CONSTANT)]


def _row(name: str, labels: Mapping[str, str]) -> Mapping[str, str]:
    row = {"__name__": name, **labels}
    if name == _CPU:
        row["cpu"] = "total"
    elif name.startswith("container_fs_"):
        row["device"] = _DEVICE
    return row


def _group(pod: Obj, uid: str) -> str:
    """Return the pod's cgroup in systemd's notation."""
    quality = qos_class(pod["spec"]).lower()
    slice_name = "kubepods" if quality == "guaranteed" else f"kubepods-{quality}"
    parent = "/kubepods.slice" if quality == "guaranteed" else f"/kubepods.slice/{slice_name}.slice"
    return f"{parent}/{slice_name}-pod{uid.replace('-', '_')}.slice"
