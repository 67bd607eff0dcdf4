"""The row of a pod: readiness, the one word that sums up its containers, restarts.

Lists of pods are by far the longest tables, so this row is computed in one pass rather than cell by cell. The order
in which states override each other is the one operators know: phase, then reason, then scheduling gates, then the
first init container in trouble, then the containers from the last to the first, then deletion.
"""

from __future__ import annotations

from typing import Any, Final

from srearena.cluster.embedded.api.tables.columns import AGE, NAME, NONE, Column, Printer, as_map, text, wide
from srearena.cluster.embedded.durations import age, human_duration, moment_of
from srearena.cluster.embedded.objects import Obj

COLUMNS: Final = (
    NAME,
    Column("Ready", "string", "How many of the pod's containers are ready for traffic."),
    Column("Status", "string", "The state of the pod's containers, in one word."),
    Column("Restarts", "string", "How often the pod's containers were restarted, and when last."),
    AGE,
    wide("IP", "Address of the pod."),
    wide("Node", "Node the pod is bound to."),
    wide("Nominated Node", "Node on which room is being made for the pod."),
    wide("Readiness Gates", "How many of the pod's extra readiness conditions hold."),
)
_FINISHED: Final = {
    "Succeeded": [
        {
            "type": "Completed",
            "status": "True",
            "reason": "Succeeded",
            "message": "The pod has completed successfully.",
        }
    ],
    "Failed": [{"type": "Completed", "status": "True", "reason": "Failed", "message": "The pod failed."}],
}
_NODE_LOST: Final = "NodeLost"
_NONE: Final[tuple[Obj, ...]] = ()


def _dicts(value: Any) -> list[Obj] | tuple[Obj, ...]:
    if type(value) is not list or not value:
        return _NONE
    return [entry for entry in value if type(entry) is dict]


class _Restarts:
    """Restart counts summed, and the moment the last of the restarted containers ended."""

    __slots__ = ("last", "total")

    def __init__(self) -> None:
        self.total = 0
        self.last: float | None = None

    def add(self, status: Obj) -> None:
        restarts = status.get("restartCount")
        if type(restarts) is int:
            self.total += restarts
        if previous := status.get("lastState"):
            ended = moment_of(as_map(as_map(previous).get("terminated")).get("finishedAt"))
            if ended is not None and (self.last is None or ended > self.last):
                self.last = ended

    def text_at(self, now: float) -> str:
        if self.total and self.last is not None:
            return f"{self.total} ({human_duration(now - self.last)} ago)"
        return str(self.total)


def _ending(terminated: Any) -> str:
    """Why a container ended: its reason, or the signal or exit code where it has none."""
    if reason := terminated.get("reason"):
        return str(reason)
    if signal := terminated.get("signal"):
        return f"Signal:{signal}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _row(pod: Obj, now: float) -> list[Any]:
    metadata, spec, status = as_map(pod.get("metadata")), as_map(pod.get("spec")), as_map(pod.get("status"))
    conditions = _dicts(status.get("conditions"))
    by_type = {entry.get("type"): entry for entry in reversed(conditions) if isinstance(entry.get("type"), str)}
    phase = text(status, "phase")
    reason = text(status, "reason") or phase
    scheduled = by_type.get("PodScheduled")
    if scheduled is not None and scheduled.get("reason") == "SchedulingGated":
        reason = "SchedulingGated"

    init_containers = _dicts(spec.get("initContainers"))
    sidecars = [text(entry, "name") for entry in init_containers if entry.get("restartPolicy") == "Always"]
    total = len(_dicts(spec.get("containers"))) + len(sidecars)
    ready = 0
    restarts = _Restarts()
    sidecar_restarts = _Restarts()
    initializing = False
    for index, entry in enumerate(_dicts(status.get("initContainerStatuses"))):
        sidecar = entry.get("name") in sidecars
        restarts.add(entry)
        if sidecar:
            sidecar_restarts.add(entry)
        state = as_map(entry.get("state"))
        terminated = state.get("terminated")
        if type(terminated) is dict and not terminated.get("exitCode"):
            continue
        if sidecar and entry.get("started") is True:
            ready += entry.get("ready") is True
            continue
        waiting = text(state, "waiting", "reason")
        if type(terminated) is dict:
            reason = f"Init:{_ending(terminated)}"
        elif waiting and waiting != "PodInitializing":
            reason = f"Init:{waiting}"
        else:
            reason = f"Init:{index}/{len(init_containers)}"
        initializing = True
        break

    initialized = by_type.get("Initialized")
    if not initializing or (initialized is not None and initialized.get("status") == "True"):
        restarts = sidecar_restarts
        running = False
        for entry in reversed(_dicts(status.get("containerStatuses"))):
            restarts.add(entry)
            state = as_map(entry.get("state"))
            terminated = state.get("terminated")
            if waiting := text(state, "waiting", "reason"):
                reason = waiting
            elif type(terminated) is dict:
                reason = _ending(terminated)
            elif entry.get("ready") is True and state.get("running") is not None:
                running = True
                ready += 1
        if reason == "Completed" and running:
            is_ready = by_type.get("Ready")
            reason = "Running" if is_ready is not None and is_ready.get("status") == "True" else "NotReady"

    if metadata.get("deletionTimestamp"):
        if status.get("reason") == _NODE_LOST:
            reason = "Unknown"
        elif phase not in _FINISHED:
            reason = "Terminating"

    return [
        text(metadata, "name"),
        f"{ready}/{total}",
        reason,
        restarts.text_at(now),
        age(metadata.get("creationTimestamp"), now),
        text(status, "podIPs", 0, "ip") or text(status, "podIP", missing=NONE),
        text(spec, "nodeName", missing=NONE),
        text(status, "nominatedNodeName", missing=NONE),
        _gates(_dicts(spec.get("readinessGates")), by_type),
    ]


def _gates(gates: list[Obj] | tuple[Obj, ...], by_type: dict[Any, Obj]) -> str:
    if not gates:
        return NONE
    wanted = [gate.get("conditionType") for gate in gates]
    true = sum(1 for kind in wanted if isinstance(kind, str) and by_type.get(kind, {}).get("status") == "True")
    return f"{true}/{len(gates)}"


def _finished(pod: Obj) -> list[Obj] | None:
    return _FINISHED.get(text(pod, "status", "phase"))


PODS: Final = Printer(COLUMNS, _row, conditions=_finished)
PRINTERS: Final = {("", "pods"): PODS}
