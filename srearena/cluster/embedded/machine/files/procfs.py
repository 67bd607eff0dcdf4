"""/proc, /sys and /dev of a container: processes, limits and devices as the kernel shows them.

Nothing here is stored: directories list what is there when they are read, files are written when they are opened.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any
from zlib import crc32

from srearena.cluster.embedded.machine.files.cgroup import cgroup_files
from srearena.cluster.embedded.machine.files.filesystem import Mount, Volume
from srearena.cluster.embedded.machine.files.inodes import (
    Caller,
    Device,
    Directory,
    File,
    Node,
    Space,
    Symlink,
)
from srearena.cluster.embedded.machine.files.listing import Listing, text_file
from srearena.cluster.embedded.machine.files.network_stats import net_dev, net_snmp, net_sockstat
from srearena.cluster.embedded.machine.files.streams import FullFile, NullFile, OpenFile, RandomFile, ZeroFile, os_error
from srearena.cluster.embedded.machine.files.sysctl import sysctl_folder

if TYPE_CHECKING:
    from srearena.cluster.embedded.machine.containers.container import Container
    from srearena.cluster.embedded.machine.processes.process import Process

TICKS = 100
"""Clock ticks per second, the unit of /proc/<pid>/stat."""
_INODES, _INODE_RANGE = 24_000, 900_000
"""Range of the inode numbers of pipes and of sockets of short requests. Chosen: those of a node in use."""
SHARED_MEMORY = 64 * 1024**2
"""The size of /dev/shm where a pod mounts nothing there, as container runtimes set it."""


class _SelfLink(Symlink):
    """/proc/self: depends on the calling process."""

    __slots__ = ()

    def target_for(self, caller: Caller) -> str:
        return str(getattr(caller, "pid", 1))


class ProcDirectory(Directory):
    """The root of /proc."""

    __slots__ = ("_container",)

    def __init__(self, container: Container) -> None:
        super().__init__(0o555)
        self._container = container

    def get(self, name: str) -> Node | None:
        container = self._container
        if name == "self":
            return _SelfLink("self")
        if name.isdigit():
            process = container.pids.get(int(name))
            return None if process is None else Listing(lambda: _process_files(process))
        if name == "sys":
            return sysctl_folder(container)
        if name == "net":
            return Listing(lambda: {one: _of_network(container, write) for one, write in _NETWORK_FILES.items()})
        if name == "mounts":
            return Symlink("self/mounts")
        produce = _MACHINE_FILES.get(name)
        return None if produce is None else text_file(lambda: produce(container))

    def names(self) -> Iterable[str]:
        pids = (str(pid) for pid in self._container.pids.processes)
        return [*pids, *_MACHINE_FILES, "mounts", "net", "self", "sys"]

    def put(self, name: str, node: Node) -> None:
        raise os_error(errno.ENOENT)

    def drop(self, name: str) -> None:
        raise os_error(errno.EPERM)


def _process_files(process: Process) -> dict[str, Node]:
    container = process.container
    environ = "".join(f"{key}={value}\0" for key, value in process.env.items())
    files: dict[str, Node] = {
        "cmdline": text_file(lambda: "" if process.done.is_set else "".join(f"{word}\0" for word in process.argv)),
        "comm": text_file(lambda: process.name[:15] + "\n"),
        "environ": text_file(lambda: environ, 0o400),
        "status": text_file(lambda: _status(process)),
        "stat": text_file(lambda: _stat(process)),
        "statm": text_file(lambda: f"{process.memory // 4096} {process.memory // 4096} 0 1 0 0 0\n"),
        "limits": text_file(lambda: _limits(process)),
        "cgroup": text_file(lambda: "0::/\n"),
        "mounts": text_file(lambda: _mounts(container)),
        "mountinfo": text_file(lambda: _mounts(container)),
        "oom_score": text_file(lambda: "0\n"),
        "cwd": Symlink(process.cwd),
        "root": Symlink("/"),
        "exe": _program(process),
        "fd": Listing(lambda: _descriptors(process)),
    }
    for node in files.values():
        node.uid, node.gid = process.credentials.uid, process.credentials.gid
    return files


class DescriptorLink(Symlink):
    """A link in /proc/PID/fd: what an open file is, and the file itself where it is opened."""

    __slots__ = ("node",)


def _program(process: Process) -> Symlink:
    """/proc/PID/exe: where the file was found that the process runs, and this file itself, whatever is there now."""
    found = process.executable
    if found is None:
        return Symlink("")
    try:
        gone = process.files.stat(found.path).node is not found.node
    except OSError:
        gone = True
    link = DescriptorLink(f"{found.path} (deleted)" if gone else found.path)
    link.node = found.node
    return link


def _socket_inodes(process: Process) -> dict[int, int]:
    """The sockets of a process by their descriptors: those it listens on, then connections."""
    inodes = [entry.inode for entry in process.container.namespace.sockets() if entry.owner is process]
    listed = sum(1 for one in process.container.namespace.connections if one.owner is process and not one.closed)
    # Short requests have no connection of their own.
    inodes += [_INODES + process.pid * 4096 + number for number in range(process.sockets - listed)]
    return dict(enumerate(inodes, max(process.fds, default=-1) + 1))


def descriptor_of(process: Process, inode: int) -> int:
    """The descriptor of a socket; -1 where it has none."""
    return next((number for number, one in _socket_inodes(process).items() if one == inode), -1)


def _descriptors(process: Process) -> dict[str, Node]:
    found: dict[str, Node] = {str(number): _descriptor(process, number) for number in process.fds}
    for number, inode in _socket_inodes(process).items():
        found[str(number)] = _linked(Symlink(f"socket:[{inode}]"), process)
    return found


def _descriptor(process: Process, number: int) -> Symlink:
    def opener(caller: Caller, writing: bool) -> OpenFile:
        return process.fd(number).retain()

    file = process.fds[number]
    # Pipes lead from and to the runtime; both ends of one have the same number.
    pipe = f"pipe:[{_INODES + crc32(f'{process.container.id} {min(number, 2)}'.encode()) % _INODE_RANGE}]"
    link = DescriptorLink(file.description or pipe)
    link.node = Device(opener, 0o666, (136, number))
    return _linked(link, process)


def _linked(link: Symlink, process: Process) -> Symlink:
    link.mtime = process.started_at
    link.uid, link.gid = process.credentials.uid, process.credentials.gid
    return link


def _status(process: Process) -> str:
    who = process.credentials
    state = {"S": "S (sleeping)", "Z": "Z (zombie)", "T": "T (stopped)"}[process.state]
    parent = 0 if process.parent is None else process.parent.pid
    kilobytes = process.memory // 1024
    rows = (
        ("Name", process.name[:15]),
        ("State", state),
        ("Tgid", str(process.pid)),
        ("Pid", str(process.pid)),
        ("PPid", str(parent)),
        ("Uid", "\t".join([str(who.uid)] * 4)),
        ("Gid", "\t".join([str(who.gid)] * 4)),
        ("Groups", " ".join(map(str, who.groups))),
        ("VmSize", f"{kilobytes * 2:8d} kB"),
        ("VmRSS", f"{kilobytes:8d} kB"),
        ("Threads", str(process.thread_count)),
    )
    return "".join(f"{name}:\t{value}\n" for name, value in rows)


def _stat(process: Process) -> str:
    parent = 0 if process.parent is None else process.parent.pid
    started = int((process.started_at - process.container.host.kernel.booted_at) * TICKS)
    head = f"{process.pid} ({process.name[:15]}) {process.state} {parent} {process.group} {process.group} 0 -1 4194560"
    return f"{head} 0 0 0 0 0 0 0 0 20 0 1 0 {started} {process.memory * 2} {process.memory // 4096}\n"


def _limits(process: Process) -> str:
    rows = (
        ("Max open files", process.nofile, process.nofile, "files"),
        ("Max processes", "unlimited", "unlimited", "processes"),
    )
    lines = [f"{'Limit':<25} {'Soft Limit':<20} {'Hard Limit':<20} {'Units':<10}"]
    lines += [f"{name:<25} {soft!s:<20} {hard!s:<20} {unit:<10}" for name, soft, hard, unit in rows]
    return "\n".join(lines) + "\n"


def mount_options(mount: Mount) -> str:
    return "rw,relatime" if mount.writable else "ro,relatime"


def _mounts(container: Container) -> str:
    rows = (
        f"{mount.volume.source} {mount.path} {mount.volume.fstype} {mount_options(mount)} 0 0\n"
        for mount in container.filesystem.mounts
    )
    return "".join(rows)


def _uptime(container: Container) -> str:
    seconds = container.clock.now - container.host.kernel.booted_at
    return f"{seconds:.2f} {seconds * container.host.kernel.cpus * 0.9:.2f}\n"


_PAGE_CACHE = 380 * 1024**2
"""Page cache of the operating system's own files, at most three quarters of what is available."""


def _meminfo(container: Container) -> str:
    kernel = container.host.kernel
    used = kernel.survey()[0] if kernel.survey is not None else container.meter.working_set
    available = max(0, kernel.memory - used)
    cached = int(min(_PAGE_CACHE + 2 * used, 0.75 * available))
    rows = {
        "MemTotal": kernel.memory,
        "MemFree": available - cached - cached // 25,
        "MemAvailable": available,
        "Buffers": cached // 25,
        "Cached": cached,
        "SwapTotal": 0,
        "SwapFree": 0,
    }
    return "".join(f"{name + ':':<16}{value // 1024:>8} kB\n" for name, value in rows.items())


def _cpuinfo(container: Container) -> str:
    return "".join(
        f"processor\t: {number}\nmodel name\t: Virtual CPU\ncpu MHz\t\t: 2500.000\n\n"
        for number in range(container.host.kernel.cpus)
    )


def load_average(container: Container) -> float:
    """The load average: the number of processors that the programs of the node want."""
    survey = container.host.kernel.survey
    return survey()[1] if survey is not None else container.meter.granted_cores


def _loadavg(container: Container) -> str:
    load = load_average(container)
    running = sum(not process.done.is_set for process in container.pids.processes.values())
    return f"{load:.2f} {load:.2f} {load:.2f} 1/{running} {max(container.pids.processes, default=1)}\n"


def _version(container: Container) -> str:
    kernel = container.host.kernel
    return f"Linux version {kernel.release} (buildd@lcy02) {kernel.version}\n"


_MACHINE_FILES: dict[str, Callable[[Container], str]] = {
    "cpuinfo": _cpuinfo,
    "loadavg": _loadavg,
    "meminfo": _meminfo,
    "uptime": _uptime,
    "version": _version,
}


def _hexadecimal(address: str, port: int) -> str:
    """An address as /proc/net/tcp writes it; empty for one that is not IPv4."""
    octets = address.split(".")
    if len(octets) != 4 or not all(octet.isdigit() for octet in octets):
        return ""
    return "".join(f"{int(octet):02X}" for octet in reversed(octets)) + f":{port:04X}"


def _net_tcp(container: Container) -> str:
    lines = ["  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"]
    for index, entry in enumerate(one for one in container.namespace.sockets() if one.protocol == "TCP"):
        local, remote = _hexadecimal(*entry.local), _hexadecimal(*entry.peer)
        if not (local and remote):
            continue
        state, queue = ("01", 0) if entry.listener is None else ("0A", entry.listener.waiting)
        owner = getattr(getattr(entry.owner, "credentials", None), "uid", 0)
        line = (
            f"{index:4d}: {local} {remote} {state} 00000000:{queue:08X} 00:00000000 00000000"
            f" {owner:5d}        0 {entry.inode} 1 0000000000000000 20 4 30 10 -1"
        )
        lines.append(f"{line:<149}")
    return "\n".join(lines) + "\n"


_NETWORK_FILES: dict[str, Callable[[Container], str]] = {
    "dev": net_dev,
    "snmp": net_snmp,
    "sockstat": net_sockstat,
    "tcp": _net_tcp,
}


def _of_network(container: Container, write: Callable[[Container], str]) -> Node:
    return text_file(lambda: write(container))


def _sys(container: Container) -> Directory:
    return Listing(
        lambda: {"fs": Listing(lambda: {"cgroup": _cgroup(container)})},
    )


def _cgroup(container: Container) -> Directory:
    return Listing(lambda: cgroup_files(container))


def _own_descriptor(number: int) -> Callable[[Caller, bool], OpenFile]:
    def opener(caller: Any, writing: bool) -> OpenFile:
        file: OpenFile = caller.fd(number)
        return file.retain()

    return opener


def _random(caller: Any, writing: bool) -> OpenFile:
    return RandomFile(caller.container.random)


def _terminal(caller: Any, writing: bool) -> OpenFile:
    for number in (0, 1, 2):
        file: OpenFile | None = caller.fds.get(number)
        if file is not None and file.is_tty:
            return file.retain()
    raise os_error(errno.ENXIO)


def _devices() -> Directory:
    tree = Directory(
        0o755,
        entries={
            "null": Device(lambda caller, writing: NullFile(), 0o666, (1, 3)),
            "zero": Device(lambda caller, writing: ZeroFile(), 0o666, (1, 5)),
            "full": Device(lambda caller, writing: FullFile(), 0o666, (1, 7)),
            "random": Device(_random, 0o666, (1, 8)),
            "urandom": Device(_random, 0o666, (1, 9)),
            "tty": Device(_terminal, 0o666, (5, 0)),
            "stdin": Device(_own_descriptor(0), 0o777, (136, 0)),
            "stdout": Device(_own_descriptor(1), 0o777, (136, 1)),
            "stderr": Device(_own_descriptor(2), 0o777, (136, 2)),
            "fd": Symlink("/proc/self/fd"),
            "pts": Directory(0o755),
            "shm": Directory(0o1777),
        },
    )
    tree.freeze()
    return tree


_DEVICES = _devices()


def system_mounts(container: Container) -> list[Mount]:
    """The default mounts of a container, except where the pod mounts its own."""
    pod_mounts = {mount.path for mount in container.config.mounts}
    host = container.host
    own = [
        Mount("/proc", Volume(ProcDirectory(container), fstype="proc", source="proc")),
        Mount("/sys", Volume(_sys(container), fstype="sysfs", source="sysfs"), read_only=True),
        Mount("/sys/fs/cgroup", Volume(_cgroup(container), fstype="cgroup2", source="cgroup"), read_only=True),
        Mount("/dev", Volume(_DEVICES, fstype="tmpfs", source="tmpfs")),
        Mount("/dev/shm", Volume(Directory(0o1777), space=Space(SHARED_MEMORY), fstype="tmpfs", source="shm")),
    ]
    addresses = [f"{address}\t{host.hostname}" for address in host.namespace.addresses]
    texts = {
        "/etc/hostname": f"{host.hostname}\n",
        "/etc/hosts": "\n".join(["127.0.0.1\tlocalhost", "::1\tlocalhost ip6-localhost ip6-loopback", *addresses, ""]),
    }
    for path, text in texts.items():
        if path not in pod_mounts:
            own.append(Mount(path, Volume(fstype="ext4"), node=File(text.encode(), mtime=container.clock.now)))
    return [mount for mount in own if mount.path not in pod_mounts]
