"""The processes of a machine, as a container in its process namespace (`hostPID`) sees them beside its own."""

from __future__ import annotations

from dataclasses import dataclass, field

from srearena.cluster.embedded.clock import Clock, Signal
from srearena.cluster.embedded.machine.machine import Machine
from srearena.cluster.embedded.machine.processes.credentials import ROOT, Credentials
from srearena.cluster.embedded.machine.processes.pids import PidNamespace

_SHIM = "/usr/local/bin/containerd-shim-runc-v2"
_DAEMON_MEMORY = 20 * 1024 * 1024
_LOWEST, _SPAN = 1000, 15_000


@dataclass(frozen=True, slots=True)
class HostProcess:
    """A process outside of the container that looks at it."""

    pid: int
    argv: list[str]
    started_at: float
    done: Signal[int]
    credentials: Credentials = ROOT
    memory: int = _DAEMON_MEMORY
    state: str = "S"
    parent: None = field(default=None)

    @property
    def name(self) -> str:
        return self.argv[0].rpartition("/")[2]

    @property
    def group(self) -> int:
        return self.pid


def host_processes(machine: Machine, own: PidNamespace) -> list[HostProcess]:
    """The init process, the services that run, and the processes of all containers but those of a namespace."""
    clock = machine.clock
    booted = machine.booted_at
    found = [_daemon(clock, 1, ["/sbin/init"], booted), _daemon(clock, 98, ["/lib/systemd/systemd-journald"], booted)]
    for service in machine.services.values():
        if service.running():
            found.append(_daemon(clock, service.pid, [service.path, *service.arguments], service.since()))
    for record in machine.live.values():
        container = record.container
        if container is None or container.pids is own:
            continue
        first = _LOWEST + int(record.id[:8], 16) % _SPAN
        shim = [_SHIM, "-namespace", "k8s.io", "-id", record.sandbox_id]
        found.append(_daemon(clock, first, shim, record.started_at))
        found += [
            HostProcess(
                first + pid,
                process.argv,
                process.started_at,
                process.done,
                process.credentials,
                process.memory,
                process.state,
            )
            for pid, process in container.pids.processes.items()
            if process.container is container
        ]
    return found


def _daemon(clock: Clock, pid: int, argv: list[str], started_at: float) -> HostProcess:
    return HostProcess(pid, argv, started_at, Signal(clock))
