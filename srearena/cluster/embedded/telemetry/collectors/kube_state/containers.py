"""Families about the containers of pods: resources, state and last termination."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from srearena.cluster.embedded.objects import Obj, dig
from srearena.cluster.embedded.telemetry.collectors.kube_state.families import (
    Family,
    Reading,
    amount,
    label_name,
    seconds,
    text,
    truth,
    unit_of,
)

_Of = Callable[[Obj], Iterable[Reading]]


def _statuses(field: str, value: Callable[[Obj], float]) -> _Of:
    """One series for each container that has a status."""

    def read(pod: Obj) -> Iterable[Reading]:
        rows = dig(pod, "status", field, default=())
        return [({"container": row["name"]}, value(row)) for row in rows]

    return read


def _ends(field: str, state: str, label: str = "", value: str = "") -> _Of:
    """Families about terminated containers: the reason as a label, or a number of the termination."""

    def read(pod: Obj) -> Iterable[Reading]:
        for row in dig(pod, "status", field, default=()):
            end = (row.get(state) or {}).get("terminated")
            if end is None:
                continue
            labels = {"container": row["name"]}
            if label:
                yield {**labels, label: end.get(label) or ""}, 1.0
            elif value == "exitCode":
                yield labels, float(end.get("exitCode") or 0)
            else:
                finished = seconds(end.get(value))
                if finished is not None:
                    yield labels, finished

    return read


def _waiting(field: str) -> _Of:
    def read(pod: Obj) -> Iterable[Reading]:
        for row in dig(pod, "status", field, default=()):
            waiting = (row.get("state") or {}).get("waiting")
            if waiting is not None:
                yield {"container": row["name"], "reason": waiting.get("reason") or ""}, 1.0

    return read


def _started(pod: Obj) -> Iterable[Reading]:
    for row in dig(pod, "status", "containerStatuses", default=()):
        state = row.get("state") or {}
        running = state.get("running") or state.get("terminated") or {}
        since = seconds(running.get("startedAt"))
        if since is not None:
            yield {"container": row["name"]}, since


def _resources(containers: str, side: str) -> _Of:
    def read(pod: Obj) -> Iterable[Reading]:
        spec = pod["spec"]
        node = spec.get("nodeName") or ""
        for container in spec.get(containers) or ():
            for resource, quantity in sorted(((container.get("resources") or {}).get(side) or {}).items()):
                unit = unit_of(resource)
                if unit:
                    labels = {"container": container["name"], "node": node, "resource": label_name(resource)}
                    yield {**labels, "unit": unit}, amount(quantity)

    return read


def _infos(containers: str, statuses: str, *, init: bool) -> _Of:
    def read(pod: Obj) -> Iterable[Reading]:
        status_of = {row["name"]: row for row in dig(pod, "status", statuses, default=())}
        for container in pod["spec"].get(containers) or ():
            row = status_of.get(container["name"])
            if row is None:
                continue
            labels = {
                "container": row["name"],
                "image_spec": container.get("image") or "",
                "image": row.get("image") or "",
                "image_id": row.get("imageID") or "",
                "container_id": row.get("containerID") or "",
            }
            if init:
                labels["restart_policy"] = text(container.get("restartPolicy"))
            yield labels, 1.0

    return read


def _is(state: str) -> Callable[[Obj], float]:
    return lambda row: truth((row.get("state") or {}).get(state) is not None)


def _both(prefix: str, containers: str, statuses: str, *, init: bool) -> tuple[Family, ...]:
    """Return families that ordinary and init containers share."""
    status = f"{prefix}_status"
    return (
        Family(f"{prefix}_info", "Image and id of a container.", _infos(containers, statuses, init=init)),
        Family(f"{prefix}_resource_limits", "What a container may use.", _resources(containers, "limits")),
        Family(f"{prefix}_resource_requests", "Resource requests of a container.", _resources(containers, "requests")),
        Family(
            f"{status}_last_terminated_reason",
            "Why the container ended the last time.",
            _ends(statuses, "lastState", label="reason"),
        ),
        Family(
            f"{status}_ready",
            "Whether the container is ready.",
            _statuses(statuses, lambda row: truth(row.get("ready"))),
        ),
        Family(
            f"{status}_restarts_total",
            "How often the container was started again.",
            _statuses(statuses, lambda row: float(row.get("restartCount") or 0)),
            "counter",
        ),
        Family(f"{status}_running", "Whether the container runs.", _statuses(statuses, _is("running"))),
        Family(f"{status}_terminated", "Whether the container has ended.", _statuses(statuses, _is("terminated"))),
        Family(
            f"{status}_terminated_reason",
            "Why the container, which has ended, did so.",
            _ends(statuses, "state", label="reason"),
        ),
        Family(f"{status}_waiting", "Whether the container waits to run.", _statuses(statuses, _is("waiting"))),
        Family(f"{status}_waiting_reason", "What the container waits for.", _waiting(statuses)),
    )


FAMILIES: tuple[Family, ...] = (
    *_both("kube_pod_container", "containers", "containerStatuses", init=False),
    Family("kube_pod_container_state_started", "When the container was started.", _started),
    Family(
        "kube_pod_container_status_last_terminated_exitcode",
        "With which code the container ended the last time.",
        _ends("containerStatuses", "lastState", value="exitCode"),
    ),
    Family(
        "kube_pod_container_status_last_terminated_timestamp",
        "When the container ended the last time.",
        _ends("containerStatuses", "lastState", value="finishedAt"),
    ),
    *_both("kube_pod_init_container", "initContainers", "initContainerStatuses", init=True),
)
