"""Graceful termination of a pod's containers: preStop hook, SIGTERM, grace period, SIGKILL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from srearena.cluster.embedded.clock import Signal, Task
from srearena.cluster.embedded.kubelet.pods.container_states import is_sidecar
from srearena.cluster.embedded.kubelet.probing.hooks import run_hook
from srearena.cluster.embedded.machine.containers.runtime import ContainerRecord
from srearena.cluster.embedded.objects import Obj

if TYPE_CHECKING:
    from srearena.cluster.embedded.kubelet.pods.worker import PodWorker

MINIMUM_GRACE = 2
"""The minimum seconds between SIGTERM and SIGKILL, as in the kubelet."""


async def stop_pod(worker: PodWorker, grace: int) -> bool:
    """Stop every running container, sidecars after the others in reverse order; False where nothing ran."""
    sandbox = worker.sandbox
    if sandbox is None:
        return False
    running = {record.name: record for record in sandbox.running()}
    if not running:
        return False
    clock = worker.kubelet.clock
    ended: dict[str, Signal[None]] = {name: Signal(clock) for name in running}
    waits = _order(worker.pod, list(running))
    tasks: list[Task[None]] = []
    for name, record in running.items():
        before = [ended[other] for other in waits.get(name, ())]
        tasks.append(clock.spawn(_stop_in_turn(worker, record, grace, before, ended[name])))
    try:
        for task in tasks:
            await task.done.wait()
    finally:
        for task in tasks:
            task.cancel()
    return True


def _order(pod: Obj, running: list[str]) -> dict[str, list[str]]:
    """Which containers each sidecar outlives: the regular ones, and the sidecars that started after it."""
    inits = [container["name"] for container in pod["spec"].get("initContainers") or () if is_sidecar(container)]
    if not inits:
        return {}
    regular = [name for name in running if name not in inits]
    waits: dict[str, list[str]] = {}
    for number, name in enumerate(inits):
        if name in running:
            waits[name] = [*regular, *(other for other in inits[number + 1 :] if other in running)]
    return waits


async def _stop_in_turn(
    worker: PodWorker, record: ContainerRecord, grace: int, before: list[Signal[None]], ended: Signal[None]
) -> None:
    await stop_container(worker, record, grace, before=before)
    ended.set(None)


async def stop_container(
    worker: PodWorker,
    record: ContainerRecord,
    grace: int,
    message: str = "",
    before: list[Signal[None]] | None = None,
) -> None:
    """preStop hook, SIGTERM, grace period, SIGKILL. The hook's duration is deducted from the grace period."""
    clock = worker.kubelet.clock
    container = worker.container(record.name)
    running = record.container
    if running is None or container is None:
        return
    worker.container_event(container, "Normal", "Killing", message or f"Stopping container {record.name}")
    deadline = clock.now + grace
    hook = (container.get("lifecycle") or {}).get("preStop")
    if hook and grace > 0:
        await _run_pre_stop(worker, container, record, hook, grace)
    for other in before or ():
        left = deadline - clock.now
        if left > 0:
            await other.wait(left)
    if record.exited:
        return
    began = clock.now
    running.stop()
    if not await running.done.wait(max(deadline - clock.now, MINIMUM_GRACE)):
        running.kill()
        await running.done.wait()
    worker.kubelet.statistics.ran("stop_container", clock.now - began)
    # The record is completed by a callback of the same instant.
    await clock.sleep(0)


async def _run_pre_stop(worker: PodWorker, container: Obj, record: ContainerRecord, hook: Obj, grace: int) -> None:
    assert worker.sandbox is not None
    task = worker.kubelet.clock.spawn(run_hook(hook, container, record, worker.sandbox))
    try:
        await task.done.wait(float(grace))
        if task.done.is_set and task.done.value:
            worker.container_event(container, "Warning", "FailedPreStopHook", "PreStopHook failed")
    finally:
        task.cancel()
