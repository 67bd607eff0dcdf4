"""Processor time, network volume and disk traffic of a whole machine since its boot.

Counters of containers vanish with them, while those of a machine never decrease before a reboot. So the increase since
the last update is added up here. The use of a container between the last update and its end is lost.
"""

from __future__ import annotations

from collections.abc import Callable

from srearena.cluster.embedded.instruments import Fluctuation
from srearena.cluster.embedded.kubelet.node.usage import SYSTEM_CORES
from srearena.cluster.embedded.machine.containers.container import Container
from srearena.cluster.embedded.machine.machine import Machine

ETCD = "etcd"
"""The container whose writes the simulator makes itself: `extra_writes`."""
READ_BLOCK, WRITE_BLOCK = 65_536, 16_384
"""Bytes of one read and one write of the block device: typical of read-ahead, and of journalled files."""
READ_SECONDS, WRITE_SECONDS = 0.0004, 0.0008
"""Duration of one read and one write on an SSD, before the machine's disk factor."""
IMAGE_READ_SHARE = 0.3
"""Share of an image that its first container reads from the disk; later ones find it in the page cache. Chosen."""
SYSTEM_WRITES = 9_000.0
"""Bytes a second that the system itself writes: its journal, and the runtime's and the kubelet's state. Chosen."""
_SYSTEM_CACHE = 380 * 1024**2
"""Page cache of the operating system's own files. Chosen: a kind node idles at about that."""
IDLE_WRITE_SECONDS = 10.0
"""Interval at which programs write to their files by themselves. Chosen."""


class DiskTraffic:
    """Bytes, operations and time of a machine's disk."""

    __slots__ = ("read_bytes", "read_seconds", "reads", "write_seconds", "writes", "written_bytes")

    def __init__(self) -> None:
        self.read_bytes = self.written_bytes = 0.0
        self.reads = self.writes = 0.0
        self.read_seconds = self.write_seconds = 0.0

    def add(self, read: float, written: float, factor: float) -> None:
        self.read_bytes += read
        self.written_bytes += written
        self.reads += read / READ_BLOCK
        self.writes += written / WRITE_BLOCK
        self.read_seconds += read / READ_BLOCK * READ_SECONDS * factor
        self.write_seconds += written / WRITE_BLOCK * WRITE_SECONDS * factor


class ContainerUsage:
    """What one container used by the last update of its machine's usage."""

    __slots__ = (
        "_persistent",
        "_persistent_before",
        "_spaces",
        "_written_before",
        "cpu",
        "descriptors",
        "established",
        "idle_written",
        "log",
        "memory",
        "read_bytes",
        "sockets",
    )

    def __init__(self, container: Container, read_bytes: float) -> None:
        self.cpu = 0.0
        self.log = 0
        self.memory = 0
        self.descriptors = self.sockets = self.established = 0
        """Open file descriptors, sockets included; sockets; and sockets of established connections."""
        self.read_bytes = read_bytes
        self.idle_written = 0
        root = container.filesystem.root.volume.space
        mounted = [mount.volume for mount in container.filesystem.mounts if mount.writable]
        spaces = dict.fromkeys(volume.space for volume in mounted if volume.fstype == "ext4")
        # Files such as /etc/hosts are on the pod's own space, which the container's layer is a part of.
        self._spaces = [root, *(space for space in spaces if space is not root and space is not root.parent)]
        self._written_before = sum(space.written for space in self._spaces[1:])
        """Volumes outlive containers; their counters do not begin at zero."""
        self._persistent = [space for space in self._spaces if space.parent is None]
        self._persistent_before = 0

    @property
    def written_bytes(self) -> int:
        """Bytes written to the container's own layer and to its volumes on disks."""
        return sum(space.written for space in self._spaces) - self._written_before + self.idle_written

    def idle_writes(self, container: Container, now: float) -> int:
        """Take over what its program has written by itself; return the bytes since the last call."""
        if not container.program.idle_writes or container.started_at is None:
            return 0
        passed = (now - container.started_at) // IDLE_WRITE_SECONDS * IDLE_WRITE_SECONDS
        before, self.idle_written = self.idle_written, int(container.program.idle_writes * passed)
        return self.idle_written - before

    def written_to_claims(self) -> int:
        """Return the bytes written to volumes that are no part of the machine's own disk since the last call."""
        if not self._persistent:
            return 0
        before, self._persistent_before = self._persistent_before, sum(space.written for space in self._persistent)
        return max(0, self._persistent_before - before)


class MachineUsage:
    __slots__ = (
        "_boot",
        "_images_read",
        "_interfaces",
        "_machine",
        "_network",
        "_other_writes",
        "_updated_at",
        "_user",
        "_written",
        "containers",
        "disk",
        "extra_writes",
        "fluctuation",
        "reclaimed",
    )

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.fluctuation = Fluctuation(machine.machine_id)
        self.extra_writes: Callable[[], float] = lambda: 0.0
        """Bytes that programs write which the simulator implements itself, such as etcd."""
        self._begin()

    def _begin(self) -> None:
        self._boot = self._machine.boot_id
        self._user = 0.0
        self._updated_at = self._machine.booted_at
        self.containers: dict[str, ContainerUsage] = {}
        """By ID: the containers that ran at the last update."""
        self.reclaimed = 0
        """Bytes that containers claim, and that are not resident."""
        self._network = [0.0, 0.0, 0.0, 0.0, 0.0]
        self._interfaces: dict[str, tuple[float, ...]] = {}
        self._images_read: set[str] = set()
        self._written = self._machine.disk.written
        self._other_writes = self.extra_writes()
        self.disk = DiskTraffic()

    def update(self, now: float) -> None:
        """Add what happened since the last update."""
        machine = self._machine
        if self._boot != machine.boot_id:
            self._begin()
        if now == self._updated_at:
            return
        since, self._updated_at, previous = self._updated_at, now, self.containers
        usages: dict[str, ContainerUsage] = {}
        read, reclaimed = 0.0, 0
        written = SYSTEM_WRITES * (now - since + 0.4 * self.fluctuation.integral(since, now))
        for identifier, record in machine.live.items():
            if record.container is not None:
                meter = record.container.meter
                spent, log = meter.cpu_seconds(), record.log.written
                usage = previous.get(identifier)
                if usage is None:
                    at_start = self._read_at_start(str(record.image.reference), record.image.on_disk)
                    usage = ContainerUsage(record.container, at_start)
                    usage.written_to_claims()
                    read += at_start
                usages[identifier] = usage
                if spent > usage.cpu:
                    self._user += spent - usage.cpu
                written += max(0, log - usage.log) + usage.written_to_claims()
                written += usage.idle_writes(record.container, now)
                if record.name == ETCD:
                    usage.idle_written = int(self.extra_writes())
                usage.cpu, usage.log, usage.memory = spent, log, meter.resident_bytes()
                reclaimed += meter.working_set - usage.memory
                descriptors = sockets = listening = 0
                bulk = record.container.namespace.bulk
                for process in record.container.pids.processes.values():
                    sockets += process.sockets
                    listening += process.kept_sockets
                    descriptors += len(process.fds)
                    if bulk is not None:
                        sockets += bulk.count(process)
                usage.established, usage.sockets = sockets, sockets + listening
                usage.descriptors = descriptors + usage.sockets
        self.containers, self.reclaimed = usages, reclaimed
        on_disk, other = machine.disk.written, self.extra_writes()
        written += max(0, on_disk - self._written) + max(0.0, other - self._other_writes)
        self._written, self._other_writes = on_disk, other
        self.disk.add(read, written, machine.disk_factor)

    def _read_at_start(self, image: str, size: int) -> float:
        if image in self._images_read:
            return 0.0
        self._images_read.add(image)
        return size * IMAGE_READ_SHARE

    def page_cache(self, available: int) -> int:
        """Bytes of files that the kernel keeps in memory that is free otherwise."""
        return int(min(_SYSTEM_CACHE + self.disk.read_bytes + self.disk.written_bytes, 0.75 * available))

    def busy(self, now: float) -> tuple[float, float]:
        """Return processor seconds of containers and other programs, and of the system."""
        self.update(now)
        machine = self._machine
        elapsed = now - machine.booted_at
        elapsed += 0.25 * self.fluctuation.integral(machine.booted_at, now)
        return self._user + machine.own_load.cpu_seconds(), SYSTEM_CORES * machine.cores * elapsed

    def network(self) -> tuple[float, ...]:
        """Return bytes and packets received, then sent, of the pods and the machine itself, then lost packets."""
        counters: dict[str, tuple[float, ...]] = {}
        machine = self._machine
        spaces = [(sandbox.id, sandbox.namespace) for sandbox in machine.sandboxes.values() if not sandbox.host_network]
        for identifier, space in [*spaces, ("", machine.namespace)]:
            now = space.carried.totals(self._updated_at)
            before = self._interfaces.get(identifier)
            if now != before:
                for index in range(5):
                    more = now[index] - (before[index] if before is not None else 0.0)
                    if more > 0:
                        self._network[index] += more
            counters[identifier] = now
        self._interfaces = counters
        return tuple(float(int(amount)) for amount in self._network)


class MachineUsages:
    """The usage of each machine, shared by collectors."""

    def __init__(self) -> None:
        self._by_machine: dict[str, MachineUsage] = {}

    def of(self, machine: Machine) -> MachineUsage:
        found = self._by_machine.get(machine.name)
        if found is None:
            found = self._by_machine[machine.name] = MachineUsage(machine)
        return found
