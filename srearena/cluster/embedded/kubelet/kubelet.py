"""The kubelet of one node: runs the pods that are bound to the node and reports their status.

It can be stopped and started again like the real process; running containers are not affected. While it cannot reach
the API server it works from its cache and queues status updates.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from srearena.cluster.embedded.clock import Timer
from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.kubelet.backoff import BackOff
from srearena.cluster.embedded.kubelet.environment import ServiceVariables
from srearena.cluster.embedded.kubelet.image_puller import ImagePuller
from srearena.cluster.embedded.kubelet.node.configuration import Configuration, ConfigurationRefused, load
from srearena.cluster.embedded.kubelet.node.eviction import EvictionManager
from srearena.cluster.embedded.kubelet.node.heartbeat import Heartbeat
from srearena.cluster.embedded.kubelet.node.node_object import allocatable_of
from srearena.cluster.embedded.kubelet.node.resources import share_processor
from srearena.cluster.embedded.kubelet.node.services import KUBELET_PID, warning_line
from srearena.cluster.embedded.kubelet.node.static_pods import StaticPods
from srearena.cluster.embedded.kubelet.pods.admission import Commitments, Rejection, rejection_of
from srearena.cluster.embedded.kubelet.pods.allocation import DEFERRED, PendingResize, pending_resize
from srearena.cluster.embedded.kubelet.pods.fields import FieldSources
from srearena.cluster.embedded.kubelet.pods.status import FINISHED, merged_conditions
from srearena.cluster.embedded.kubelet.pods.worker import PodWorker, WorkerState
from srearena.cluster.embedded.kubelet.statistics import Statistics
from srearena.cluster.embedded.kubelet.volumes.projections import Projector, TokenProvider
from srearena.cluster.embedded.kubelet.volumes.refresh import VolumeRefresh
from srearena.cluster.embedded.kubelet.volumes.volumes import PersistentStorage, VolumePlugins
from srearena.cluster.embedded.machine.containers.runtime import Sandbox
from srearena.cluster.embedded.machine.files.inodes import Space
from srearena.cluster.embedded.machine.files.mounted_volume import MountedVolume
from srearena.cluster.embedded.machine.journal import SERVICE_MANAGER
from srearena.cluster.embedded.machine.machine import Machine
from srearena.cluster.embedded.objects import Obj, dig, is_terminating, name_of, namespace_of, uid_of
from srearena.cluster.embedded.quantity import Quantity, parse
from srearena.cluster.embedded.recorder import Recorder
from srearena.cluster.embedded.registry.admission.chain import AdmissionPending
from srearena.cluster.embedded.registry.errors import ApiError, NotFound
from srearena.cluster.embedded.registry.identity import node_user
from srearena.cluster.embedded.registry.strategies.pod_resources import qos_class
from srearena.cluster.embedded.store import Change

if TYPE_CHECKING:
    from srearena.cluster.embedded.world import World

REACTION_SECONDS = 0.01
"""From a change of a pod object to the kubelet acting on it."""
RELIST_SECONDS = 1.0
"""How often the kubelet lists the containers of the runtime (PLEG relist)."""
WRITE_RETRY_SECONDS = 10.0
RESTART_SECONDS = 10.0
"""`RestartSec` of the kubelet's service, as kubeadm's package sets it."""
_PRESSED = {
    "MemoryPressure": "NodeHasInsufficientMemory",
    "DiskPressure": "NodeHasDiskPressure",
    "PIDPressure": "NodeHasInsufficientPID",
}
_RELIEVED = {
    "MemoryPressure": "NodeHasSufficientMemory",
    "DiskPressure": "NodeHasNoDiskPressure",
    "PIDPressure": "NodeHasSufficientPID",
}


class Kubelet:
    def __init__(
        self,
        world: World,
        machine: Machine,
        services: ServiceVariables,
        storage: PersistentStorage,
        refresh: VolumeRefresh,
        token: TokenProvider,
    ) -> None:
        self.world = world
        self.clock = world.clock
        self.machine = machine
        self.name = machine.name
        self.services = services
        self.refresh = refresh
        self.token = token
        user = node_user(machine.name)
        self.client = world.client(user, "kubelet")
        self.recorder = Recorder(world, "kubelet", user, host=machine.name)
        self.running = False
        self.online = True
        """Whether it reaches the API server."""
        self.pressures: frozenset[str] = frozenset()
        """Names of the pressure conditions that hold."""
        self.workers: dict[str, PodWorker] = {}
        """By pod UID."""
        self._random = world.randomness.stream(f"kubelet/{machine.name}")
        self._relist_phase = self._random.random() * RELIST_SECONDS
        self._plugins = VolumePlugins(machine, self.client, storage)
        self._unwritten: dict[str, PodWorker] = {}
        self.configuration = Configuration()
        """As the kubelet last read it."""
        self._allocatable: list[Quantity] = []
        self._restart: Timer | None = None
        """The service manager's next attempt at a kubelet that ended at its start."""
        self.heartbeat = Heartbeat(self)
        self.evictions = EvictionManager(self)
        self.static_pods = StaticPods(self)
        self._reset()

    def _reset(self) -> None:
        """Initialise the state that a kubelet loses when it is restarted."""
        self.statistics = Statistics(self.clock.now)
        self.crash_back_off = BackOff(self.clock)
        self._commitments = Commitments()
        self.puller = ImagePuller(self.clock, self.client, self.machine.images, self.statistics)

    # --- lifecycle ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start, or start again after a stop, and sync every pod of the node."""
        if self.running:
            return
        self._cancel_restart()
        try:
            self._configure(load(self.machine))
        except ConfigurationRefused as refused:
            self._fail(str(refused))
            return
        self.running = True
        self._reset()
        self.log("I", "server.go:1316", '"Started kubelet"')
        self.heartbeat.start()
        self._resume()
        self.static_pods.start()

    def _configure(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self.machine.name_servers, self.machine.domain = configuration.name_servers, configuration.domain
        amounts = allocatable_of(self.machine.spec, configuration)
        self._allocatable = [parse(amounts[name]) for name in ("cpu", "memory", "ephemeral-storage")]

    def _fail(self, error: str) -> None:
        """End at the start; the service manager tries again."""
        self.log("E", "run.go:72", f'"command failed" err={quoted(error)}')
        for text in ("Main process exited, code=exited, status=1/FAILURE", "Failed with result 'exit-code'."):
            self.machine.journal.write(self.clock.now, "kubelet", f"kubelet.service: {text}", SERVICE_MANAGER)
        self._restart = self.clock.after(RESTART_SECONDS, self.start)

    def _cancel_restart(self) -> None:
        if self._restart is not None:
            self._restart.cancel()
            self._restart = None

    @property
    def is_failing(self) -> bool:
        """Whether its service waits for the next attempt to start it."""
        return self._restart is not None

    def stop(self) -> None:
        """End the process; containers keep running."""
        self._cancel_restart()
        if self.running:
            self.log("I", "dynamic_cafile_content.go:175", '"Shutting down controller" name="client-ca-bundle"')
        self.running = False
        self.heartbeat.stop()
        for worker in self.workers.values():
            worker.suspend()
        self.workers = {}
        self._unwritten = {}

    def disconnect(self) -> None:
        """Lose the connection to the API server."""
        self.online = False

    def reconnect(self) -> None:
        """Reconnect to the API server: write queued statuses and process missed changes."""
        if self.online:
            return
        self.online = True
        if self.running:
            unwritten, self._unwritten = self._unwritten, {}
            for worker in unwritten.values():
                if worker.status is not None:
                    self.write_status(worker, worker.status)
            self._resume()

    def every_ten_seconds(self) -> None:
        """Housekeeping, beside the heartbeat."""
        memory, wanted = self.machine.survey()
        share_processor(self.machine, wanted)
        self.evictions.check(memory)

    def active_workers(self) -> list[PodWorker]:
        """Pods that are being run, not taken down."""
        return [worker for worker in self.workers.values() if worker.stage is WorkerState.SYNCING]

    def set_pressures(self, pressures: frozenset[str]) -> None:
        """Set the pressure conditions that hold; the node's status is written at once."""
        before, self.pressures = self.pressures, pressures
        if before == pressures:
            return
        for kind in sorted(before ^ pressures):
            reason = (_PRESSED if kind in pressures else _RELIEVED)[kind]
            self.node_event("Normal", reason, f"Node {self.name} status is now: {reason}")
        self.heartbeat.report()

    def _resume(self) -> None:
        pods = {uid_of(pod): pod for pod in self.world.store.indexed("pods", "node", self.name)}
        for uid, worker in list(self.workers.items()):
            if uid not in pods and not worker.static:
                worker.removed()
        for pod in pods.values():
            self.observe(pod)
        for uid, sandbox in list(self.machine.sandboxes.items()):
            if uid not in self.workers:
                self._remove_orphan(sandbox)

    def _remove_orphan(self, sandbox: Sandbox) -> None:
        """Remove containers of a pod that was deleted while the kubelet was down."""
        if any(True for _ in sandbox.running()):
            worker = PodWorker(self, sandbox.pod)
            self.workers[worker.uid] = worker
            worker.sandbox = sandbox
            worker.removed()
        else:
            sandbox.release()
            self.machine.sandboxes.pop(sandbox.uid, None)

    # --- pods ------------------------------------------------------------------------------------------------

    def handle_pod_change(self, change: Change) -> None:
        """Handle a change of a pod of this node. Only schedules work: handlers of changes must not write."""
        if not self.running or not self.online:
            return
        if change.type == "DELETED":
            if self.static_pods.lost_mirror(change.new):
                return
            worker = self.workers.get(uid_of(change.new))
            if worker is not None:
                self.clock.after(REACTION_SECONDS, self._gone, worker)
            return
        if change.old is not None and self._is_own_status_update(change.old, change.new):
            return
        self.clock.after(REACTION_SECONDS, self._changed, namespace_of(change.new), name_of(change.new))

    def _is_own_status_update(self, old: Obj, new: Obj) -> bool:
        """Whether a change is only the status that this kubelet wrote itself."""
        worker = self.workers.get(uid_of(new))
        if worker is None or new.get("spec") is not old.get("spec") or new.get("status") != worker.status:
            return False
        before, after = old["metadata"], new["metadata"]
        return all(before.get(key) == after.get(key) for key in ("deletionTimestamp", "labels", "annotations"))

    def _gone(self, worker: PodWorker) -> None:
        if self.workers.get(worker.uid) is worker:
            worker.removed()

    def _changed(self, namespace: str, name: str) -> None:
        pod = self.client.get("pods", namespace, name)
        if pod is not None and self.running and self.online and dig(pod, "spec", "nodeName") == self.name:
            self.observe(pod)

    def observe(self, pod: Obj) -> None:
        """Process a pod of this node: a new one, or a new version."""
        if self.static_pods.adopt(pod):
            return
        worker = self.workers.get(uid_of(pod))
        if worker is None:
            self._admit_pod(pod)
        elif worker.pod is not pod:
            worker.update(pod)

    def _admit_pod(self, pod: Obj) -> None:
        uid = uid_of(pod)
        worker = PodWorker(self, pod)
        finished = dig(pod, "status", "phase") in FINISHED
        if not finished and not is_terminating(pod) and uid not in self.machine.sandboxes:
            refused = self._rejection(pod)
            if refused is not None:
                self.workers[uid] = worker
                self._reject(worker, refused)
                return
        self.workers[uid] = worker
        if not finished:
            self.commit(worker)
        else:
            worker.stage = WorkerState.TERMINATED
            worker.sandbox = self.machine.sandboxes.get(uid)
            worker.status = pod.get("status")
        worker.begin()
        if is_terminating(pod):
            worker.terminate(pod["metadata"].get("deletionGracePeriodSeconds") or 0)

    def _rejection(self, pod: Obj) -> Rejection | None:
        node = self.client.get("nodes", "", self.name)
        if node is None:
            return None
        return rejection_of(pod, node, self._commitments, self.pressures)

    def _reject(self, worker: PodWorker, refused: Rejection) -> None:
        self.event(worker.pod, "Warning", refused.reason, refused.message)
        worker.stage = WorkerState.TERMINATED
        worker.status = {
            "phase": "Failed",
            "reason": refused.reason,
            "message": f"Pod was rejected: {refused.message}",
            "qosClass": qos_class(worker.pod["spec"]),
            "startTime": self.clock.timestamp(),
        }
        conditions = merged_conditions(worker.pod, (), (), self.clock.timestamp())
        if conditions:
            worker.status["conditions"] = conditions
        if worker.pod["metadata"].get("generation"):
            worker.status["observedGeneration"] = worker.pod["metadata"]["generation"]
        self.write_status(worker, worker.status)

    def allocate(self, worker: PodWorker, pod: Obj) -> PendingResize | None:
        """Allocate what a new version of a pod asks for, or say why that has to wait."""
        node = self.client.get("nodes", "", self.name)
        pending = None if node is None else pending_resize(pod, node, self._commitments.without(worker.uid))
        if pending is None:
            self._commitments.add(worker.uid, pod)
            self._retry_resizes()
        return pending

    def _retry_resizes(self) -> None:
        """Look again at pods whose resize waits for room: another pod has left or changed."""
        for worker in self.workers.values():
            if worker.pending_resize is not None and worker.pending_resize.reason == DEFERRED:
                self.clock.after(REACTION_SECONDS, self._changed, namespace_of(worker.pod), name_of(worker.pod))

    def commit(self, worker: PodWorker) -> None:
        """Add a pod's requests to the committed resources."""
        self._commitments.add(worker.uid, worker.pod)

    def uncommit(self, worker: PodWorker) -> None:
        """Remove a pod's requests: all its containers have ended."""
        self._commitments.drop(worker.uid)
        self._retry_resizes()

    def finished(self, worker: PodWorker) -> None:
        """Handle the end of a pod's termination."""
        if is_terminating(worker.pod):
            self.delete_pod(worker)
        current = self.client.get("pods", namespace_of(worker.pod), name_of(worker.pod))
        if current is None or uid_of(current) != worker.uid:
            self.forget(worker)

    def delete_pod(self, worker: PodWorker) -> None:
        """Delete the object of a pod whose termination is complete."""
        if self.online:
            self._attempt(lambda: self.client.delete("pods", worker.pod, grace_seconds=0))

    def forget(self, worker: PodWorker) -> None:
        """Drop all state of a pod."""
        self.workers.pop(worker.uid, None)
        self.uncommit(worker)
        self._unwritten.pop(worker.uid, None)
        self.refresh.forget(worker)
        sandbox = self.machine.sandboxes.pop(worker.uid, None)
        if sandbox is not None:
            sandbox.release()
            self.statistics.changed_cgroups("destroy")
        self.machine.volumes.pop(worker.uid, None)
        worker.disk.take(-worker.disk.used)
        self.puller.forget(worker.pod)

    # --- what workers need -----------------------------------------------------------------------------------

    def jitter(self, base: float, spread: float) -> float:
        """`base` and up to `spread` times as much more."""
        return base * (1 + self._random.random() * spread)

    def next_relist(self) -> float:
        """The next time the kubelet lists the runtime's containers."""
        now = self.clock.now - self._relist_phase
        return (math.floor(now / RELIST_SECONDS) + 1) * RELIST_SECONDS + self._relist_phase

    def log(self, severity: str, place: str, text: str) -> None:
        """Write a line to the machine's journal, as klog formats it."""
        moment = datetime.fromtimestamp(self.clock.now, UTC).strftime(f"{severity}%m%d %H:%M:%S.%f")
        self.machine.journal.write(self.clock.now, "kubelet", f"{moment} {KUBELET_PID:>7} {place}] {text}")

    def event(self, pod: Obj, kind: str, reason: str, message: str, *, field_path: str = "") -> None:
        if kind == "Warning":
            self.log(*warning_line(pod, reason, message, field_path))
        if self.online:
            self._attempt(lambda: self.recorder.event(pod, kind, reason, message, field_path=field_path))

    def node_event(self, kind: str, reason: str, message: str) -> None:
        """Record an event about the node; as its UID the kubelet uses the node's name."""
        about = {"apiVersion": "", "kind": "Node", "metadata": {"name": self.name, "uid": self.name}}
        if self.online:
            self._attempt(lambda: self.recorder.event(about, kind, reason, message))

    def write_status(self, worker: PodWorker, status: Obj) -> None:
        if not self.online:
            self._unwritten[worker.uid] = worker
            return
        self._attempt(lambda: self._put_status(worker, status))

    def _put_status(self, worker: PodWorker, status: Obj) -> None:
        namespace, name = namespace_of(worker.pod), name_of(worker.pod)
        current = self.client.get("pods", namespace, name)
        if current is None or uid_of(current) != worker.uid:
            return
        written = self.client.set_status("pods", current, status)
        if written is not None and current is worker.pod:
            worker.written(written)

    def _attempt(self, write: Callable[[], object]) -> None:
        """Write; retry later where the write waits for a webhook or fails."""
        try:
            write()
        except AdmissionPending as pending:
            pending.ready.then(lambda: self._attempt(write))
        except NotFound:
            return
        except ApiError:
            self.clock.after(WRITE_RETRY_SECONDS, self._attempt, write)

    def field_sources(self, sandbox: Sandbox | None) -> FieldSources:
        addresses = (sandbox.address,) if sandbox is not None else ()
        return FieldSources(addresses, self.machine.address, *self._allocatable)

    def projector(self, sources: FieldSources) -> Projector:
        return Projector(self.client, sources, self.token)

    def mount(self, pod: Obj, volume: Obj, sources: FieldSources, disk: Space) -> MountedVolume:
        return self._plugins.set_up(pod, volume, self.projector(sources), disk)
