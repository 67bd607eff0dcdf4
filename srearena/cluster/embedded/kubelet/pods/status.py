"""The status of a pod: its phase and conditions, from the statuses of its containers.

Pure functions; the pod worker calls them at every sync and writes the result if it changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from srearena.cluster.embedded.kubelet.pods.allocation import PENDING_CONDITION
from srearena.cluster.embedded.kubelet.pods.container_states import is_sidecar
from srearena.cluster.embedded.objects import Obj, condition, dig, meta

PENDING, RUNNING, SUCCEEDED, FAILED = "Pending", "Running", "Succeeded", "Failed"
FINISHED = (SUCCEEDED, FAILED)

OWNED_CONDITIONS = (
    PENDING_CONDITION,
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
)
"""The kubelet's own conditions, in the order it writes them; other conditions are preserved."""


def phase_of(pod: Obj, inits: Sequence[Obj], regulars: Sequence[Obj], *, terminal: bool, static: bool = False) -> str:
    """The phase that follows from the container statuses; `terminal` means that nothing will be restarted."""
    spec = pod["spec"]
    policy = spec.get("restartPolicy", "Always")
    by_name = {status["name"]: status for status in (*inits, *regulars)}
    pending_init = failed_init = 0
    unknown = running = waiting = stopped = succeeded = 0
    for container in spec.get("initContainers") or ():
        status = by_name.get(container["name"])
        if is_sidecar(container):
            if status is None:
                unknown += 1
            elif "running" in status["state"]:
                running += 1
                pending_init += not status.get("started")
            elif "waiting" in status["state"] and "terminated" not in status["lastState"]:
                pending_init += 1
                waiting += 1
            continue
        end = None if status is None else _end(status)
        if status is None or "running" in status["state"] or end is None:
            pending_init += 1
        elif end["exitCode"] != 0:
            failed_init += 1
    for container in spec["containers"]:
        status = by_name.get(container["name"])
        if status is None:
            unknown += 1
            continue
        state = status["state"]
        if "running" in state:
            running += 1
        elif "terminated" in state:
            stopped += 1
            succeeded += state["terminated"]["exitCode"] == 0
        elif "terminated" in status["lastState"]:
            stopped += 1
        else:
            waiting += 1
    if failed_init and policy == "Never":
        return FAILED
    if (pending_init and not has_started(regulars)) or waiting:
        return PENDING
    if running and not unknown:
        return RUNNING
    if not running and stopped and not unknown:
        if terminal and not static:
            return SUCCEEDED if stopped == succeeded else FAILED
        if policy == "Always":
            return RUNNING
        if stopped == succeeded:
            return SUCCEEDED
        return FAILED if policy == "Never" else RUNNING
    return PENDING


def _end(status: Obj) -> Obj | None:
    """How an init container ended: now, or last time if it waits for a retry."""
    ended: Obj | None = status["state"].get("terminated")
    if ended is None and "waiting" in status["state"]:
        ended = status["lastState"].get("terminated")
    return ended


def has_started(regulars: Iterable[Obj]) -> bool:
    """Whether any regular container has ever run."""
    return any(
        "running" in status["state"] or "terminated" in status["state"] or "terminated" in status["lastState"]
        for status in regulars
    )


def conditions_of(
    pod: Obj, inits: Sequence[Obj], regulars: Sequence[Obj], phase: str, *, sandbox_ready: bool
) -> list[Obj]:
    """The kubelet's conditions, without times."""
    containers_ready = _containers_ready(pod, inits, regulars, phase)
    found = [
        _condition("PodReadyToStartContainers", sandbox_ready),
        _initialized(pod, inits, regulars, phase),
        _ready(pod, containers_ready),
        containers_ready,
        _condition("PodScheduled", True),
    ]
    generation = meta(pod).get("generation")
    if generation:
        for row in found:
            row["observedGeneration"] = generation
    return found


def _condition(kind: str, true: bool, reason: str = "", message: str = "") -> Obj:
    row: Obj = {"type": kind, "status": "True" if true else "False", "lastProbeTime": None}
    if reason:
        row["reason"] = reason
    if message:
        row["message"] = message
    return row


def _listed(label: str, names: Sequence[str]) -> list[str]:
    return [f"{label}: [{' '.join(names)}]"] if names else []


def _containers_ready(pod: Obj, inits: Sequence[Obj], regulars: Sequence[Obj], phase: str) -> Obj:
    kind = "ContainersReady"
    by_name: Mapping[str, Obj] = {status["name"]: status for status in (*inits, *regulars)}
    sidecars = [c for c in pod["spec"].get("initContainers") or () if is_sidecar(c)]
    unknown: list[str] = []
    unready: list[str] = []
    for container in (*sidecars, *pod["spec"]["containers"]):
        status = by_name.get(container["name"])
        if status is None:
            unknown.append(container["name"])
        elif not status["ready"]:
            unready.append(container["name"])
    if phase == SUCCEEDED and not unknown:
        return _condition(kind, False, "PodCompleted")
    if phase == FAILED:
        return _condition(kind, False, "PodFailed")
    parts = [*_listed("containers with unknown status", unknown), *_listed("containers with unready status", unready)]
    return _condition(kind, False, "ContainersNotReady", ", ".join(parts)) if parts else _condition(kind, True)


def _ready(pod: Obj, containers_ready: Obj) -> Obj:
    if containers_ready["status"] != "True":
        return {**containers_ready, "type": "Ready"}
    problems: list[str] = []
    for gate in pod["spec"].get("readinessGates") or ():
        kind = gate["conditionType"]
        found = condition(pod, kind)
        if found is None:
            problems.append(f'corresponding condition of pod readiness gate "{kind}" does not exist.')
        elif found["status"] != "True":
            problems.append(f'the status of pod readiness gate "{kind}" is not "True", but {found["status"]}')
    if problems:
        return _condition("Ready", False, "ReadinessGatesNotReady", ", ".join(problems))
    return _condition("Ready", True)


def _initialized(pod: Obj, inits: Sequence[Obj], regulars: Sequence[Obj], phase: str) -> Obj:
    kind = "Initialized"
    by_name = {status["name"]: status for status in inits}
    unknown: list[str] = []
    incomplete: list[str] = []
    for container in pod["spec"].get("initContainers") or ():
        status = by_name.get(container["name"])
        if status is None:
            unknown.append(container["name"])
        elif not status["started" if is_sidecar(container) else "ready"]:
            incomplete.append(container["name"])
    if phase == SUCCEEDED and not unknown:
        return _condition(kind, True, "PodCompleted")
    if has_started(regulars):
        return _condition(kind, True)
    parts = [
        *_listed("containers with unknown status", unknown),
        *_listed("containers with incomplete status", incomplete),
    ]
    return _condition(kind, False, "ContainersNotInitialized", ", ".join(parts)) if parts else _condition(kind, True)


def merged_conditions(pod: Obj, own: Sequence[Obj], before: Iterable[Obj], now: str) -> list[Obj]:
    """Conditions of other owners unchanged, then the kubelet's; a transition time changes only with its status."""
    kept = [row for row in dig(pod, "status", "conditions", default=()) if row["type"] not in OWNED_CONDITIONS]
    old: dict[str, Any] = {row["type"]: row for row in before}
    for kind in ("DisruptionTarget",):
        if kind in old and all(row["type"] != kind for row in kept):
            kept.append(old[kind])
    for row in own:
        earlier = old.get(row["type"])
        same = earlier is not None and earlier.get("status") == row["status"]
        row["lastTransitionTime"] = (earlier or {}).get("lastTransitionTime", now) if same else now
    return [*kept, *own]
