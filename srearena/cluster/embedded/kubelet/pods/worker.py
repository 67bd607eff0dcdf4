"""The lifecycle of one pod on its node, as a state machine on virtual time.

A worker is in one of three states: `SYNCING` (keeps the pod running), `TERMINATING` or `TERMINATED`. While syncing it
reacts to events (the spec changed, a container ended, a probe result changed, a delay expired): it publishes the status
first and then brings the pod to its desired state. At most one sync runs at a time; an event during a sync causes
another sync afterwards. Without events nothing runs.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING

from srearena.cluster.embedded.clock import Signal, Task, Timer
from srearena.cluster.embedded.durations import parse_time
from srearena.cluster.embedded.kubelet.node.resources import container_of, restarts_for, set_limits
from srearena.cluster.embedded.kubelet.pods.allocation import PendingResize, resources_of, with_resources
from srearena.cluster.embedded.kubelet.pods.container_states import Health, container_statuses
from srearena.cluster.embedded.kubelet.pods.fields import FieldSources
from srearena.cluster.embedded.kubelet.pods.start import PodStart
from srearena.cluster.embedded.kubelet.pods.status import FAILED, FINISHED, conditions_of, merged_conditions, phase_of
from srearena.cluster.embedded.kubelet.pods.stop import stop_pod
from srearena.cluster.embedded.kubelet.probing.probes import PodProbes, Probe
from srearena.cluster.embedded.machine.containers.runtime import ContainerRecord, Sandbox
from srearena.cluster.embedded.machine.files.inodes import Space
from srearena.cluster.embedded.machine.files.mounted_volume import MountedVolume
from srearena.cluster.embedded.objects import Obj, dig, is_terminating, key_of, meta, uid_of
from srearena.cluster.embedded.registry.strategies.pod_resources import qos_class

if TYPE_CHECKING:
    from srearena.cluster.embedded.kubelet.kubelet import Kubelet

RETRY_SECONDS = 10.0
RETRY_SPREAD = 0.5
"""Delay after a failed sync: ten seconds plus up to half of that, as in the kubelet."""
CLEANUP_SECONDS = 0.2
"""The time to unmount volumes and remove the rest of a pod."""
DEADLINE_MESSAGE = "Pod was active on the node longer than the specified deadline"


_log = logging.getLogger(__name__)
_SHOWN = ("labels", "annotations")
_KINDS = ("containers", "initContainers", "ephemeralContainers")


class WorkerState(Enum):
    SYNCING = "syncing"
    TERMINATING = "terminating"
    TERMINATED = "terminated"


class PodWorker:
    __slots__ = (
        "_again",
        "_deadline",
        "_grace",
        "_intended",
        "_probes",
        "_task",
        "_timer",
        "deadline_exceeded",
        "disk",
        "disrupted",
        "end",
        "has_storage_limits",
        "killed",
        "kubelet",
        "pending_resize",
        "pending_since",
        "pod",
        "reasons",
        "sandbox",
        "stage",
        "started_at",
        "static",
        "status",
        "stop_signal",
        "uid",
        "volumes",
    )

    def __init__(self, kubelet: Kubelet, pod: Obj, *, static: bool = False) -> None:
        self.kubelet = kubelet
        self.pod = pod
        self.uid = uid_of(pod)
        self.static = static
        self.has_storage_limits = _limits_storage(pod["spec"])
        """Whether the pod has limits on local storage."""
        self.stage = WorkerState.SYNCING
        self.sandbox: Sandbox | None = None
        self.disk = Space(parent=kubelet.machine.disk)
        """What the pod takes of the node's disk."""
        self.volumes: dict[str, MountedVolume] = kubelet.machine.volumes.setdefault(self.uid, {})
        self.reasons: dict[str, tuple[str, str]] = {}
        """Why containers could not be started, by name."""
        self.killed: dict[str, str] = {}
        """Containers that failed a liveness or startup probe, by name, with the event message."""
        self.pending_resize: PendingResize | None = None
        """Why the pod does not have the resources that it asks for, if it does not."""
        self.status: Obj | None = None
        """The last published status, as stored by the API server."""
        self._intended: Obj | None = None
        self.end: tuple[str, str] | None = None
        """Why the kubelet itself ends the pod, if it does: reason and message of the Failed phase."""
        self.disrupted: Obj | None = None
        """The DisruptionTarget condition, where the kubelet evicts the pod."""
        self.pending_since: float | None = None
        """When the kubelet first saw a pod whose containers have not all run yet."""
        self.deadline_exceeded = False
        self.started_at = dig(pod, "status", "startTime") or ""
        self.stop_signal: Signal[None] = Signal(kubelet.clock)
        """Set when termination begins; wakes tasks that wait."""
        self._grace: int | None = None
        self._probes: PodProbes | None = None
        self._task: Task[None] | None = None
        self._timer: Timer | None = None
        self._again = False
        self._deadline: Timer | None = None

    # --- events ----------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin with the pod; an existing sandbox (after a kubelet restart) is adopted."""
        found = self.kubelet.machine.sandboxes.get(self.uid)
        if found is not None:
            self.sandbox = found
            self.disk = found.disk
            found.on_change = self.container_changed
            self._watch_running(found)
        else:
            self.pending_since = self.kubelet.clock.now
        for mounted in self.volumes.values():
            self.kubelet.refresh.register(self, mounted.references)
        self.sync(0)

    def _watch_running(self, sandbox: Sandbox) -> None:
        """Start probes of running containers; the readiness found before the kubelet restart is kept."""
        rows = (self.pod.get("status") or {}).get("containerStatuses") or ()
        ready = {row["name"]: bool(row.get("ready")) for row in rows}
        for record in sandbox.running():
            container = self.container(record.name)
            if container is not None:
                self.probes.watch(container, record, ready=ready.get(record.name))

    def update(self, pod: Obj) -> None:
        """The pod object changed."""
        before, self.pod = self.pod, self._allocated(pod)
        if self.sandbox is not None:
            self.sandbox.pod = self.pod
            if self.volumes and any(before["metadata"].get(key) != pod["metadata"].get(key) for key in _SHOWN):
                self.kubelet.refresh.plan(self)
        self._apply_resources(before)
        if is_terminating(pod):
            grace = meta(pod).get("deletionGracePeriodSeconds") or 0
            if not is_terminating(before) or (self._grace is not None and grace < self._grace):
                self.terminate(grace)
            return
        self.sync(0)

    def _allocated(self, pod: Obj) -> Obj:
        """A new version of the pod, with the resources that the node has allocated to it."""
        present = resources_of(self.pod)
        if self.stage is not WorkerState.SYNCING or resources_of(pod) == present:
            self.pending_resize = None
            return pod
        self.pending_resize = self.kubelet.allocate(self, pod)
        return pod if self.pending_resize is None else with_resources(pod, present)

    def _apply_resources(self, before: Obj) -> None:
        """Limits may change while containers run (pods/resize): the cgroups follow, or the container starts again."""
        if self.sandbox is None:
            return
        for record in self.sandbox.running():
            container = self.container(record.name)
            if container is None or record.container is None:
                continue
            if restarts_for(container, container_of(before, record.name)):
                self.killed[record.name] = f"Container {record.name} resize requires restart"
                record.held_resources = container_of(before, record.name).get("resources") or {}
            else:
                set_limits(record.container.meter, dig(container, "resources", "limits", default={}))

    def removed(self) -> None:
        """The pod object is gone."""
        if self.stage is WorkerState.TERMINATED:
            self.kubelet.forget(self)
        elif self.stage is WorkerState.SYNCING:
            self.terminate(dig(self.pod, "spec", "terminationGracePeriodSeconds", default=30))

    def container_changed(self) -> None:
        """A container started or ended; the kubelet notices at the next relist."""
        if self.stage is WorkerState.SYNCING:
            self.sync_at(self.kubelet.next_relist())

    def kill_after_probe(self, container: str, why: str) -> None:
        """Kill a container whose probe failed; it is restarted if its policy allows."""
        self.killed[container] = why
        self.sync(0)

    def is_stopping(self) -> bool:
        return self.stop_signal.is_set

    def evict(self, reason: str, message: str, grace: int, disruption: Obj | None = None) -> None:
        """Evict the pod; it becomes Failed with that reason."""
        if self.end is None:
            self.end = (reason, message)
            self.disrupted = disruption
            self.terminate(grace)

    def suspend(self) -> None:
        """Stop syncing because the kubelet stops; containers keep running."""
        self._drop_timer()
        if self._task is not None:
            self._task.cancel()
            self._task = None
        if self._deadline is not None:
            self._deadline.cancel()
        if self._probes is not None:
            self._probes.stop()
        if self.sandbox is not None:
            self.sandbox.on_change = None

    # --- syncs ----------------------------------------------------------------------------------------------

    def sync(self, delay: float) -> None:
        self.sync_at(self.kubelet.clock.now + delay)

    def sync_at(self, moment: float) -> None:
        """Schedule a sync at that moment, unless one is scheduled earlier."""
        if self.stage is not WorkerState.SYNCING:
            return
        if self._task is not None:
            self._again = True
            return
        if self._timer is not None and self._timer.pending:
            if self._timer.when <= moment:
                return
            self._timer.cancel()
        self._timer = self.kubelet.clock.at(moment, self._round)

    def _drop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _round(self) -> None:
        if self.stage is not WorkerState.SYNCING or self._task is not None:
            return
        self._drop_timer()
        self._check_deadline()
        status = self.publish()
        if status["phase"] in FINISHED:
            self._conclude()
            return
        plan = PodStart(self)
        if plan.nothing_to_do:
            self.kubelet.statistics.synced("sync")
            return
        self._task = self.kubelet.clock.spawn(self._do(plan))

    async def _do(self, plan: PodStart) -> None:
        clock, statistics = self.kubelet.clock, self.kubelet.statistics
        began, operation = clock.now, "sync" if self.pending_since is None else "create"
        try:
            succeeded = await plan.run()
        except Exception:
            # An error in one pod must not stop the cluster; the kubelet retries later.
            _log.exception("sync of pod %s failed", key_of(self.pod))
            succeeded = False
        self._task = None
        statistics.synced(operation, clock.now - began)
        if succeeded and self.pending_since is not None and self._runs():
            statistics.pod_starts.observe(clock.now - self.pending_since)
            self.pending_since = None
        if self.stage is WorkerState.TERMINATING:
            self._take_down()
        elif self._again:
            self._again = False
            self.sync_at(self.kubelet.next_relist())
        if not succeeded:
            self.sync(self.kubelet.jitter(RETRY_SECONDS, RETRY_SPREAD))

    def _runs(self) -> bool:
        """Whether every regular container runs."""
        sandbox = self.sandbox
        if sandbox is None:
            return False
        latest = (sandbox.latest(container["name"]) for container in self.pod["spec"]["containers"])
        return all(record is not None and record.running for record in latest)

    # --- used by syncs ----------------------------------------------------------------------------------

    def container(self, name: str) -> Obj | None:
        """The container of that name in the spec: init, regular or ephemeral."""
        spec = self.pod["spec"]
        for kind in _KINDS:
            for container in spec.get(kind) or ():
                if container["name"] == name:
                    return container  # type: ignore[no-any-return]
        return None

    def container_event(self, container: Obj, kind: str, reason: str, message: str) -> None:
        spec, name = self.pod["spec"], container["name"]
        where = next(
            (part for part in _KINDS if any(other["name"] == name for other in spec.get(part) or ())), "containers"
        )
        self.kubelet.event(self.pod, kind, reason, message, field_path=f"spec.{where}{{{name}}}")

    def field_sources(self) -> FieldSources:
        return self.kubelet.field_sources(self.sandbox)

    def mount(self, volume: Obj) -> None:
        """Set one volume up; the errors of `VolumePlugins.set_up`."""
        mounted = self.kubelet.mount(self.pod, volume, self.field_sources(), self.disk)
        self.volumes[volume["name"]] = mounted
        if mounted.references:
            self.kubelet.refresh.register(self, mounted.references)

    def started_something(self) -> None:
        """Schedule a sync at the next relist, which will show the new container."""
        self._again = True

    # --- probes ----------------------------------------------------------------------------------------------

    @property
    def probes(self) -> PodProbes:
        if self._probes is None:
            self._probes = PodProbes(self)
        return self._probes

    @property
    def probes_begun(self) -> Iterable[Probe]:
        """The running probes; starts none."""
        return self._probes or ()

    def _health(self, name: str, record: ContainerRecord) -> Health:
        return self.probes.health(name, record)

    # --- status ----------------------------------------------------------------------------------------------

    def publish(self, *, terminal: bool = False) -> Obj:
        """Compute the status and write it if it changed or differs from the stored one."""
        status = self._status(terminal)
        if status != self._intended or self.pod.get("status") != self.status:
            self._intended = self.status = status
            self.kubelet.write_status(self, status)
        return status

    def written(self, pod: Obj) -> None:
        """Store the pod as the API server returned it after a status update."""
        self.status = pod.get("status")
        if uid_of(pod) == self.uid:
            self.pod = self._allocated(pod)

    def _status(self, terminal: bool) -> Obj:
        pod, clock = self.pod, self.kubelet.clock
        spec = pod["spec"]
        known = self.status if self.status is not None else pod.get("status") or {}
        inits = container_statuses(
            pod,
            spec.get("initContainers") or (),
            known.get("initContainerStatuses") or (),
            self.sandbox,
            self.reasons,
            self._health,
            init=True,
        )
        regulars = container_statuses(
            pod, spec["containers"], known.get("containerStatuses") or (), self.sandbox, self.reasons, self._health
        )
        if terminal:
            # For containers that ended for good only the latest record is kept; earlier ones are garbage-collected.
            for status_of in (*inits, *regulars):
                if "terminated" in status_of["state"]:
                    status_of["lastState"] = {}
        phase = phase_of(pod, inits, regulars, terminal=terminal, static=self.static)
        if terminal and self.end is not None:
            phase = FAILED
        if known.get("phase") in FINISHED and phase not in FINISHED:
            phase = known["phase"]
        now = clock.timestamp()
        if not self.started_at:
            self.started_at = now
        ready = self.sandbox is not None and self.sandbox.ready
        own = conditions_of(pod, inits, regulars, phase, sandbox_ready=ready)
        if self.pending_resize is not None:
            own.insert(0, self.pending_resize.condition(pod, now))
        before = [*(known.get("conditions") or ()), *([self.disrupted] if self.disrupted else ())]
        status: Obj = {
            "phase": phase,
            "conditions": merged_conditions(pod, own, before, now),
            "hostIP": self.kubelet.machine.address,
            "hostIPs": [{"ip": self.kubelet.machine.address}],
            "startTime": self.started_at,
            "qosClass": known.get("qosClass") or qos_class(spec),
        }
        self._add_addresses(status, known)
        self._add_reason(status, known, terminal)
        status["containerStatuses"] = regulars
        if inits:
            status["initContainerStatuses"] = inits
        if spec.get("ephemeralContainers"):
            status["ephemeralContainerStatuses"] = container_statuses(
                pod,
                spec["ephemeralContainers"],
                known.get("ephemeralContainerStatuses") or (),
                self.sandbox,
                self.reasons,
                self._health,
                ephemeral=True,
            )
        if meta(pod).get("generation"):
            status["observedGeneration"] = meta(pod)["generation"]
        for key in ("nominatedNodeName", "resourceClaimStatuses", "resize"):
            if dig(pod, "status", key):
                status[key] = pod["status"][key]
        return status

    def _add_addresses(self, status: Obj, known: Obj) -> None:
        if self.sandbox is not None:
            status["podIP"], status["podIPs"] = self.sandbox.address, [{"ip": self.sandbox.address}]
        elif known.get("podIP"):
            status["podIP"], status["podIPs"] = known["podIP"], known.get("podIPs") or [{"ip": known["podIP"]}]
        elif self.pod["spec"].get("hostNetwork"):
            address = self.kubelet.machine.address
            status["podIP"], status["podIPs"] = address, [{"ip": address}]

    def _add_reason(self, status: Obj, known: Obj, terminal: bool) -> None:
        """Reason and message belong to a phase and stay until it changes."""
        reason, message = (
            (known.get("reason"), known.get("message")) if known.get("phase") == status["phase"] else ("", "")
        )
        if terminal and self.end is not None:
            reason, message = self.end
        if reason:
            status["reason"] = reason
        if message:
            status["message"] = message

    # --- termination ---------------------------------------------------------------------------------------------

    def _check_deadline(self) -> None:
        limit = self.pod["spec"].get("activeDeadlineSeconds")
        if limit is None or self.deadline_exceeded or not self.started_at:
            return
        due = parse_time(self.started_at) + limit
        clock = self.kubelet.clock
        if clock.now < due:
            if self._deadline is None or not self._deadline.pending:
                self._deadline = clock.at(due, self.sync, 0)
            return
        self.deadline_exceeded = True
        self.kubelet.event(self.pod, "Normal", "DeadlineExceeded", DEADLINE_MESSAGE)
        self.evict(
            "DeadlineExceeded", DEADLINE_MESSAGE, dig(self.pod, "spec", "terminationGracePeriodSeconds", default=30)
        )

    def _conclude(self) -> None:
        """Terminate the pod: all its containers have ended."""
        self.terminate(0)

    def terminate(self, grace: int) -> None:
        """Terminate the pod within `grace` seconds; a later call may shorten the period."""
        if self.stage is WorkerState.TERMINATED:
            if is_terminating(self.pod):
                self.kubelet.delete_pod(self)
            return
        hurried = self.stage is WorkerState.TERMINATING
        self._grace = grace if self._grace is None else min(grace, self._grace)
        self.stage = WorkerState.TERMINATING
        self._drop_timer()
        self.stop_signal.set(None)
        if hurried and self._task is not None and grace <= self._grace:
            self._task.cancel()
            self._task = None
        if self._task is None:
            self._take_down()

    def _take_down(self) -> None:
        if self._probes is not None:
            self._probes.stop_killing()
        if self.disrupted is not None:
            self.publish()
        self._task = self.kubelet.clock.spawn(self._terminate())

    async def _terminate(self) -> None:
        ran = await stop_pod(self, self._grace or 0)
        clock = self.kubelet.clock
        if ran:
            await clock.sleep(self.kubelet.next_relist() - clock.now)
        if self._probes is not None:
            self._probes.stop()
        if self.sandbox is not None:
            self.sandbox.on_change = None
            self.sandbox.release()
        # Release the resources before the end is published: the next pod may be bound at once.
        self.kubelet.uncommit(self)
        self.publish(terminal=True)
        await clock.sleep(CLEANUP_SECONDS)
        self.kubelet.refresh.forget(self)
        self.volumes.clear()
        self.stage = WorkerState.TERMINATED
        self._task = None
        if self._deadline is not None:
            self._deadline.cancel()
        self.kubelet.finished(self)


def _limits_storage(spec: Obj) -> bool:
    return any(dig(c, "resources", "limits", "ephemeral-storage") for c in spec["containers"]) or any(
        dig(volume, "emptyDir", "sizeLimit") for volume in spec.get("volumes") or ()
    )
