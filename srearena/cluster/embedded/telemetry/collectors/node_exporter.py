"""node-exporter: metrics of a machine's kernel.

Processor time is that of the containers (user) and of the machine's own programs (system), spread evenly over the
processors, which the simulation does not distinguish. There is no page cache and no swap. Disk operations are not
counted anywhere, so there are no `node_disk_*` series, and no time is lost waiting for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import exp

from srearena.cluster.embedded.kubelet.kubelet import Kubelet
from srearena.cluster.embedded.kubelet.nodes import Nodes
from srearena.cluster.embedded.machine.machine import OS_IMAGE, Machine
from srearena.cluster.embedded.network.flows import Flows
from srearena.cluster.embedded.telemetry.collectors.machine_usage import MachineUsages
from srearena.cluster.embedded.telemetry.collectors.node_job import NodeJob
from srearena.cluster.embedded.telemetry.collectors.scraper import Scraper
from srearena.cluster.embedded.telemetry.collectors.series_buffer import SeriesBuffer
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore

_MODES = ("idle", "system", "user")
_MEMORY = ("MemTotal", "MemFree", "MemAvailable", "Buffers", "Cached", "SwapTotal", "SwapFree")
_DISK = {"device": "/dev/sda1", "fstype": "ext4", "mountpoint": "/"}
_FILESYSTEM = ("size_bytes", "free_bytes", "avail_bytes", "readonly", "device_error")
_NETWORK = ("receive_bytes_total", "receive_packets_total", "transmit_bytes_total", "transmit_packets_total")
_PLAIN = ("node_boot_time_seconds", "node_time_seconds", "node_nf_conntrack_entries", "node_nf_conntrack_entries_limit")
_LOADS = (("node_load1", 60.0), ("node_load5", 300.0), ("node_load15", 900.0))


class NodeExporterCollector(NodeJob):
    job = "node-exporter"
    port = 9100
    metrics = (
        ("node_cpu_seconds_total", "counter", "Time the processors spent in each mode."),
        *((f"node_memory_{name}_bytes", "gauge", f"{name} of /proc/meminfo.") for name in _MEMORY),
        *((f"node_filesystem_{name}", "gauge", "The machine's disk.") for name in _FILESYSTEM),
        *((f"node_network_{name}", "counter", "What the machine's interface carried.") for name in _NETWORK),
        ("node_network_up", "gauge", "Whether an interface is up."),
        *((name, "gauge", "Load average.") for name, _ in _LOADS),
        ("node_boot_time_seconds", "gauge", "When the machine was switched on."),
        ("node_time_seconds", "gauge", "System time in seconds since the epoch."),
        ("node_nf_conntrack_entries", "gauge", "Entries in the connection tracking table."),
        ("node_nf_conntrack_entries_limit", "gauge", "How many there may be."),
        ("node_uname_info", "gauge", "Name and kernel of the machine."),
        ("node_os_info", "gauge", "The machine's operating system."),
    )

    def __init__(self, nodes: Nodes, flows: Flows, times: MachineUsages, scraper: Scraper, store: MetricStore) -> None:
        super().__init__(nodes, scraper, store)
        self._flows = flows
        self._usages = times
        self._loads: dict[str, _Load] = {}

    def labels(self, machine: Machine) -> Mapping[str, str]:
        return {"job": self.job, "instance": machine.name}

    def fill(self, buffer: SeriesBuffer, kubelet: Kubelet, now: float) -> None:
        machine = kubelet.machine
        if "node" not in buffer:
            labels = _labels(machine)
            buffer.put("node", labels, [0.0] * len(labels))
        buffer.set("node", self._values(machine, now))

    def _values(self, machine: Machine, now: float) -> list[float]:
        name = machine.name
        time = self._usages.of(machine)
        load = self._loads.get(name)
        if load is None:
            load = self._loads[name] = _Load()
        processors = _processors(machine)
        user, system = time.busy(now)
        idle = max(0.0, machine.cores * (now - machine.booted_at) - user - system)
        memory, runnable = machine.survey()
        free = max(0, machine.memory - memory)
        size, used = machine.disk.limits
        left = max(0, size - used)
        table = self._flows.table(name)
        values: list[float] = [idle / processors, system / processors, user / processors] * processors
        values += (machine.memory, free, free, 0.0, 0.0, 0.0, 0.0)
        values += (size, left, left, 0.0, machine.files.broken is not None)
        values += time.network()
        values += (1.0, *load.after(now, machine, runnable))
        values += (machine.booted_at, machine.now, table.count(now), table.limit, 1.0, 1.0)
        return values


class _Load:
    """The kernel's load averages: runnable programs, exponentially damped over 1, 5 and 15 minutes."""

    __slots__ = ("_at", "_boot", "_values")

    def __init__(self) -> None:
        self._values = [0.0, 0.0, 0.0]
        self._at = 0.0
        self._boot = ""

    def after(self, now: float, machine: Machine, runnable: float) -> list[float]:
        if self._boot != machine.boot_id:
            self._boot, self._at, self._values = machine.boot_id, machine.booted_at, [0.0, 0.0, 0.0]
        passed, self._at = now - self._at, now
        for place, (_, window) in enumerate(_LOADS):
            decay = exp(-passed / window)
            self._values[place] = self._values[place] * decay + runnable * (1 - decay)
        return self._values


def _processors(machine: Machine) -> int:
    return max(1, int(machine.cores))


def _labels(machine: Machine) -> list[Mapping[str, str]]:
    """Return the labels in the order of the values."""
    rows: list[Mapping[str, str]] = [
        {"__name__": "node_cpu_seconds_total", "cpu": str(processor), "mode": mode}
        for processor in range(_processors(machine))
        for mode in _MODES
    ]
    rows += ({"__name__": f"node_memory_{name}_bytes"} for name in _MEMORY)
    rows += ({"__name__": f"node_filesystem_{name}", **_DISK} for name in _FILESYSTEM)
    rows += ({"__name__": f"node_network_{name}", "device": "eth0"} for name in _NETWORK)
    rows.append({"__name__": "node_network_up", "device": "eth0"})
    rows += ({"__name__": name} for name, _ in _LOADS)
    rows += ({"__name__": name} for name in _PLAIN)
    kernel = machine.kernel
    facts = {"release": kernel.release, "version": kernel.version, "machine": kernel.machine, "domainname": "(none)"}
    rows.append({"__name__": "node_uname_info", "nodename": machine.name, "sysname": "Linux", **facts})
    *system, number, name = OS_IMAGE.split()
    release = {"version": f"{number} {name}", "version_id": number, "version_codename": name.strip("()")}
    rows.append(
        {"__name__": "node_os_info", "id": "debian", "name": " ".join(system), "pretty_name": OS_IMAGE, **release}
    )
    return rows
