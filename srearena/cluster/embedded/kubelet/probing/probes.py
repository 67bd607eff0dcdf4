"""Startup, liveness and readiness probes of running containers.

Each probe ticks with its own period from the moment its pod was taken on. A tick is planned only where it can matter
(the container runs, its initial delay is over, startup has succeeded), calls the real listener or process, and changes
the result only after enough consecutive equal outcomes. Probes that complete at once need no coroutine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from srearena.cluster.embedded.clock import Task, Timer
from srearena.cluster.embedded.kubelet.pods.container_states import Health
from srearena.cluster.embedded.kubelet.probing.checks import Check, check_for
from srearena.cluster.embedded.machine.containers.runtime import ContainerRecord
from srearena.cluster.embedded.machine.networking.interface_counters import Carried
from srearena.cluster.embedded.objects import Obj

if TYPE_CHECKING:
    from srearena.cluster.embedded.kubelet.pods.worker import PodWorker

STARTUP, LIVENESS, READINESS = "startup", "liveness", "readiness"
_FIELDS = {STARTUP: "startupProbe", LIVENESS: "livenessProbe", READINESS: "readinessProbe"}
_TITLES = {STARTUP: "Startup", LIVENESS: "Liveness", READINESS: "Readiness"}


class Probe:
    """One probe of one container of one pod; it survives restarts of the container."""

    __slots__ = (
        "_carried",
        "_check",
        "_due",
        "_failures_needed",
        "_last",
        "_on_hold",
        "_owner",
        "_row",
        "_successes_needed",
        "_task",
        "_timer",
        "container",
        "delay",
        "failures",
        "kind",
        "period",
        "record",
        "result",
        "successes",
        "unknowns",
    )

    def __init__(self, owner: PodProbes, container: Obj, kind: str) -> None:
        spec = container[_FIELDS[kind]]
        self._owner = owner
        self.container = container
        self.kind = kind
        self.period = float(spec.get("periodSeconds") or 10)
        self.delay = float(spec.get("initialDelaySeconds") or 0)
        self._failures_needed = spec.get("failureThreshold") or 3
        self._successes_needed = spec.get("successThreshold") or 1
        self._check: Check = check_for(spec, container)
        self._carried: Carried | None = None
        """The counters of the interface over which the container is probed now."""
        self.record: ContainerRecord | None = None
        self.result: bool | None = None
        """The result for the current container after enough consecutive outcomes; None before that."""
        self.successes = self.failures = self.unknowns = 0
        """The number of successful and failed probes so far."""
        self._last: bool | None = None
        self._row = 0
        self._on_hold = False
        self._due = 0.0
        """When the next tick is due; 0 for a tick out of schedule."""
        self._timer: Timer | None = None
        self._task: Task[None] | None = None

    def attach(self, record: ContainerRecord, result: bool | None = None) -> None:
        """Probe a new container. The result of the previous one is dropped; its consecutive outcomes still count."""
        self.stop()
        self.record = record
        self.result = result
        if result is not None:
            self._last = result
        self._on_hold = False
        self.plan()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._carry(None)
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def _carry(self, record: ContainerRecord | None) -> None:
        """Count the bytes of the probes of a container, as a rate; None ends it."""
        carried = None if record is None or record.container is None else record.container.namespace.carried
        exchange, now = self._check.traffic, self._owner.worker.kubelet.clock.now
        if exchange is None or carried is self._carried:
            return
        if self._carried is not None:
            self._carried.set_steady(self, None, now)
        if carried is not None:
            carried.set_steady(self, exchange.times(1 / self.period), now)
        self._carried = carried

    def plan(self) -> None:
        """Schedule the next tick at which an outcome can change the result, if there is one."""
        record = self.record
        if record is None or self._on_hold or self._timer is not None or self._task is not None:
            return
        started = self._owner.started(self.container["name"])
        if started == (self.kind == STARTUP):
            self._carry(None)
            return
        clock = self._owner.worker.kubelet.clock
        anchor = self._owner.anchor
        # The kubelet compares whole seconds since the start with the delay.
        earliest = max(record.started_at + self.delay, clock.now + 1e-6)
        ticks = math.ceil((earliest - anchor) / self.period - 1e-9)
        self._due = anchor + ticks * self.period
        self._timer = clock.at(self._due, self._tick)
        self._carry(record)

    def trigger(self) -> None:
        """Probe now, out of schedule: readiness is not known yet."""
        record = self.record
        clock = self._owner.worker.kubelet.clock
        if record is None or self._task is not None or clock.now - record.started_at < self.delay:
            return
        if self._timer is not None and self._timer.when <= clock.now:
            return
        self.stop()
        self._due = 0.0
        self._timer = clock.after(0, self._tick)

    def _tick(self) -> None:
        self._timer = None
        record = self.record
        if record is None or not record.running or record.container is None:
            self._carry(None)
            return
        worker = self._owner.worker
        answer = self._check.ask(worker, record)
        if answer is None:
            self._task = worker.kubelet.clock.spawn(self._wait(record))
        elif answer[0] and not answer[1] and self.result and self.kind is not STARTUP:
            # The usual case: success after success.
            self._last = True
            self.successes += 1
            if self._due:
                self._due += self.period
                self._timer = worker.kubelet.clock.at(self._due, self._tick)
            else:
                self.plan()
        else:
            self._answered(*answer)

    async def _wait(self, record: ContainerRecord) -> None:
        answer = await self._check.wait(self._owner.worker, record)
        self._task = None
        if self.record is record and record.running:
            self._answered(*answer)

    def _answered(self, good: bool | None, text: str) -> None:
        if text:
            reason = "ProbeWarning" if good else "Unhealthy"
            self._owner.worker.container_event(self.container, "Warning", reason, f"{_TITLES[self.kind]} {text}")
        if good is None:
            self.unknowns += 1
            self.plan()
            return
        if good:
            self.successes += 1
        else:
            self.failures += 1
        if good == self._last:
            self._row += 1
        else:
            self._last, self._row = good, 1
        enough = self._row >= (self._successes_needed if good else self._failures_needed)
        if enough and (good != self.result or (not good and self.kind != READINESS)):
            self._decide(good)
        self.plan()

    def _decide(self, good: bool) -> None:
        before, self.result = self.result, good
        worker = self._owner.worker
        if self.kind == READINESS:
            if bool(before) != good:
                worker.sync(0)
            return
        if good:
            if self.kind == STARTUP:
                worker.sync(0)
                self._owner.plan_all()
            return
        self._on_hold = True
        self._row = 0
        worker.kill_after_probe(self.container["name"], f"Container {self.container['name']} failed {self.kind} probe")


class PodProbes:
    """All probes of a pod."""

    __slots__ = ("_probes", "anchor", "worker")

    def __init__(self, worker: PodWorker) -> None:
        self.worker = worker
        self.anchor = worker.kubelet.clock.now
        self._probes: dict[str, dict[str, Probe]] = {}

    def watch(self, container: Obj, record: ContainerRecord, *, ready: bool | None = None) -> None:
        """Start the probes of a container; `ready` is the result from before a kubelet restart."""
        kinds = [kind for kind in _FIELDS if container.get(_FIELDS[kind])]
        if not kinds:
            return
        own = self._probes.setdefault(container["name"], {})
        known = {STARTUP: True, LIVENESS: None, READINESS: ready} if ready is not None else {}
        for kind in kinds:
            if kind not in own:
                own[kind] = Probe(self, container, kind)
        for kind in kinds:
            own[kind].attach(record, known.get(kind))

    def __iter__(self) -> Iterator[Probe]:
        """Every probe, container by container."""
        for own in self._probes.values():
            yield from own.values()

    def started(self, name: str) -> bool:
        own = self._probes.get(name)
        startup = own.get(STARTUP) if own else None
        return startup is None or startup.result is True

    def health(self, name: str, record: ContainerRecord) -> Health:
        own = self._probes.get(name)
        if not own:
            return _HEALTHY
        if not self.started(name):
            return _STARTING
        readiness = own.get(READINESS)
        if readiness is None:
            return _HEALTHY
        if readiness.result is None:
            readiness.trigger()
        return _HEALTHY if readiness.result else _UNREADY

    def plan_all(self) -> None:
        for own in self._probes.values():
            for probe in own.values():
                probe.plan()

    def stop_killing(self) -> None:
        """Stop liveness and startup probes because the pod terminates; readiness is still probed."""
        for own in self._probes.values():
            for kind in (STARTUP, LIVENESS):
                if kind in own:
                    own[kind].stop()
                    own[kind].record = None

    def stop(self) -> None:
        for own in self._probes.values():
            for probe in own.values():
                probe.stop()
                probe.record = None


_HEALTHY = Health(True, True)
_UNREADY = Health(True, False)
_STARTING = Health(False, False)
