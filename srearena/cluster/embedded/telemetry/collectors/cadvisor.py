"""cAdvisor, as every kubelet carries it: what containers use of their machine, from their meters.

A container is a set of series of its own for as long as it runs: a restart is another container id, so its counters
start at nothing, and what is gone is stale. A pod has series without a container name (its cgroup as a whole) and the
counters of its network interface, which outlive the containers.

Left out because nothing in the simulation stands behind it: the split of processor time into user and system, block
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
from srearena.cluster.embedded.telemetry.collectors.book import Book
from srearena.cluster.embedded.telemetry.collectors.machine_time import MachineTimes
from srearena.cluster.embedded.telemetry.collectors.node_job import KubeletJob
from srearena.cluster.embedded.telemetry.collectors.vantage import Vantage
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
"""What does not change while a container runs as it is."""
_QUOTA_FIXED = "container_spec_cpu_quota"
_OF_POD = (_CPU, *_SETS, "container_last_seen", "container_start_time_seconds")
_OF_MACHINE = (_CPU, *_SETS, "container_last_seen", "container_start_time_seconds")
_CONSTANT = ("machine_cpu_cores", "machine_memory_bytes")
_COUNTERS = frozenset((_CPU, *_NETWORK, *_QUOTA, "container_memory_failcnt", "container_oom_events_total"))
_HELP = {
    _CPU: "Processor time used.",
    "container_cpu_cfs_periods_total": "Periods in which the quota was at work.",
    "container_cpu_cfs_throttled_periods_total": "Periods in which the quota was used up.",
    "container_cpu_cfs_throttled_seconds_total": "Time spent standing still for want of quota.",
    "container_memory_working_set_bytes": "Memory that cannot be reclaimed.",
    "container_oom_events_total": "Processes killed for want of memory.",
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

    def __init__(self, nodes: Nodes, times: MachineTimes, vantage: Vantage, store: MetricStore) -> None:
        super().__init__(nodes, vantage, store)
        self._times = times
        self._shapes: dict[str, dict[str, list[object]]] = {}
        """By node and pod: of what its series depend on."""

    def forget(self, node: str) -> None:
        self._shapes.pop(node, None)

    def fill(self, book: Book, kubelet: Kubelet, now: float) -> None:
        machine = kubelet.machine
        shapes = self._shapes.setdefault(kubelet.name, {})
        if "/" not in book:
            book.put("/", _machine_labels(machine), [0.0] * (len(_OF_MACHINE) + len(_CONSTANT)))
        sandboxes = machine.sandboxes
        for uid in [uid for uid in shapes if uid not in sandboxes]:
            self._drop(book, shapes, uid)
        for uid, sandbox in sandboxes.items():
            if not sandbox.ready:
                self._drop(book, shapes, uid)
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
                book.set(uid, values)
            else:
                shapes[uid] = shape
                book.put(uid, _labels(sandbox, running), values)
                book.put((uid, "fixed"), *_fixed(sandbox, running, machine))
        book.set("/", self._machine_values(machine, now))

    @staticmethod
    def _drop(book: Book, shapes: dict[str, list[object]], uid: str) -> None:
        if shapes.pop(uid, None) is not None:
            book.drop(uid)
            book.drop((uid, "fixed"))

    def _machine_values(self, machine: Machine, now: float) -> tuple[float, ...]:
        busy, memory = sum(self._times.of(machine).busy(now)), machine.memory_working_set()
        return (busy, memory, memory, memory, now, machine.booted_at, machine.cores, machine.memory)


Running = tuple[ContainerRecord, Container]


def _values(sandbox: Sandbox, running: list[Running], now: float) -> list[float]:
    values: list[float] = []
    spent = held = 0.0
    for _, container in running:
        meter = container.meter
        cpu, memory = meter.cpu_seconds(), meter.working_set
        spent += cpu
        held += memory
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
    values += (spent, held, held, held, now, sandbox.created_at)
    if not sandbox.host_network:
        carried = sandbox.namespace.carried
        values += (carried.received_bytes, carried.received_packets, carried.sent_bytes, carried.sent_packets)
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
    own = {"namespace": namespace_of(pod), "pod": name_of(pod)}
    group = _group(pod, sandbox.uid)
    rows: list[Mapping[str, str]] = []
    for record, container in running:
        labels = _container_labels(sandbox, record)
        names = _OF_CONTAINER if container.meter.cpu_limit is None else (*_OF_CONTAINER, *_QUOTA)
        rows += (_row(name, labels) for name in names)
    rows += (_row(name, {**own, "id": group}) for name in _OF_POD)
    if not sandbox.host_network:
        pause = {**own, "id": f"{group}/cri-containerd-{sandbox.id}.scope", "name": sandbox.id, "interface": "eth0"}
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
    """The pod's cgroup, as systemd names it."""
    quality = qos_class(pod["spec"]).lower()
    place = "kubepods" if quality == "guaranteed" else f"kubepods-{quality}"
    parent = "/kubepods.slice" if quality == "guaranteed" else f"/kubepods.slice/{place}.slice"
    return f"{parent}/{place}-pod{uid.replace('-', '_')}.slice"
