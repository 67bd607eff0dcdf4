"""Readiness of workloads, with the reason where one is not ready, as text for people.

The criteria are those of `kubectl rollout status`: the status that the controllers report for the current generation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from srearena.service.kubernetes import Kubernetes

Obj = dict[str, Any]
WORKLOADS = ("deployments.apps", "statefulsets.apps", "daemonsets.apps")


def not_ready(api: Kubernetes, namespaces: Iterable[str]) -> list[str]:
    """One line for each workload of the namespaces that is not fully rolled out."""
    problems = []
    for namespace in namespaces:
        waiting = [obj for kind in WORKLOADS for obj in api.list(kind, namespace) if missing_replicas(obj) is not None]
        if not waiting:
            continue
        pods = api.list("pods", namespace)
        problems += [describe_unready(obj, pods) for obj in waiting]
    return problems


def missing_replicas(obj: Obj) -> str | None:
    """What is missing in a rollout; None where it is complete."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    if status.get("observedGeneration", 0) < obj["metadata"].get("generation", 1):
        return "its controller has not observed the change yet"
    if obj["kind"] == "DaemonSet":
        desired = status.get("desiredNumberScheduled", 0)
        ready, updated = status.get("numberAvailable", 0), status.get("updatedNumberScheduled", 0)
        total = desired
    else:
        desired = spec.get("replicas", 1)
        ready = status.get("availableReplicas", 0)
        updated, total = status.get("updatedReplicas", 0), status.get("replicas", 0)
    if ready < desired:
        return f"{ready} of {desired} pods available"
    if updated < desired:
        return f"{updated} of {desired} pods updated"
    if total > desired:
        return f"{total - desired} old pods are still there"
    return None


def describe_unready(obj: Obj, pods: Iterable[Obj]) -> str:
    """`deployment geo: 0 of 1 pods available (geo-5d9-x: CrashLoopBackOff: back-off 10s ...)`."""
    labels = ((obj.get("spec") or {}).get("selector") or {}).get("matchLabels") or {}
    reasons = []
    for pod in pods:
        pod_labels = pod["metadata"].get("labels") or {}
        if labels and all(pod_labels.get(key) == value for key, value in labels.items()):
            reason = pod_problem(pod)
            if reason:
                reasons.append(f"{pod['metadata']['name']}: {reason}")
    for condition in (obj.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "ReplicaFailure" and condition.get("status") == "True":
            reasons.append(str(condition.get("message")))
    what = f"{obj['kind'].lower()} {obj['metadata']['name']}: {missing_replicas(obj)}"
    return f"{what} ({'; '.join(reasons)})" if reasons else what


def pod_problem(pod: Obj) -> str:
    """The reason why a pod is not ready; empty where it is ready."""
    status = pod.get("status") or {}
    conditions = {condition["type"]: condition for condition in status.get("conditions") or ()}
    if (conditions.get("Ready") or {}).get("status") == "True" or status.get("phase") == "Succeeded":
        return ""
    scheduled = conditions.get("PodScheduled") or {}
    if scheduled.get("status") == "False":
        return f"{scheduled.get('reason')}: {scheduled.get('message')}"
    for container in [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]:
        state = container.get("state") or {}
        waiting, ended = state.get("waiting") or {}, state.get("terminated") or {}
        last = (container.get("lastState") or {}).get("terminated")
        restarts = container.get("restartCount") or 0
        crash = last if waiting.get("reason") == "CrashLoopBackOff" else ended if restarts else None
        if crash and crash.get("exitCode"):
            detail = f": {crash['message'].strip()}" if crash.get("message") else ""
            return f"{container['name']}: crashed {restarts + 1} times, {_termination(crash)}{detail}"
        if waiting.get("reason") not in (None, "PodInitializing", "ContainerCreating"):
            message = waiting.get("message") or ""
            return f"{container['name']}: {waiting['reason']}{': ' if message else ''}{message}"
        if ended and ended.get("exitCode"):
            return f"{container['name']}: {_termination(ended)}"
    if any("running" in (c.get("state") or {}) for c in status.get("containerStatuses") or ()):
        unready = [c["name"] for c in status["containerStatuses"] if not c.get("ready")]
        return f"{', '.join(unready)} runs but is not ready"
    return str(status.get("reason") or status.get("phase") or "not started")


def _termination(terminated: Obj) -> str:
    return f"{terminated.get('reason')} (exit code {terminated.get('exitCode')})"
