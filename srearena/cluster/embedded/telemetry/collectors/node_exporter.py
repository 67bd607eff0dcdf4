"""node-exporter: metrics of a machine's kernel.

Processor time is that of the containers (user) and of the machine's own programs (system); what is waited for the disk
is `iowait`. The simulation does not distinguish processors: some get more than others, the less the busier the machine
is. Disk traffic is that of files, logs, images and etcd (see `machine_usage`). The page cache holds what was read and
written, as far as memory is free. There is no swap. Interfaces have no hardware errors; packets that a link loses count
as dropped by their sender.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import cos, exp, pi
from zlib import crc32

from srearena.cluster.embedded.kubelet.kubelet import Kubelet
from srearena.cluster.embedded.kubelet.nodes import Nodes
from srearena.cluster.embedded.kubelet.summary import BYTES_PER_FILE, BYTES_PER_INODE
from srearena.cluster.embedded.machine.containers.runtime import Sandbox
from srearena.cluster.embedded.machine.machine import OS_IMAGE, Machine
from srearena.cluster.embedded.network.flows import Flows
from srearena.cluster.embedded.objects import Obj, labels_of, name_of, namespace_of
from srearena.cluster.embedded.telemetry.collectors.machine_usage import MachineUsages
from srearena.cluster.embedded.telemetry.collectors.node_job import NodeJob
from srearena.cluster.embedded.telemetry.collectors.scraper import Scraper
from srearena.cluster.embedded.telemetry.collectors.series_buffer import SeriesBuffer
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore

_NAMESPACE = "kube-system"
_MODES = ("idle", "iowait", "system", "user")
_MEMORY = (
    "MemTotal",
    "MemFree",
    "MemAvailable",
    "Buffers",
    "Cached",
    "Slab",
    "SwapTotal",
    "SwapFree",
)
_DISK = {"device": "/dev/sda1", "fstype": "ext4", "mountpoint": "/"}
_FILESYSTEM = ("size_bytes", "free_bytes", "avail_bytes", "readonly", "device_error", "files", "files_free")
_NETWORK = (
    "receive_bytes_total",
    "receive_packets_total",
    "transmit_bytes_total",
    "transmit_packets_total",
    "receive_drop_total",
    "receive_errs_total",
    "transmit_drop_total",
    "transmit_errs_total",
)
_BLOCK_DEVICE = (
    ("read_bytes_total", "Bytes read."),
    ("written_bytes_total", "Bytes written."),
    ("reads_completed_total", "Completed reads."),
    ("writes_completed_total", "Completed writes."),
    ("read_time_seconds_total", "Time spent by all reads."),
    ("write_time_seconds_total", "Time spent by all writes."),
    ("io_time_seconds_total", "Time in which the device was busy."),
    ("io_time_weighted_seconds_total", "Time in which the device was busy, by the number of requests in progress."),
)
_GAUGES = (
    ("node_boot_time_seconds", "When the machine was switched on."),
    ("node_time_seconds", "System time in seconds since the epoch."),
    ("node_nf_conntrack_entries", "Entries in the connection tracking table."),
    ("node_nf_conntrack_entries_limit", "How many there may be."),
    ("node_filefd_allocated", "Open file descriptors."),
    ("node_filefd_maximum", "How many there may be."),
    ("node_sockstat_sockets_used", "Sockets in use."),
    ("node_sockstat_TCP_inuse", "TCP sockets in use."),
    ("node_sockstat_TCP_alloc", "Allocated TCP sockets."),
    ("node_sockstat_TCP_tw", "TCP sockets in TIME_WAIT."),
    ("node_sockstat_UDP_inuse", "UDP sockets in use."),
    ("node_textfile_scrape_error", "1 if the text files could not be read."),
    ("node_timex_offset_seconds", "Offset of the local clock from the reference."),
    ("node_timex_maxerror_seconds", "Largest possible error of the local clock."),
    ("node_timex_estimated_error_seconds", "Estimated error of the local clock."),
    ("node_timex_sync_status", "1 if the clock is synchronized to a reference."),
)
_UNTYPED = (
    ("node_netstat_Tcp_InSegs", "TCP segments received."),
    ("node_netstat_Tcp_OutSegs", "TCP segments sent."),
    ("node_netstat_Tcp_RetransSegs", "TCP segments sent again."),
    ("node_netstat_TcpExt_TCPSynRetrans", "SYN segments sent again."),
    ("node_netstat_TcpExt_ListenDrops", "Connections dropped before they were accepted."),
    ("node_netstat_TcpExt_ListenOverflows", "Connections that found the listen queue full."),
    ("node_netstat_Tcp_CurrEstab", "Established TCP connections."),
    ("node_vmstat_pgfault", "Page faults."),
    ("node_vmstat_pgmajfault", "Page faults that read from the disk."),
    ("node_vmstat_pgpgin", "Kilobytes read from the disk."),
    ("node_vmstat_pgpgout", "Kilobytes written to the disk."),
    ("node_vmstat_oom_kill", "Processes killed out of memory."),
)
_UNITS = ("containerd.service", "kubelet.service", "ssh.service", "systemd-journald.service")
_UNIT_STATES = ("activating", "active", "deactivating", "failed", "inactive")
_LOADS = (("node_load1", 60.0), ("node_load5", 300.0), ("node_load15", 900.0))
_TICKS = 100
"""Clock ticks a second: the resolution of processor time in /proc."""
_UNEVEN = 0.3
"""By how much the busiest processor of an idle machine exceeds the average. Chosen: schedulers prefer warm caches."""
_SLAB = 95 * 1024**2
_SYSTEM_FILES = 1_450
"""Open files of the system's own programs. Chosen: a kind node without pods has about that many."""
_FILES_PER_CONTAINER = 14
"""Open files of the shim and of the runtime for each container."""
_MAX_FILES = 9_223_372_036_854_775_807
_FAULTS_PER_SECOND = 310.0
"""Page faults for each second of processor time: about those of a mix of Go and Java servers."""
_FAULT_READ = 32_768
"""Bytes that one major fault reads: the page and its read-ahead."""
_SYN_SHARE = 0.05
"""Share of lost segments that open a connection."""
_SYSTEM_FILES_MOVE = 2.5
"""Steps of 32, in which the kernel counts a processor's share of files, by which they vary."""
_SYSTEM_SOCKETS, _SYSTEM_SOCKETS_MOVE = 210, 4
"""Sockets of the system that are not TCP, and how many come and go."""
_HOST_CONNECTIONS = 9
"""Established connections of kubelet, proxy, runtime and exporters."""


class NodeExporterCollector(NodeJob):
    job = "node-exporter"
    port = 9100
    metrics = (
        ("node_cpu_seconds_total", "counter", "Time the processors spent in each mode."),
        *((f"node_memory_{name}_bytes", "gauge", f"{name} of /proc/meminfo.") for name in _MEMORY),
        *((f"node_filesystem_{name}", "gauge", "The machine's disk.") for name in _FILESYSTEM),
        *((f"node_network_{name}", "counter", "What the machine's interface carried.") for name in _NETWORK),
        *((f"node_disk_{name}", "counter", help) for name, help in _BLOCK_DEVICE),
        *((name, "untyped", help) for name, help in _UNTYPED),
        *((name, "gauge", help) for name, help in _GAUGES),
        ("node_network_up", "gauge", "Whether an interface is up."),
        *((name, "gauge", "Load average.") for name, _ in _LOADS),
        ("node_uname_info", "gauge", "Name and kernel of the machine."),
        ("node_os_info", "gauge", "The machine's operating system."),
        ("node_systemd_unit_state", "gauge", "1 for the state that a unit of systemd is in."),
        ("node_systemd_service_restart_total", "counter", "Restarts of a service by systemd."),
    )

    def __init__(self, nodes: Nodes, flows: Flows, times: MachineUsages, scraper: Scraper, store: MetricStore) -> None:
        super().__init__(nodes, scraper, store)
        self._flows = flows
        self._usages = times
        self._loads: dict[str, _Load] = {}
        self._sandboxes: dict[str, Sandbox] = {}
        """By node: the exporter's pod."""
        self._units: dict[str, bool] = {}
        """By node: whether its kubelet ran when the states of units were last written."""

    def labels(self, machine: Machine) -> Mapping[str, str]:
        # As kube-prometheus relabels its targets: the node's name is the instance.
        return {
            "job": self.job,
            "instance": machine.name,
            "namespace": _NAMESPACE,
            "container": self.job,
            "endpoint": "http-metrics",
            "service": self.job,
            "pod": name_of(self._sandboxes[machine.name].pod),
        }

    def discovered(self, kubelet: Kubelet) -> str | None:
        """The pod of the exporter on that node: it stays a target while the machine has no power."""
        machine = kubelet.machine
        found = self._sandboxes.get(machine.name)
        if found is None or (machine.powered and machine.sandboxes.get(found.uid) is not found):
            self._sandboxes.pop(machine.name, None)
            found = next((sandbox for sandbox in machine.sandboxes.values() if _is_exporter(sandbox.pod)), None)
            if found is None:
                return None
            self._sandboxes[machine.name] = found
        return name_of(found.pod)

    def runs(self, kubelet: Kubelet) -> bool:
        if not kubelet.machine.powered:
            return False
        return any(record.name == self.job for record in self._sandboxes[kubelet.machine.name].running())

    def fill(self, buffer: SeriesBuffer, kubelet: Kubelet, now: float) -> None:
        machine = kubelet.machine
        if "node" not in buffer:
            labels, facts = _labels(machine), _facts(machine)
            buffer.put("node", labels, [0.0] * len(labels))
            buffer.put("facts", facts, [1.0] * len(facts))
            units = _unit_labels()
            buffer.put("units", units, [0.0] * len(units))
        buffer.set("node", self._values(machine, now))
        if self._units.get(machine.name) is not kubelet.running:
            self._units[machine.name] = kubelet.running
            buffer.set("units", _unit_values(kubelet))

    def forget(self, node: str) -> None:
        self._units.pop(node, None)

    def _values(self, machine: Machine, now: float) -> list[float]:
        name = machine.name
        usage = self._usages.of(machine)
        load = self._loads.get(name)
        if load is None:
            load = self._loads[name] = _Load()
        processors = _processors(machine)
        user, system = usage.busy(now)
        disk = usage.disk
        waited = disk.read_seconds + disk.write_seconds
        memory, runnable = machine.survey()
        available = max(0, machine.memory - memory + usage.reclaimed)
        cached = usage.page_cache(available)
        buffers = cached * 0.04
        wave = usage.fluctuation.at(now)
        slab = int(_SLAB * (1 + 0.02 * wave) + 0.01 * cached) // 4096 * 4096
        size, used = machine.disk.limits
        left = max(0, size - used)
        files = size // BYTES_PER_INODE
        table = self._flows.table(name)
        received, packets_received, sent, packets_sent, lost = usage.network()
        values = load.processors(machine, (waited, system, user), now - machine.booted_at, processors)
        values += (machine.memory, int(available - cached - buffers), available, int(buffers), cached, slab, 0, 0)
        values += (size, left, left, 0.0, machine.files.broken is not None, files, files - used // BYTES_PER_FILE)
        values += (received, packets_received, sent, packets_sent, table.dropped, 0.0, lost, 0.0)
        values += (int(disk.read_bytes), int(disk.written_bytes), int(disk.reads), int(disk.writes))
        times = (disk.read_seconds, disk.write_seconds, min(waited, now - machine.booted_at), waited)
        values += (int(seconds * 1000) / 1000 for seconds in times)  # the kernel counts milliseconds
        entries = table.count(now)
        opened = 0
        descriptors = _SYSTEM_FILES + round(_SYSTEM_FILES_MOVE * wave) * 32
        kills = machine.oom_kills
        for one in usage.containers.values():
            descriptors += _FILES_PER_CONTAINER + one.descriptors
            opened += one.established
        listening = len(machine.namespace.listeners())
        established = _HOST_CONNECTIONS + len(machine.namespace.connections)
        tcp = listening + established
        sockets = _SYSTEM_SOCKETS + round(_SYSTEM_SOCKETS_MOVE * wave)
        lingering = max(0, entries - table.open - sum(table.carried.values()))
        values += (
            packets_received,
            packets_sent,
            lost,
            int(lost * _SYN_SHARE),
            table.dropped,
            0.0,
            established + opened,
        )
        faults = (user + system) * _FAULTS_PER_SECOND
        values += (int(faults), int(disk.read_bytes / _FAULT_READ), int(disk.read_bytes / 1024))
        values += (int(disk.written_bytes / 1024), kills)
        values += (machine.booted_at, machine.now, entries, table.limit, descriptors, _MAX_FILES)
        values += (tcp + sockets, tcp, tcp + lingering, lingering, 4, 0.0)
        skew = machine.clock_skew
        # The kernel gives up its synchronization when the reference is too far off to be followed.
        drift = skew or 4e-5 * usage.fluctuation.at(now)
        values += (drift, 16.0 if skew else 0.002 + abs(drift), abs(drift), 0.0 if skew else 1.0)
        values += (1.0, *load.after(now, machine, runnable))
        return values


def _is_exporter(pod: Obj) -> bool:
    return namespace_of(pod) == _NAMESPACE and labels_of(pod).get("app.kubernetes.io/name") == "node-exporter"


class _Load:
    """What the kernel derives from runnable programs since the machine's boot.

    The load averages are damped exponentially over 1, 5 and 15 minutes; each processor has its share of the time.
    """

    __slots__ = ("_at", "_boot", "_spent", "_totals", "_uneven", "_uptime", "_values")

    def __init__(self) -> None:
        self._values = [0.0, 0.0, 0.0]
        self._at = 0.0
        self._boot = ""
        self._uptime = 0.0
        self._totals = (0.0, 0.0, 0.0)
        self._spent: list[list[float]] = []
        self._uneven: list[float] = []

    def processors(
        self, machine: Machine, totals: tuple[float, float, float], uptime: float, count: int
    ) -> list[float]:
        """Return the seconds of each processor in each mode; `totals` are those of all modes but idle."""
        if self._boot != machine.boot_id:
            self._uptime, self._totals, self._spent = 0.0, (0.0, 0.0, 0.0), [[0.0] * len(_MODES)] * count
            first = crc32(machine.machine_id.encode())
            # The deviations add up to nothing.
            self._uneven = [_UNEVEN * cos(2 * pi * (first + number) / count) for number in range(count)]
        passed, self._uptime = uptime - self._uptime, uptime
        more = [max(0.0, now - before) / count for now, before in zip(totals, self._totals, strict=True)]
        self._totals = totals
        spare = max(0.0, 1 - sum(more) / passed) if passed > 0 and count > 1 else 0.0
        waited, system, user = more
        rows = []
        for before, uneven in zip(self._spent, self._uneven, strict=True):
            share = 1 + uneven * spare
            idle = max(0.0, passed - (waited + system + user) * share)
            rows.append(
                [before[0] + idle, before[1] + waited * share, before[2] + system * share, before[3] + user * share]
            )
        self._spent = rows
        return [int(seconds * _TICKS) / _TICKS for row in rows for seconds in row]

    def after(self, now: float, machine: Machine, runnable: float) -> list[float]:
        if self._boot != machine.boot_id:
            self._boot, self._at, self._values = machine.boot_id, machine.booted_at, [0.0, 0.0, 0.0]
        passed, self._at = now - self._at, now
        for place, (_, window) in enumerate(_LOADS):
            decay = exp(-passed / window)
            self._values[place] = self._values[place] * decay + runnable * (1 - decay)
        return [round(value, 2) for value in self._values]


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
    rows += ({"__name__": f"node_disk_{name}", "device": "sda"} for name, _ in _BLOCK_DEVICE)
    rows += ({"__name__": name} for name, _ in _UNTYPED)
    rows += ({"__name__": name} for name, _ in _GAUGES)
    rows.append({"__name__": "node_network_up", "device": "eth0"})
    rows += ({"__name__": name} for name, _ in _LOADS)
    return rows


def _facts(machine: Machine) -> list[Mapping[str, str]]:
    kernel = machine.kernel
    facts = {"release": kernel.release, "version": kernel.version, "machine": kernel.machine, "domainname": "(none)"}
    *system, number, name = OS_IMAGE.split()
    release = {"version": f"{number} {name}", "version_id": number, "version_codename": name.strip("()")}
    return [
        {"__name__": "node_uname_info", "nodename": machine.name, "sysname": "Linux", **facts},
        {"__name__": "node_os_info", "id": "debian", "name": " ".join(system), "pretty_name": OS_IMAGE, **release},
    ]


def _unit_labels() -> list[Mapping[str, str]]:
    rows: list[Mapping[str, str]] = [
        {"__name__": "node_systemd_unit_state", "name": unit, "state": state, "type": "notify"}
        for unit in _UNITS
        for state in _UNIT_STATES
    ]
    rows += ({"__name__": "node_systemd_service_restart_total", "name": unit} for unit in _UNITS)
    return rows


def _unit_values(kubelet: Kubelet) -> list[float]:
    """Return the states of the units: a kubelet that was stopped is inactive; systemd restarts none of them here."""
    states = {"kubelet.service": "active" if kubelet.running else "inactive"}
    values = [float(states.get(unit, "active") == state) for unit in _UNITS for state in _UNIT_STATES]
    return values + [0.0] * len(_UNITS)
