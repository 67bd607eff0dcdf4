"""Usage of containers and nodes as metrics-server computes it: the difference of two samples, fifteen seconds apart.

A container has no usage until it was scraped twice, so autoscalers have no data about new pods.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from srearena.cluster.embedded.component_logs import METRICS_SERVER, ComponentLogs
from srearena.cluster.embedded.machine.machine import SYSTEM_MEMORY, Machine
from srearena.cluster.embedded.objects import Obj, uid_of

if TYPE_CHECKING:
    from srearena.cluster.embedded.clock import Clock
    from srearena.cluster.embedded.kubelet.kubelet import Kubelet

RESOLUTION = 15.0
SYSTEM_CORES = 0.02
"""The share of a machine's cores that system processes use."""
BLIND_SECONDS = 30.0
"""How long after its start a container's numbers first reach metrics-server."""


@dataclass(frozen=True, slots=True)
class Usage:
    cores: float
    working_set: int
    at: float
    window: float


@dataclass(slots=True)
class _Sample:
    at: float
    cpu_seconds: float
    memory: int
    cores: float = 0.0
    window: float = 0.0

    def usage(self) -> Usage | None:
        return Usage(self.cores, self.memory, self.at, self.window) if self.window > 0 else None


class UsageSampler:
    """Scrapes every kubelet that answers."""

    def __init__(self, clock: Clock, kubelets: Mapping[str, Kubelet], logs: ComponentLogs) -> None:
        self._clock = clock
        self._logs = logs
        self._kubelets = kubelets
        self._containers: dict[str, _Sample] = {}
        """By container id."""
        self._nodes: dict[str, _Sample] = {}
        clock.after(RESOLUTION, self._scrape)

    def _scrape(self) -> None:
        now = self._clock.now
        known, self._containers = self._containers, {}
        nodes, self._nodes = self._nodes, {}
        for name, kubelet in self._kubelets.items():
            if error := dial_error(kubelet):
                self._logs.write(
                    METRICS_SERVER, "E", "scraper.go:149", _failed_scrape(name, kubelet.machine.address, error)
                )
                continue
            spent, memory = self._scrape_node(kubelet.machine, known, now)
            self._nodes[name] = _follow(nodes.get(name), now, spent, memory)
        self._clock.after(RESOLUTION, self._scrape)

    def _scrape_node(self, machine: Machine, known: Mapping[str, _Sample], now: float) -> tuple[float, int]:
        """Sample every container of a node; returns the processor time and the memory of the whole node."""
        total = _system_seconds(machine, now)
        used_memory = SYSTEM_MEMORY + machine.memory_ballast
        for record in machine.live.values():
            if record.container is None:
                continue
            spent, memory = record.container.meter.cpu_seconds(), record.working_set
            total += spent
            used_memory += memory
            if now - record.started_at >= BLIND_SECONDS:
                self._containers[record.id] = _follow(known.get(record.id), now, spent, memory)
        return total, used_memory

    def cpu_seconds_of(self, machine: Machine) -> float:
        """The processor time of a machine since it booted: of its own programs and of the containers that run."""
        running = (record.container for record in machine.live.values())
        spent = sum(container.meter.cpu_seconds() for container in running if container is not None)
        return _system_seconds(machine, self._clock.now) + spent

    def of_node(self, name: str) -> Usage | None:
        found = self._nodes.get(name)
        return found.usage() if found is not None else None

    def of_pod(self, kubelet: Kubelet, pod: Obj) -> dict[str, Usage] | None:
        """By container; None while a running container has no usage yet, as metrics-server leaves such a pod out."""
        sandbox = kubelet.machine.sandboxes.get(uid_of(pod))
        if sandbox is None:
            return None
        found: dict[str, Usage] = {}
        for record in sandbox.running():
            sample = self._containers.get(record.id)
            usage = sample.usage() if sample is not None else None
            if usage is None:
                return None
            found[record.name] = usage
        return found or None


def dial_error(kubelet: Kubelet | None) -> str:
    """The error of a connection to a kubelet, in the wording of Go's dialer; empty where it is reachable."""
    if kubelet is None or not kubelet.machine.powered:
        return "connect: no route to host"
    if not kubelet.online:
        return "i/o timeout"
    return "" if kubelet.running else "connect: connection refused"


def _failed_scrape(node: str, address: str, error: str) -> str:
    where = f"{address}:10250"
    text = f'Get \\"https://{where}/metrics/resource\\": dial tcp {where}: {error}'
    return f'"Failed to scrape node" err="{text}" node="{node}"'


def _system_seconds(machine: Machine, now: float) -> float:
    return SYSTEM_CORES * machine.cores * (now - machine.booted_at) + machine.own_load.cpu_seconds()


def _follow(before: _Sample | None, now: float, cpu_seconds: float, memory: int) -> _Sample:
    sample = _Sample(now, cpu_seconds, memory)
    if before is not None and now > before.at:
        sample.window = now - before.at
        sample.cores = max(0.0, cpu_seconds - before.cpu_seconds) / sample.window
    return sample
