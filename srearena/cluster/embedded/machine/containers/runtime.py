"""Pod sandboxes and container records: the state of containerd.

Records outlive their containers (one dead container per name, as the kubelet's garbage collector keeps), so that exit
codes, messages and logs remain readable. A sandbox also implements `HostContext` for its containers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import TYPE_CHECKING

from srearena.cluster.embedded.machine.containers.container import (
    Container,
    ContainerConfig,
    ContainerLog,
    KernelFacts,
    StartError,
)
from srearena.cluster.embedded.machine.files.inodes import Space
from srearena.cluster.embedded.machine.images.store import Image
from srearena.cluster.embedded.machine.networking.reachability import NetworkFacade
from srearena.cluster.embedded.machine.networking.sockets import NetworkNamespace
from srearena.cluster.embedded.machine.processes.pids import OWN_FIRST, PidNamespace
from srearena.cluster.embedded.objects import Obj, dig, meta, name_of, namespace_of, uid_of

if TYPE_CHECKING:
    from srearena.cluster.embedded.machine.machine import Machine

KEPT_DEAD = 1
MAX_MESSAGE = 4096
MAX_LOG_MESSAGE = 2048
MAX_LOG_LINES = 80
UNKNOWN_EXIT = 255
"""The exit code containerd reports for a container whose end was not observed (the machine went down)."""


class ContainerRecord:
    """One attempt at running a container."""

    __slots__ = (
        "attempt",
        "container",
        "created_at",
        "exit_code",
        "finished_at",
        "held_resources",
        "id",
        "image",
        "log",
        "message",
        "name",
        "reason",
        "sandbox_id",
        "signal",
        "started_at",
        "user",
    )

    def __init__(
        self, name: str, attempt: int, identifier: str, sandbox_id: str, image: Image, log: ContainerLog, now: float
    ) -> None:
        self.name = name
        self.attempt = attempt
        self.id = identifier
        self.sandbox_id = sandbox_id
        self.image = image
        self.log = log
        self.created_at = now
        self.started_at = 0.0
        self.finished_at: float | None = None
        self.exit_code = 0
        self.signal = 0
        self.reason = ""
        self.message = ""
        self.container: Container | None = None
        self.user: tuple[int, int, tuple[int, ...]] | None = None
        """uid, gid and groups of the first process."""
        self.held_resources: Obj | None = None
        """Its requests and limits, where the pod has others that take effect with the next attempt."""

    @property
    def running(self) -> bool:
        return self.finished_at is None and self.started_at > 0

    @property
    def exited(self) -> bool:
        return self.finished_at is not None

    @property
    def working_set(self) -> int:
        return self.container.meter.working_set if self.container is not None else 0


class Sandbox:
    """The network and process namespaces of a pod, and its containers; `HostContext` for these."""

    __slots__ = (
        "_attempts",
        "_network",
        "address",
        "clock",
        "created_at",
        "disk",
        "host_network",
        "hostname",
        "id",
        "machine",
        "namespace",
        "on_change",
        "pids",
        "pod",
        "ready",
        "records",
        "uid",
    )

    def __init__(self, machine: Machine, pod: Obj, hostname: str, disk: Space) -> None:
        self.machine = machine
        self.clock = machine.clock
        self.pod = pod
        self.uid = uid_of(pod)
        self.hostname = hostname
        self.id = f"{machine.random.getrandbits(256):064x}"
        self.created_at = machine.clock.now
        self.ready = False
        self.host_network = bool(dig(pod, "spec", "hostNetwork"))
        if self.host_network:
            self.address = machine.address
            self.namespace = machine.namespace
        else:
            self.address = machine.take_address(self)
            self.namespace = NetworkNamespace(machine.clock, (self.address,))
        first = OWN_FIRST if dig(pod, "spec", "hostPID") else 7 if dig(pod, "spec", "shareProcessNamespace") else 0
        self.pids = PidNamespace(first=first) if first else None
        self.disk = disk
        """Disk space of the containers' writable layers, logs and disk-backed emptyDirs."""
        self.records: dict[str, list[ContainerRecord]] = {}
        """By container name, newest first."""
        self.on_change: Callable[[], object] | None = None
        """Called when a container ends; set by the kubelet while it runs."""
        self._network: NetworkFacade | None = None
        self._attempts: dict[str, int] = {}
        self.ready = True
        self.plug_in()

    def plug_in(self) -> None:
        """Connect to the machine's network."""
        if self.ready:
            self._network = self.machine.network.attach_pod(self.pod, self.namespace)

    def inherit(self, old: Sandbox, started_over: Iterable[str]) -> None:
        """Take over the records of the previous sandbox, except of containers that start over."""
        self._attempts = old._attempts
        self.records = {name: attempts for name, attempts in old.records.items() if name not in set(started_over)}

    # What containers see of the node (HostContext)

    @property
    def random(self) -> Random:
        return self.machine.random

    @property
    def node_name(self) -> str:
        return self.machine.name

    @property
    def kernel(self) -> KernelFacts:
        return self.machine.kernel

    @property
    def network(self) -> NetworkFacade:
        assert self._network is not None
        return self._network

    # Containers

    def latest(self, name: str) -> ContainerRecord | None:
        found = self.records.get(name)
        return found[0] if found else None

    def previous(self, name: str) -> ContainerRecord | None:
        """The attempt before the latest."""
        found = self.records.get(name)
        return found[1] if found and len(found) > 1 else None

    def running(self) -> Iterator[ContainerRecord]:
        for attempts in self.records.values():
            if attempts and attempts[0].running:
                yield attempts[0]

    def create(self, config: ContainerConfig, image: Image, pids: PidNamespace | None = None) -> ContainerRecord:
        """Create a container, in a process namespace of its own or in a given one; CreateError where that fails."""
        identifier = f"{self.machine.random.getrandbits(256):064x}"
        log = ContainerLog(self.clock)
        attempt = self._attempts.get(config.name, 0)
        record = ContainerRecord(config.name, attempt, identifier, self.id, image, log, self.clock.now)
        record.container = Container(
            config,
            self,
            program=self.machine.programs.find(config.image),
            pids=pids or self.pids,
            disk=self.disk,
            log=log,
            container_id=identifier,
            image_bytes=image.on_disk,
        )
        self._attempts[config.name] = attempt + 1
        image.used_at = self.clock.now
        attempts = self.records.setdefault(config.name, [])
        attempts.insert(0, record)
        del attempts[1 + KEPT_DEAD :]
        if self.machine.on_container is not None:
            self.machine.on_container(self, record)
        return record

    def start(self, record: ContainerRecord, message_path: str, message_from_log: bool) -> None:
        """Start a created container; StartError where its process cannot be run."""
        container = record.container
        assert container is not None
        try:
            try:
                process = container.start()
            except OSError as error:
                raise StartError(f"error mounting to rootfs: {str(error.strerror).lower()}") from None
        except StartError as error:
            record.exit_code, record.reason, record.message = 128, "StartError", error.message
            record.finished_at = self.clock.now
            record.container = None
            raise
        record.started_at = self.clock.now
        self.machine.live[record.id] = record
        who = process.credentials
        record.user = (who.uid, who.gid, who.groups or (who.gid,))
        container.done.then(lambda: self._ended(record, message_path, message_from_log))

    def _ended(self, record: ContainerRecord, message_path: str, message_from_log: bool) -> None:
        container = record.container
        self.machine.live.pop(record.id, None)
        if container is None or record.exited:
            return
        end = container.done.value
        record.exit_code, record.signal, record.reason = end.code, end.signal, end.reason
        record.finished_at = end.finished_at
        record.message = _last_words(container, message_path, message_from_log and end.code != 0)
        record.container = None
        if self.on_change is not None:
            self.on_change()

    def lose(self) -> None:
        """End all containers because the machine went down; their exit codes are unknown."""
        for attempts in self.records.values():
            record = attempts[0]
            if record.exited:
                continue
            self.machine.live.pop(record.id, None)
            container, record.container = record.container, None
            record.exit_code, record.reason = UNKNOWN_EXIT, "Unknown"
            record.finished_at = self.clock.now
            if container is not None:
                container.kill()
        self.release()

    def release(self) -> None:
        """Remove the sandbox and release its address."""
        if not self.ready:
            return
        self.ready = False
        self.machine.network.detach_pod(self.uid)
        if not self.host_network:
            self.machine.give_address_back(self.address)

    def __repr__(self) -> str:
        return f"<sandbox of {namespace_of(self.pod)}/{name_of(self.pod)} on {self.machine.name}>"


def _last_words(container: Container, path: str, from_log: bool) -> str:
    """The termination message: from the message file, or from the end of the log."""
    if path:
        try:
            data = container.files.read_bytes(path)
        except OSError:
            data = b""
        if data:
            return data[-MAX_MESSAGE:].decode(errors="replace")
    if not from_log:
        return ""
    lines = container.log.lines(container.log.end - MAX_LOG_LINES)
    text = b"".join(line.text + (b"" if line.partial else b"\n") for line in lines)
    return text[-MAX_LOG_MESSAGE:].decode(errors="replace")


def hostname_of(pod: Obj, machine_name: str) -> str:
    """The pod's host name: `spec.hostname` or its name, truncated to the kernel's limit."""
    spec = pod["spec"]
    if spec.get("hostNetwork"):
        return machine_name
    name: str = spec.get("hostname") or meta(pod)["name"]
    return name[:63].rstrip("-.")
