"""Node-pressure eviction: pressure conditions, reclaiming disk, and eviction of pods.

Every ten seconds the signals are compared with the hard thresholds of the kubelet's configuration. A pressure condition
stays for five minutes after its signal has recovered, or as long as configured. One pod is evicted at a time; pods that
exceed limits of their own on local storage go at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from srearena.cluster.embedded.kubelet.node.resources import memory_request, out_of_memory_victim
from srearena.cluster.embedded.kubelet.pods.admission import is_critical
from srearena.cluster.embedded.objects import Obj, dig
from srearena.cluster.embedded.quantity import Format, Quantity, units

if TYPE_CHECKING:
    from srearena.cluster.embedded.kubelet.kubelet import Kubelet
    from srearena.cluster.embedded.kubelet.pods.worker import PodWorker

CLEANUP_SECONDS = 30.0
"""How long the manager waits for an evicted pod to be gone before it looks for another."""
EVICTION_GRACE = 1
REASON = "Evicted"
_MEMORY, _STORAGE = "memory", "ephemeral-storage"
SIGNALS = {_MEMORY: "memory.available", _STORAGE: "nodefs.available"}
_LOCAL_SIGNAL = "ephemeralcontainerfs.limit"
_PAGE = 4096


@dataclass(frozen=True, slots=True)
class Threshold:
    """A signal below its eviction threshold."""

    resource: str
    condition: str
    quantity: int
    available: int


class EvictionManager:
    def __init__(self, kubelet: Kubelet) -> None:
        self._kubelet = kubelet
        self._last_met: dict[str, float] = {}
        self._busy_until = 0.0

    def check(self, memory: int) -> None:
        """Compare the signals with the thresholds; `memory` is the amount in use."""
        kubelet = self._kubelet
        if memory > kubelet.machine.memory:
            memory = self._kill_for_memory()
        self._check_local_limits()
        met = self._thresholds(memory)
        if not met and not self._last_met:
            return
        now = kubelet.clock.now
        for threshold in met:
            self._last_met[threshold.condition] = now
        lasting = kubelet.configuration.transition_seconds
        self._last_met = {kind: at for kind, at in self._last_met.items() if now - at < lasting}
        kubelet.set_pressures(frozenset(self._last_met))
        if met and now >= self._busy_until:
            self._relieve(met[0])

    def _thresholds(self, memory: int) -> list[Threshold]:
        machine, configuration = self._kubelet.machine, self._kubelet.configuration
        found: list[Threshold] = []
        free = machine.memory - memory
        wanted = configuration.threshold(SIGNALS[_MEMORY], machine.memory)
        if free < wanted:
            found.append(Threshold(_MEMORY, "MemoryPressure", wanted, max(0, free)))
        size, used = machine.disk.limits
        left = size - used
        for signal in (SIGNALS[_STORAGE], "imagefs.available"):
            wanted = configuration.threshold(signal, size)
            if left < wanted:
                found.append(Threshold(_STORAGE, "DiskPressure", wanted, max(0, left)))
                break
        return found

    # --- relief ----------------------------------------------------------------------------------------------

    def _relieve(self, threshold: Threshold) -> None:
        kubelet = self._kubelet
        kubelet.node_event("Warning", "EvictionThresholdMet", f"Attempting to reclaim {threshold.resource}")
        if threshold.resource == _STORAGE:
            self._remove_images()
            if not any(other.resource == _STORAGE for other in self._thresholds(0)):
                return
        candidates = [worker for worker in kubelet.active_workers() if not _spared(worker)]
        for worker in sorted(candidates, key=lambda worker: _rank(worker, threshold.resource)):
            message = self._message(worker, threshold)
            disruption = _disruption(message, kubelet.clock.timestamp(), worker.pod)
            kubelet.event(worker.pod, "Warning", REASON, message)
            worker.evict(REASON, message, EVICTION_GRACE, disruption)
            kubelet.statistics.evicted(SIGNALS[threshold.resource])
            self._busy_until = kubelet.clock.now + CLEANUP_SECONDS
            return

    def _remove_images(self) -> None:
        """Delete what no container uses, longest unused first."""
        machine = self._kubelet.machine
        used = {
            str(attempts[0].image.reference)
            for sandbox in machine.sandboxes.values()
            for attempts in sandbox.records.values()
            if attempts and not attempts[0].exited
        }
        for image in sorted(machine.images.images(), key=lambda image: image.used_at):
            if str(image.reference) not in used:
                machine.images.remove(image)

    def _message(self, worker: PodWorker, threshold: Threshold) -> str:
        text = (
            f"The node was low on resource: {threshold.resource}. "
            f"Threshold quantity: {_bytes(threshold.quantity)}, available: {_available(threshold.available)}. "
        )
        for name, used in _use_by_container(worker, threshold.resource).items():
            request = _request(worker.pod, name, threshold.resource)
            if used > request:
                text += (
                    f"Container {name} was using {_available(used)}, request is {_bytes(request)}, "
                    f"has larger consumption of {threshold.resource}. "
                )
        return text

    # --- limits of single pods -------------------------------------------------------------------------------

    def _check_local_limits(self) -> None:
        for worker in self._kubelet.active_workers():
            if worker.has_storage_limits and not _spared(worker):
                message = _exceeded(worker)
                if message:
                    # Caused by the pod itself, so it is no disruption.
                    self._kubelet.event(worker.pod, "Warning", REASON, message)
                    worker.evict(REASON, message, EVICTION_GRACE)
                    self._kubelet.statistics.evicted(_LOCAL_SIGNAL)

    def _kill_for_memory(self) -> int:
        """Demand exceeds the machine's memory: the kernel kills processes until there is enough."""
        machine = self._kubelet.machine
        while (used := machine.memory_working_set()) > machine.memory:
            victim = out_of_memory_victim(machine)
            if victim is None or victim[1].container is None:
                break
            container = victim[1].container
            name = container.main.name if container.main is not None else victim[1].name
            pid = 1000 + machine.random.randrange(60000)
            self._kubelet.node_event(
                "Warning", "SystemOOM", f"System OOM encountered, victim process: {name}, pid: {pid}"
            )
            container.oom_killed = True
            container.kill()
        return used


def _spared(worker: PodWorker) -> bool:
    return worker.static or is_critical(worker.pod)


def _rank(worker: PodWorker, resource: str) -> tuple[bool, int, int]:
    """Eviction order: usage above requests first, then lower priority, then higher usage over requests."""
    uses = _use_by_container(worker, resource)
    used = sum(uses.values()) if resource == _MEMORY else _disk_use(worker)
    requested = sum(_request(worker.pod, name, resource) for name in uses)
    return (used <= requested, dig(worker.pod, "spec", "priority", default=0), requested - used)


def _request(pod: Obj, name: str, resource: str) -> int:
    if resource == _MEMORY:
        return memory_request(pod, name)
    for container in pod["spec"]["containers"]:
        if container["name"] == name:
            value = dig(container, "resources", "requests", _STORAGE)
            return units(value) if value else 0
    return 0


def _use_by_container(worker: PodWorker, resource: str) -> dict[str, int]:
    if worker.sandbox is None:
        return {}
    if resource == _MEMORY:
        return {record.name: record.working_set for record in worker.sandbox.running()}
    return {record.name: _layer(record) + record.log.size for record in worker.sandbox.running()}


def _layer(record: object) -> int:
    """Bytes a container has written over its image."""
    container = getattr(record, "container", None)
    return container.filesystem.root.volume.space.used if container is not None else 0


def _disk_use(worker: PodWorker) -> int:
    logs = 0
    if worker.sandbox is not None:
        logs = sum(attempt.log.size for attempts in worker.sandbox.records.values() for attempt in attempts)
    return worker.disk.used + logs


def _exceeded(worker: PodWorker) -> str:
    """Which limit on local storage the pod exceeds; empty where it exceeds none."""
    for volume in worker.volumes.values():
        if volume.size_limit is not None and volume.volume.space.used > volume.size_limit:
            return (
                f'Usage of EmptyDir volume "{volume.name}" exceeds the limit "{_limit_text(worker.pod, volume.name)}". '
            )
    containers = worker.pod["spec"]["containers"]
    limits = {c["name"]: dig(c, "resources", "limits", _STORAGE) for c in containers}
    if any(limits.values()):
        # Containers without a limit count with what they use, not with what they may use.
        total = sum(units(limit) for limit in limits.values() if limit)
        if _disk_use(worker) > total:
            return f"Pod ephemeral local storage usage exceeds the total limit of containers {_bytes(total)}. "
    for name, used in _use_by_container(worker, _STORAGE).items():
        limit = limits.get(name)
        if limit and used > units(limit):
            return f'Container {name} exceeded its local ephemeral storage limit "{limit}". '
    return ""


def _limit_text(pod: Obj, name: str) -> str:
    for volume in pod["spec"].get("volumes") or ():
        if volume["name"] == name:
            return str(dig(volume, "emptyDir", "sizeLimit", default=""))
    return ""


def _disruption(message: str, now: str, pod: Obj) -> Obj:
    row: Obj = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": now,
        "reason": "TerminationByKubelet",
        "message": message,
    }
    if pod["metadata"].get("generation"):
        row["observedGeneration"] = pod["metadata"]["generation"]
    return row


def _bytes(amount: int) -> str:
    return str(Quantity.of(amount, Format.BINARY_SI))


def _available(amount: int) -> str:
    """Measured amounts are whole pages."""
    return _bytes(amount // _PAGE * _PAGE)
