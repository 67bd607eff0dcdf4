"""Objects of an incident: tables, and what has changed since the first observation.

Secrets are not among the kinds: the page shows no credentials.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from srearena.snapshots.differences import differences, essential

Obj = Mapping[str, Any]
KINDS = (
    "deployments",
    "statefulsets",
    "daemonsets",
    "services",
    "configmaps",
    "ingresses",
    "networkpolicies",
    "horizontalpodautoscalers",
    "poddisruptionbudgets",
    "resourcequotas",
    "persistentvolumeclaims",
    "cronjobs",
    "jobs",
    "nodes",
    "pods",
)
"""Resources that the page lists, by their plural names."""
COMPARED = tuple(kind for kind in KINDS if kind not in ("pods", "jobs"))
"""Resources whose changes are listed: pods and jobs come and go."""
_MOST_DIFFERENCES = 200


def identity(obj: Obj) -> tuple[str, str]:
    metadata = obj.get("metadata") or {}
    return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")


def changes(kind: str, before: Mapping[tuple[str, str], Obj], after: Iterable[Obj]) -> list[dict[str, Any]]:
    """Objects that were created, deleted or changed in more than their bookkeeping."""
    found: list[dict[str, Any]] = []
    present = {identity(obj): obj for obj in after}
    for key in sorted({*before, *present}):
        old, new = before.get(key), present.get(key)
        if old is not None and new is not None:
            fields = [difference["path"] for difference in differences(essential(old), essential(new))]
            if fields:
                found.append(_change(kind, key, "changed", ", ".join(fields[:4])))
        else:
            found.append(_change(kind, key, "created" if old is None else "deleted", ""))
    return found


def _change(kind: str, key: tuple[str, str], change: str, fields: str) -> dict[str, Any]:
    return {"kind": kind, "namespace": key[0], "name": key[1], "change": change, "fields": fields}


def described(before: Obj | None, after: Obj | None) -> dict[str, Any]:
    """An object as YAML with its differences from an earlier version."""
    shown = after or before or {}
    if before and after:
        found = list(differences(essential(before), essential(after)))[:_MOST_DIFFERENCES]
    else:
        found = []
    state = "deleted" if after is None else "created" if before is None else "changed" if found else "unchanged"
    return {"yaml": as_yaml(shown), "state": state, "differences": found}


def as_yaml(obj: Obj) -> str:
    """An object without managed fields, as `kubectl get -o yaml` prints it."""
    metadata = {key: value for key, value in (obj.get("metadata") or {}).items() if key != "managedFields"}
    return yaml.safe_dump({**obj, "metadata": metadata}, sort_keys=False, allow_unicode=True, width=1000)


def pod_row(pod: Obj) -> dict[str, Any]:
    """One pod as `kubectl get pods -o wide` lists it."""
    metadata, spec, status = (pod.get(part) or {} for part in ("metadata", "spec", "status"))
    containers = status.get("containerStatuses") or []
    ready = sum(bool(one.get("ready")) for one in containers)
    reason = str(status.get("reason") or status.get("phase") or "")
    for one in [*(status.get("initContainerStatuses") or []), *containers]:
        state = one.get("state") or {}
        waiting, ended = state.get("waiting") or {}, state.get("terminated") or {}
        if waiting.get("reason") not in (None, "PodInitializing", "ContainerCreating"):
            reason = str(waiting["reason"])
        elif ended.get("exitCode"):
            reason = str(ended.get("reason") or f"ExitCode:{ended['exitCode']}")
    if metadata.get("deletionTimestamp"):
        reason = "Terminating"
    total = len(spec.get("containers") or [])
    completed = status.get("phase") == "Succeeded"
    return {
        "namespace": str(metadata.get("namespace") or ""),
        "name": str(metadata.get("name") or ""),
        "ready": f"{ready}/{total}",
        "status": "Completed" if completed and reason == "Succeeded" else reason,
        "restarts": sum(int(one.get("restartCount") or 0) for one in containers),
        "node": str(spec.get("nodeName") or ""),
        "since": str(metadata.get("creationTimestamp") or ""),
        "level": 0 if completed or (reason == "Running" and ready == total) else 2 if reason != "Running" else 1,
    }


def node_row(node: Obj) -> dict[str, Any]:
    """One node: conditions that are not as they should be, and its size."""
    metadata, status = node.get("metadata") or {}, node.get("status") or {}
    problems = [
        str(condition.get("type")) if condition.get("type") != "Ready" else "NotReady"
        for condition in status.get("conditions") or []
        if (condition.get("status") == "True") != (condition.get("type") == "Ready")
    ]
    unschedulable = bool((node.get("spec") or {}).get("unschedulable"))
    capacity = status.get("capacity") or {}
    return {
        "name": str(metadata.get("name") or ""),
        "status": ", ".join([*(problems or ["Ready"]), *(["SchedulingDisabled"] if unschedulable else [])]),
        "cpu": str(capacity.get("cpu") or ""),
        "memory": str(capacity.get("memory") or ""),
        "version": str((status.get("nodeInfo") or {}).get("kubeletVersion") or ""),
        "level": 2 if problems else 1 if unschedulable else 0,
    }


def event_row(event: Obj) -> dict[str, Any]:
    """One event of either API."""
    about = event.get("involvedObject") or event.get("regarding") or {}
    series = event.get("series") or {}
    last = series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime")
    return {
        "at": str(last or (event.get("metadata") or {}).get("creationTimestamp") or ""),
        "type": str(event.get("type") or ""),
        "reason": str(event.get("reason") or ""),
        "namespace": str(about.get("namespace") or ""),
        "object": f"{str(about.get('kind') or '').lower()}/{about.get('name') or ''}",
        "message": str(event.get("message") or event.get("note") or ""),
        "count": int(series.get("count") or event.get("count") or 1),
    }
