"""The fingerprint of an incident: what it looks like in the cluster, in terms that do not depend on names or moments.

Two fingerprints of one problem, from an embedded and from a real cluster, are compared feature by feature. A feature is
a set of texts; agreement is the share of texts that both have (the Jaccard index), 1 where both are empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from srearena.service.apps.base import Application
from srearena.service.kubernetes import Kubernetes, Obj

Fingerprint = dict[str, list[str]]
FEATURES = ("pods", "restarts", "warnings", "empty services", "requests")


def take_fingerprint(app: Application, api: Kubernetes, since: str) -> Fingerprint:
    """The fingerprint of an application's namespaces; events and restarts count from `since` on."""
    pods = [pod for name in app.namespaces for pod in api.list("pods", name)]
    events = [event for name in app.namespaces for event in api.list("events", name)]
    slices = [piece for name in app.namespaces for piece in api.list("endpointslices", name)]
    services = [service for name in app.namespaces for service in api.list("services", name)]
    found: dict[str, Iterable[str]] = {
        "pods": (f"{workload_of(pod)}: {state_of(pod)}" for pod in pods),
        "restarts": (workload_of(pod) for pod in pods if _restarted(pod, since)),
        "warnings": (
            f"{_stem(event)}: {event.get('reason')}"
            for event in events
            if event.get("type") == "Warning" and _last_seen(event) >= since
        ),
        "empty services": _empty(services, slices),
        "requests": _requests(app, api),
    }
    return {feature: sorted(set(found[feature])) for feature in FEATURES}


def agreement(one: Fingerprint, other: Fingerprint) -> dict[str, float]:
    """By feature, the share of texts that both fingerprints have."""
    shares = {}
    for feature in FEATURES:
        left, right = set(one.get(feature, ())), set(other.get(feature, ()))
        shares[feature] = len(left & right) / len(left | right) if left | right else 1.0
    return shares


def differences(one: Fingerprint, other: Fingerprint) -> dict[str, tuple[list[str], list[str]]]:
    """By feature, what only the first and what only the second has; equal features are left out."""
    found = {}
    for feature in FEATURES:
        left, right = set(one.get(feature, ())), set(other.get(feature, ()))
        if left != right:
            found[feature] = (sorted(left - right), sorted(right - left))
    return found


def workload_of(pod: Mapping[str, Any]) -> str:
    """The name of the workload that a pod belongs to, without what controllers append."""
    name = str(pod["metadata"]["name"])
    owners = pod["metadata"].get("ownerReferences") or ()
    if not owners:
        return name
    kind, owner = owners[0]["kind"], str(owners[0]["name"])
    return owner.rpartition("-")[0] if kind == "ReplicaSet" else owner


def state_of(pod: Mapping[str, Any]) -> str:
    """The phase of a pod, whether it is ready, and why its containers do not run."""
    status = pod.get("status") or {}
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions") or ())
    unscheduled = [
        str(one.get("reason"))
        for one in status.get("conditions") or ()
        if one["type"] == "PodScheduled" and one["status"] == "False"
    ]
    waiting = {
        str(one["state"]["waiting"].get("reason"))
        for kind in ("initContainerStatuses", "containerStatuses")
        for one in status.get(kind) or ()
        if "waiting" in (one.get("state") or {})
    }
    # A container that fails again and again alternates between these; which one is seen depends on the moment.
    if waiting & {"CrashLoopBackOff"} or (not ready and any(_crashed(one) for one in _containers(status))):
        waiting = (waiting - {"CrashLoopBackOff"}) | {"CrashLoopBackOff"}
    pulls = {"ErrImagePull", "ImagePullBackOff"}
    if waiting & pulls:
        waiting = (waiting - pulls) | {"ImagePullBackOff"}
    words = [str(status.get("phase")), "ready" if ready else "not ready", *unscheduled, *sorted(waiting)]
    return " ".join(words)


def _containers(status: Mapping[str, Any]) -> list[Obj]:
    return [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]


def _crashed(container: Mapping[str, Any]) -> bool:
    state, last = container.get("state") or {}, container.get("lastState") or {}
    ended = state.get("terminated") or last.get("terminated") or {}
    return bool(ended.get("exitCode")) and not container.get("ready")


def _restarted(pod: Mapping[str, Any], since: str) -> bool:
    for container in _containers(pod.get("status") or {}):
        ended = (container.get("lastState") or {}).get("terminated") or {}
        if str(ended.get("finishedAt") or "") >= since:
            return True
    return False


def _last_seen(event: Mapping[str, Any]) -> str:
    series = event.get("series") or {}
    return str(series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime") or "")


def _stem(event: Mapping[str, Any]) -> str:
    """Kind and name of the object an event is about, without the parts that are drawn at random."""
    about = event.get("involvedObject") or {}
    kind, words = str(about.get("kind")), str(about.get("name")).split("-")
    drawn = {"Pod": 2, "ReplicaSet": 1, "Job": 0}.get(kind, 0)
    return f"{kind} {'-'.join(words[:-drawn] if drawn and len(words) > drawn else words)}"


def _empty(services: Iterable[Mapping[str, Any]], slices: Iterable[Mapping[str, Any]]) -> list[str]:
    served = {
        (piece["metadata"].get("labels") or {}).get("kubernetes.io/service-name")
        for piece in slices
        if any((end.get("conditions") or {}).get("ready") for end in piece.get("endpoints") or ())
    }
    names = {service["metadata"]["name"] for service in services if service["spec"].get("selector")}
    return sorted(names - served)


def _requests(app: Application, api: Kubernetes, attempts: int = 4) -> Iterable[str]:
    """The outcome of each sample request: what most of a few attempts gave."""
    for request in app.frontend.requests if app.frontend else ():
        assert app.frontend is not None
        results = [app.frontend.probe(api, app.namespace, request) for _ in range(attempts)]
        worked = sum(result.ok for result in results)
        outcome = "works" if worked == attempts else "fails" if not worked else "works at times"
        yield f"{request.method} {request.path.partition('?')[0]}: {outcome}"
