"""The processor time and the traffic of a whole machine since it was switched on, whatever ran on it meanwhile.

Containers take their counters with them when they end; a machine's own do not go back before a reboot. So what was
used since the last look is added up here. What a container did between the last look and its end is lost.
"""

from __future__ import annotations

from srearena.cluster.embedded.kubelet.node.usage import SYSTEM_CORES
from srearena.cluster.embedded.machine.machine import Machine


class MachineTime:
    __slots__ = ("_boot", "_carried", "_containers", "_looked_at", "_machine", "_network", "_user")

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._begin()

    def _begin(self) -> None:
        self._boot = self._machine.boot_id
        self._user = 0.0
        self._looked_at = 0.0
        self._containers: dict[str, float] = {}
        """What each container had used at the last look."""
        self._network = [0.0, 0.0, 0.0, 0.0]
        self._carried: dict[str, tuple[float, float, float, float]] = {}

    def _look(self) -> None:
        if self._boot != self._machine.boot_id:
            self._begin()

    def busy(self, now: float) -> tuple[float, float]:
        """Seconds used by containers and other programs, and by the system."""
        self._look()
        machine = self._machine
        if now != self._looked_at:
            self._looked_at, known = now, self._containers
            seen: dict[str, float] = {}
            for identifier, record in machine.live.items():
                if record.container is not None:
                    seen[identifier] = spent = record.container.meter.cpu_seconds()
                    more = spent - known.get(identifier, 0.0)
                    if more > 0:
                        self._user += more
            self._containers = seen
        own = machine.own_load.cpu_seconds()
        return self._user + own, SYSTEM_CORES * machine.cores * (now - machine.booted_at)

    def carried(self) -> tuple[float, ...]:
        """Bytes and packets received, bytes and packets sent, by the pods and by the machine itself."""
        self._look()
        seen: dict[str, tuple[float, float, float, float]] = {}
        machine = self._machine
        spaces = [(sandbox.id, sandbox.namespace) for sandbox in machine.sandboxes.values() if not sandbox.host_network]
        for identifier, space in [*spaces, ("", machine.namespace)]:
            counts = space.carried
            now = (counts.received_bytes, counts.received_packets, counts.sent_bytes, counts.sent_packets)
            before = self._carried.get(identifier, (0.0, 0.0, 0.0, 0.0))
            if now != before:
                for place in range(4):
                    self._network[place] += max(0.0, now[place] - before[place])
            seen[identifier] = now
        self._carried = seen
        return tuple(self._network)


class MachineTimes:
    """One for each machine, shared by whoever tells of it."""

    def __init__(self) -> None:
        self._known: dict[str, MachineTime] = {}

    def of(self, machine: Machine) -> MachineTime:
        found = self._known.get(machine.name)
        if found is None:
            found = self._known[machine.name] = MachineTime(machine)
        return found
