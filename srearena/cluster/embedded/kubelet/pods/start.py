"""Bring a pod to its desired state: volumes, sandbox, init containers, containers.

The actions are computed in every sync from the runtime's records, so they do not depend on the pod's history.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from srearena.cluster.embedded.clock import first_of
from srearena.cluster.embedded.durations import format_duration
from srearena.cluster.embedded.kubelet.environment import ConfigError, environment_of
from srearena.cluster.embedded.kubelet.node.node_object import RUNTIME_HANDLERS
from srearena.cluster.embedded.kubelet.pods.container_setup import container_config, pod_text
from srearena.cluster.embedded.kubelet.pods.container_states import is_sidecar, restarts_after
from srearena.cluster.embedded.kubelet.pods.mounting import mount_volumes
from srearena.cluster.embedded.kubelet.pods.stop import stop_container, stop_pod
from srearena.cluster.embedded.kubelet.probing.hooks import run_hook
from srearena.cluster.embedded.kubelet.reasons import (
    CRASH_LOOP,
    CREATE_CONFIG_ERROR,
    CREATE_ERROR,
    POST_START_ERROR,
    RUN_ERROR,
    NotStarted,
)
from srearena.cluster.embedded.machine.containers.container import CreateError, StartError
from srearena.cluster.embedded.machine.containers.runtime import ContainerRecord, Sandbox, hostname_of
from srearena.cluster.embedded.machine.images.store import Image
from srearena.cluster.embedded.machine.machine import AddressesExhausted
from srearena.cluster.embedded.machine.processes.pids import PidNamespace
from srearena.cluster.embedded.objects import Obj, dig

if TYPE_CHECKING:
    from srearena.cluster.embedded.kubelet.pods.worker import PodWorker

SANDBOX_SECONDS = 0.35
"""Creating a sandbox, with its network."""
CONTAINER_SECONDS = 0.12
"""Creating and starting a container."""


class PodStart:
    """The actions that bring a pod from its actual to its desired state."""

    def __init__(self, worker: PodWorker) -> None:
        self.worker = worker
        self.kubelet = worker.kubelet
        self.pod = worker.pod
        self.sandbox = worker.sandbox
        self.kill: list[tuple[Obj, ContainerRecord, str]] = []
        """Containers to kill, with the message of the event."""
        self.start: list[Obj] = []
        self.over = False
        """Whether all regular containers have ended for good and only sidecars still run."""
        self._inits = {container["name"] for container in self.pod["spec"].get("initContainers") or ()}
        self._restarted: set[str] = set()
        self._plan()

    @property
    def nothing_to_do(self) -> bool:
        return not self.kill and not self.start and not self.over

    # --- plan -------------------------------------------------------------------------------------

    def _latest(self, name: str) -> ContainerRecord | None:
        return self.sandbox.latest(name) if self.sandbox is not None else None

    def _ran_here(self, name: str) -> bool:
        """Whether the container was created in this sandbox, not in an earlier one."""
        record = self._latest(name)
        return record is not None and self.sandbox is not None and record.sandbox_id == self.sandbox.id

    def _plan(self) -> None:
        spec = self.pod["spec"]
        if self.sandbox is not None and not self.sandbox.ready and self._may_not_start_over(spec):
            return
        if self.sandbox is None or not self.sandbox.ready:
            inits, unfinished = spec.get("initContainers") or (), self._unfinished(spec["containers"])
            if unfinished or not any(self._latest(container["name"]) for container in spec["containers"]):
                self.start = [inits[0]] if inits else unfinished
            return
        for container in spec.get("ephemeralContainers") or ():
            if self._latest(container["name"]) is None:
                self.start.append(container)
        if self._plan_inits(spec.get("initContainers") or []):
            waiting = len(self.start)
            self._plan_regulars(spec["containers"])
            # Sidecars alone do not keep a pod alive.
            done = len(self.start) == waiting and not any(map(self._is_running, spec["containers"]))
            self.over = done and any(True for _ in self.sandbox.running())

    def _is_running(self, container: Obj) -> bool:
        record = self._latest(container["name"])
        return record is not None and record.running

    def _may_not_start_over(self, spec: Obj) -> bool:
        """The sandbox died; a pod that never restarts does not get another one once it has run."""
        assert self.sandbox is not None
        return spec.get("restartPolicy") == "Never" and bool(self.sandbox.records)

    def _unfinished(self, containers: list[Obj]) -> list[Obj]:
        """Of the regular containers, those that have not ended for good."""
        unfinished = []
        for container in containers:
            record = self._latest(container["name"])
            if record is None or not record.exited or restarts_after(self.pod, container, record.exit_code, init=False):
                unfinished.append(container)
        return unfinished

    def _plan_inits(self, inits: list[Obj]) -> bool:
        """Plan the next step of initialization; True where it is over."""
        if not inits:
            return True
        done = any(self._ran_here(container["name"]) for container in self.pod["spec"]["containers"])
        passed = done
        planned: list[Obj] = []
        for number in reversed(range(len(inits))):
            container = inits[number]
            sidecar = is_sidecar(container)
            if passed and not sidecar:
                continue
            record = self._latest(container["name"])
            if record is None:
                if passed:
                    planned.insert(0, container)
                continue
            if record.running:
                if sidecar:
                    self._plan_kill(container, record)
                    if not passed and self.worker.probes.health(container["name"], record).started:
                        done = self._next_init(inits, number, planned) or done
            elif sidecar:
                planned.insert(0, container)
            elif record.exited and record.exit_code == 0:
                done = self._next_init(inits, number, planned) or done
            elif restarts_after(self.pod, container, record.exit_code, init=True):
                planned.append(container)
            passed = True
        if not passed:
            planned.append(inits[0])
        self.start.extend(planned)
        return done

    @staticmethod
    def _next_init(inits: list[Obj], number: int, planned: list[Obj]) -> bool:
        if number + 1 == len(inits):
            return True
        planned.append(inits[number + 1])
        return False

    def _plan_regulars(self, containers: list[Obj]) -> None:
        for container in containers:
            record = self._latest(container["name"])
            if record is None:
                self.start.append(container)
            elif record.running:
                self._plan_kill(container, record)
            elif restarts_after(self.pod, container, record.exit_code, init=False):
                self.start.append(container)

    def _plan_kill(self, container: Obj, record: ContainerRecord) -> None:
        name = container["name"]
        why = self.worker.killed.get(name, "")
        again = dig(self.pod, "spec", "restartPolicy") != "Never" or is_sidecar(container)
        if not why and record.container is not None and record.container.config.image != container["image"]:
            why, again = f"Container {name} definition changed", True
        if not why:
            return
        self.kill.append((container, record, f"{why}, will be restarted" if again else why))
        if again:
            self.start.append(container)
            self._restarted.add(name)

    # --- execution --------------------------------------------------------------------------------------------

    async def run(self) -> bool:
        """Execute the plan in order; False where a step failed and the sync must be retried."""
        worker = self.worker
        if self.over:
            await stop_pod(worker, dig(self.pod, "spec", "terminationGracePeriodSeconds", default=30))
            worker.started_something()
            return True
        for container, record, message in self.kill:
            why = worker.killed.pop(container["name"], "")
            await stop_container(worker, record, self._grace_for(container, why), message)
            worker.started_something()
        if not self.start:
            return True
        fresh = self.sandbox is None or not self.sandbox.ready
        if not await mount_volumes(worker):
            return False
        if worker.is_stopping():
            return True
        if fresh and not await self._make_sandbox():
            return False
        missing = self.kubelet.puller.missing_secrets(self.pod)
        if missing:
            names = ", ".join(missing)
            text = (
                f"Unable to retrieve some image pull secrets ({names}); attempting to pull the image may not succeed."
            )
            self.kubelet.event(self.pod, "Warning", "FailedToRetrieveImagePullSecret", text)
        succeeded = True
        for container in self.start:
            if worker.is_stopping():
                return True
            started = await self._start(container)
            succeeded = started and succeeded
            if not started and container["name"] in self._inits and not is_sidecar(container):
                break
        return succeeded

    def _grace_for(self, container: Obj, why: str) -> int:
        """The grace period of a container that is restarted: of the failed probe, or of the pod."""
        probe = "startupProbe" if why.endswith("startup probe") else "livenessProbe"
        own = dig(container, probe, "terminationGracePeriodSeconds") if why else None
        grace: int = own if own is not None else dig(self.pod, "spec", "terminationGracePeriodSeconds", default=30)
        return grace

    async def _make_sandbox(self) -> bool:
        machine, worker = self.kubelet.machine, self.worker
        old, statistics, began = worker.sandbox, self.kubelet.statistics, self.kubelet.clock.now
        await self.kubelet.clock.sleep(self.kubelet.jitter(SANDBOX_SECONDS * 0.8, 0.5))
        if worker.is_stopping():
            return True
        refusal = self._runtime_refusal()
        if refusal:
            statistics.ran("run_podsandbox", self.kubelet.clock.now - began, failed=True)
            text = f"Failed to create pod sandbox: {refusal}"
            self.kubelet.event(self.pod, "Warning", "FailedCreatePodSandBox", text)
            return False
        try:
            sandbox = Sandbox(machine, self.pod, hostname_of(self.pod, machine.name), worker.disk)
        except AddressesExhausted as error:
            statistics.ran("run_podsandbox", self.kubelet.clock.now - began, failed=True)
            identifier = f"{machine.random.getrandbits(256):064x}"
            self.kubelet.event(
                self.pod,
                "Warning",
                "FailedCreatePodSandBox",
                "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox "
                f'"{identifier}": plugin type="ptp" failed (add): failed to allocate for range 0: {error}',
            )
            return False
        if old is not None:
            sandbox.inherit(old, self._inits)
            self.kubelet.event(
                self.pod, "Normal", "SandboxChanged", "Pod sandbox changed, it will be killed and re-created."
            )
        statistics.ran("run_podsandbox", self.kubelet.clock.now - began)
        statistics.changed_cgroups("create")
        sandbox.on_change = worker.container_changed
        machine.sandboxes[worker.uid] = sandbox
        worker.sandbox = self.sandbox = sandbox
        worker.started_something()
        return True

    def _runtime_refusal(self) -> str:
        """Why the pod's runtime class cannot be used; empty where it can."""
        name = dig(self.pod, "spec", "runtimeClassName", default="")
        if not name:
            return ""
        found = self.kubelet.client.get("runtimeclasses.node.k8s.io", "", name)
        if found is None:
            return f'failed to get sandbox runtime: RuntimeClass "{name}" not found'
        handler = found.get("handler", "")
        if handler in RUNTIME_HANDLERS:
            return ""
        why = f'no runtime for "{handler}" is configured'
        return f"rpc error: code = Unknown desc = failed to get sandbox runtime: {why}"

    async def _start(self, container: Obj) -> bool:
        """Start one container; False where that failed, with the reason stored."""
        worker, name = self.worker, container["name"]
        try:
            self._check_back_off(container)
            image = await self._image(container)
            await self._launch(container, image)
        except NotStarted as failure:
            worker.reasons[name] = (failure.reason, failure.message)
            return False
        worker.reasons.pop(name, None)
        return True

    def _check_back_off(self, container: Obj) -> None:
        name = container["name"]
        attempts = self.sandbox.records.get(name, []) if self.sandbox is not None else []
        dead = next((record for record in attempts if record.exited and record is not self._just_killed(name)), None)
        if dead is None or dead.finished_at is None:
            return
        key = (self.worker.uid, name, container["image"])
        back_off = self.kubelet.crash_back_off
        if back_off.waits_since(key, dead.finished_at):
            self.worker.container_event(
                container,
                "Warning",
                "BackOff",
                f"Back-off restarting failed container {name} in pod {pod_text(self.pod)}",
            )
            wait = format_duration(back_off.seconds(key))
            raise NotStarted(CRASH_LOOP, f"back-off {wait} restarting failed container={name} pod={pod_text(self.pod)}")
        back_off.next(key, dead.finished_at)

    def _just_killed(self, name: str) -> ContainerRecord | None:
        """Whether the container was killed in this sync, which still counts it as running."""
        return next((record for container, record, _ in self.kill if container["name"] == name), None)

    async def _image(self, container: Obj) -> Image:
        worker = self.worker

        def say(kind: str, reason: str, message: str) -> None:
            worker.container_event(container, kind, reason, message)

        try:
            return await self.kubelet.puller.ensure(self.pod, container, say)
        except NotStarted as failure:
            say("Warning", "Failed", f"Error: {failure.reason}")
            raise

    async def _launch(self, container: Obj, image: Image) -> None:
        worker, sandbox, name = self.worker, self.sandbox, container["name"]
        assert sandbox is not None
        try:
            environment = environment_of(
                self.pod, container, self.kubelet.client, self.kubelet.services.of(self.pod), worker.field_sources()
            )
            config = container_config(self.pod, container, sandbox, worker.volumes, environment, container["image"])
            shared = self._target_namespace(container)
        except ConfigError as error:
            worker.container_event(container, "Warning", "Failed", f"Error: {error}")
            raise NotStarted(CREATE_CONFIG_ERROR, str(error)) from None
        statistics, seconds = self.kubelet.statistics, self.kubelet.jitter(CONTAINER_SECONDS * 0.8, 0.5)
        await self.kubelet.clock.sleep(seconds)
        try:
            record = sandbox.create(config, image, shared)
        except CreateError as error:
            statistics.ran("create_container", seconds / 2, failed=True)
            worker.container_event(container, "Warning", "Failed", f"Error: {error.message}")
            raise NotStarted(CREATE_ERROR, error.message) from None
        statistics.ran("create_container", seconds / 2)
        worker.container_event(container, "Normal", "Created", f"Created container: {name}")
        worker.started_something()
        from_log = container.get("terminationMessagePolicy") == "FallbackToLogsOnError"
        try:
            sandbox.start(record, container.get("terminationMessagePath") or "", from_log)
        except StartError as error:
            statistics.ran("start_container", seconds / 2, failed=True)
            worker.container_event(container, "Warning", "Failed", f"Error: {error.message}")
            raise NotStarted(RUN_ERROR, error.message) from None
        statistics.ran("start_container", seconds / 2)
        worker.container_event(container, "Normal", "Started", f"Started container {name}")
        worker.probes.watch(container, record)
        await self._post_start(container, record, sandbox)

    def _target_namespace(self, container: Obj) -> PidNamespace | None:
        """The process namespace an ephemeral container targets."""
        target = container.get("targetContainerName")
        if not target:
            return None
        record = self._latest(target)
        if record is None or record.container is None:
            raise ConfigError(f"unable to find target container {target}")
        return record.container.pids

    async def _post_start(self, container: Obj, record: ContainerRecord, sandbox: Sandbox) -> None:
        hook = (container.get("lifecycle") or {}).get("postStart")
        if not hook:
            return
        worker, clock = self.worker, self.kubelet.clock
        task = clock.spawn(run_hook(hook, container, record, sandbox))
        try:
            await first_of(clock, task.done, worker.stop_signal)
        finally:
            task.cancel()
        failure = task.done.value
        if failure and not worker.is_stopping():
            worker.container_event(container, "Warning", "FailedPostStartHook", "PostStartHook failed")
            grace = dig(self.pod, "spec", "terminationGracePeriodSeconds", default=30)
            await stop_container(worker, record, grace, "FailedPostStartHook")
            raise NotStarted(POST_START_ERROR, failure)
