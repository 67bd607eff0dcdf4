"""Processor time and network volume of a whole machine since its boot.

Counters of containers vanish with them, while those of a machine never decrease before a reboot. So the increase since
the last update is added up here. The use of a container between the last update and its end is lost.
"""

from __future__ import annotations

from srearena.cluster.embedded.kubelet.node.usage import SYSTEM_CORES
from srearena.cluster.embedded.machine.machine import Machine


class MachineUsage:
    __slots__ = ("_boot", "_containers", "_interfaces", "_machine", "_network", "_updated_at", "_user")

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._begin()

    def _begin(self) -> None:
        self._boot = self._machine.boot_id
        self._user = 0.0
        self._updated_at = 0.0
        self._containers: dict[str, float] = {}
        """Processor seconds of each container at the last update."""
        self._network = [0.0, 0.0, 0.0, 0.0]
        self._interfaces: dict[str, tuple[float, float, float, float]] = {}

    def _reset_after_reboot(self) -> None:
        if self._boot != self._machine.boot_id:
            self._begin()

    def busy(self, now: float) -> tuple[float, float]:
        """Return processor seconds of containers and other programs, and of the system."""
        self._reset_after_reboot()
        machine = self._machine
        if now != self._updated_at:
            self._updated_at, previous = now, self._containers
            usage: dict[str, float] = {}
            for identifier, record in machine.live.items():
                if record.container is not None:
                    usage[identifier] = spent = record.container.meter.cpu_seconds()
                    more = spent - previous.get(identifier, 0.0)
                    if more > 0:
                        self._user += more
            self._containers = usage
        machine_load = machine.own_load.cpu_seconds()
        return self._user + machine_load, SYSTEM_CORES * machine.cores * (now - machine.booted_at)

    def network(self) -> tuple[float, ...]:
        """Return bytes and packets received, then sent, of the pods and the machine itself."""
        self._reset_after_reboot()
        counters: dict[str, tuple[float, float, float, float]] = {}
        machine = self._machine
        spaces = [(sandbox.id, sandbox.namespace) for sandbox in machine.sandboxes.values() if not sandbox.host_network]
        for identifier, space in [*spaces, ("", machine.namespace)]:
            counts = space.carried
            now = (counts.received_bytes, counts.received_packets, counts.sent_bytes, counts.sent_packets)
            before = self._interfaces.get(identifier, (0.0, 0.0, 0.0, 0.0))
            if now != before:
                for index in range(4):
                    self._network[index] += max(0.0, now[index] - before[index])
            counters[identifier] = now
        self._interfaces = counters
        return tuple(self._network)


class MachineUsages:
    """The usage of each machine, shared by collectors."""

    def __init__(self) -> None:
        self._by_machine: dict[str, MachineUsage] = {}

    def of(self, machine: Machine) -> MachineUsage:
        found = self._by_machine.get(machine.name)
        if found is None:
            found = self._by_machine[machine.name] = MachineUsage(machine)
        return found
