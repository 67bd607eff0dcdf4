"""Container statuses of a pod, from the runtime's records and from the reasons why containers did not start.

The rules are the kubelet's: the runtime's latest record decides the state; a container that should run but could not
be started is waiting, with the reason, and its last termination moves to `lastState`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from srearena.cluster.embedded.durations import format_time
from srearena.cluster.embedded.machine.containers.runtime import ContainerRecord, Sandbox
from srearena.cluster.embedded.objects import Obj, dig, is_terminating

CONTAINER_CREATING = "ContainerCreating"
POD_INITIALIZING = "PodInitializing"
LOST_EXIT = 137
_LOST = "The container could not be located when the pod was deleted.  The container used to be Running"

Reasons = Mapping[str, tuple[str, str]]
"""Container name → why it could not be started: reason and message."""


@dataclass(frozen=True, slots=True)
class Health:
    """The probe results of a running container."""

    started: bool
    ready: bool


HealthOf = Callable[[str, ContainerRecord], Health]


def is_sidecar(container: Mapping[str, Any]) -> bool:
    return container.get("restartPolicy") == "Always"


def restart_policy(pod: Obj, container: Obj, *, init: bool) -> str:
    """Always, OnFailure or Never for one container: its own choice, or the pod's (which for init means until done)."""
    own = container.get("restartPolicy")
    if own:
        return str(own)
    policy: str = dig(pod, "spec", "restartPolicy", default="Always")
    return "OnFailure" if init and policy == "Always" else policy


def restarts_after(pod: Obj, container: Obj, exit_code: int, *, init: bool) -> bool:
    """Whether a container that ended with that code is to run again."""
    for rule in container.get("restartPolicyRules") or ():
        codes = rule.get("exitCodes") or {}
        among = exit_code in (codes.get("values") or ())
        if among == (codes.get("operator") == "In"):
            return bool(rule.get("action") == "Restart")
    policy = restart_policy(pod, container, init=init)
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def container_statuses(
    pod: Obj,
    containers: Sequence[Obj],
    previous: Iterable[Obj],
    sandbox: Sandbox | None,
    reasons: Reasons,
    health: HealthOf,
    *,
    init: bool = False,
    ephemeral: bool = False,
) -> list[Obj]:
    before = {status["name"]: status for status in previous}
    waiting = POD_INITIALIZING if pod["spec"].get("initContainers") else CONTAINER_CREATING
    statuses: list[Obj] = []
    for container in containers:
        name = container["name"]
        record = sandbox.latest(name) if sandbox is not None else None
        old = before.get(name)
        if record is None:
            status = _status_without_record(container, old, waiting, deleted=is_terminating(pod))
        else:
            status = _of_record(container, record, sandbox)
        reason = reasons.get(name)
        if reason is not None and _shall_run(pod, container, record, init=init, ephemeral=ephemeral):
            state = status["state"]
            if "terminated" in state:
                status["lastState"] = state
            status["state"] = {"waiting": _waiting(*reason)}
        _add_health(status, record, health, init and not is_sidecar(container))
        statuses.append(status)
    # Init containers are listed in the order in which they run; the others, as clients expect, by name.
    return statuses if init else sorted(statuses, key=lambda status: str(status["name"]))


def _shall_run(pod: Obj, container: Obj, record: ContainerRecord | None, *, init: bool, ephemeral: bool) -> bool:
    if is_terminating(pod):
        return False
    if record is None:
        return True
    if record.running or ephemeral:
        return False
    return not record.exited or restarts_after(pod, container, record.exit_code, init=init)


def _status_without_record(container: Obj, old: Obj | None, waiting: str, *, deleted: bool) -> Obj:
    """The status of a container without a runtime record: not created yet, or removed."""
    status: Obj = {
        "name": container["name"],
        "image": container["image"],
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "started": False,
        "state": {"waiting": {"reason": waiting}},
        "lastState": {},
    }
    _add_mounts(status, container)
    if old is None:
        return status
    if "terminated" in old["state"]:
        return {**old, "ready": False, "started": False}
    status["restartCount"] = old.get("restartCount", 0)
    status["lastState"] = old.get("lastState") or {}
    if "running" in old["state"] and "terminated" not in status["lastState"]:
        status["lastState"] = {"terminated": _lost(_LOST)}
        status["restartCount"] += not deleted
    return status


def _lost(message: str) -> Obj:
    return {
        "exitCode": LOST_EXIT,
        "reason": "ContainerStatusUnknown",
        "message": message,
        "startedAt": None,
        "finishedAt": None,
    }


def _of_record(container: Obj, record: ContainerRecord, sandbox: Sandbox | None) -> Obj:
    reference = record.image.reference
    resources = container.get("resources") or {}
    status: Obj = {
        "name": record.name,
        "image": str(reference),
        "imageID": f"{reference.repository}@{record.image.digest}",
        "containerID": f"containerd://{record.id}",
        "ready": False,
        "restartCount": record.attempt,
        "started": False,
        "state": _state(record),
        "lastState": {},
        "resources": resources if record.held_resources is None else record.held_resources,
    }
    if resources.get("requests"):
        status["allocatedResources"] = resources["requests"]
    if record.user is not None and record.running:
        uid, gid, groups = record.user
        status["user"] = {"linux": {"uid": uid, "gid": gid, "supplementalGroups": list(groups)}}
    previous = sandbox.previous(record.name) if sandbox is not None else None
    if previous is not None and previous.exited:
        status["lastState"] = _state(previous)
    _add_mounts(status, container)
    return status


def _state(record: ContainerRecord) -> Obj:
    if record.finished_at is not None:
        ended: Obj = {
            "exitCode": record.exit_code,
            "reason": record.reason,
            "startedAt": format_time(record.started_at),
            "finishedAt": format_time(record.finished_at),
            "containerID": f"containerd://{record.id}",
        }
        if record.message:
            ended["message"] = record.message
        return {"terminated": ended}
    if record.started_at > 0:
        return {"running": {"startedAt": format_time(record.started_at)}}
    return {"waiting": {}}


def _waiting(reason: str, message: str) -> Obj:
    return {"reason": reason, "message": message} if message else {"reason": reason}


def _add_mounts(status: Obj, container: Obj) -> None:
    mounts = container.get("volumeMounts")
    if mounts:
        status["volumeMounts"] = [_mount_status(mount) for mount in mounts]


def _mount_status(mount: Obj) -> Obj:
    shown: Obj = {"name": mount["name"], "mountPath": mount["mountPath"]}
    if mount.get("readOnly"):
        shown["readOnly"] = True
        wish = mount.get("recursiveReadOnly") or "Disabled"
        shown["recursiveReadOnly"] = "Enabled" if wish == "IfPossible" else wish
    return shown


def _add_health(status: Obj, record: ContainerRecord | None, health: HealthOf, runs_once: bool) -> None:
    state = status["state"]
    if "running" in state and record is not None:
        found = health(record.name, record)
        status["started"] = found.started
        status["ready"] = found.ready and not runs_once
    elif runs_once and "terminated" in state:
        status["ready"] = state["terminated"]["exitCode"] == 0
