"""The fingerprint of an incident: what it looks like in the cluster, in terms that do not depend on names or moments.

Two fingerprints of one problem, from an embedded and from a real cluster, are compared feature by feature. A feature is
a set of texts; agreement is the share of them that both have (the Jaccard index), without those that say that all is
well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from srearena.conductor.actions.telemetry import Telemetry
from srearena.service.apps.base import Application
from srearena.service.errors import ApiRefused
from srearena.service.kubernetes import Kubernetes, Obj
from tests.real_cluster.signals import Signals, first_moment, take_alerts, take_signals, words
from tests.real_cluster.spans import Span, seconds, services, spans

Fingerprint = dict[str, list[str]]
FEATURES = (
    "pods",
    "workloads",
    "restarts",
    "warnings",
    "empty services",
    "requests",
    "failing spans",
    "errors in logs",
    "signals",
    "alerts",
)
LINES = "error lines"
"""Samples of what was logged, to explain a difference. Not compared: versions of a program word it differently."""
_SAMPLES, _LONGEST = 5, 160
_VARIABLE = re.compile(r"\S*/(?=[\w.-]+\.go:)|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b\d[\d:.TZ-]*")
_HEALTHY = (": Running ready", ": works")
_COLOURS = re.compile("\x1b\\[[0-9;]*m")
_COMPLAINT = re.compile(
    r"\b(ERR|FTL|PNC|ERROR|FATAL|PANIC)\b|^panic: |^fatal error: |\"level\":\"(error|fatal|panic)\""
)


@dataclass(slots=True)
class Observation:
    """A fingerprint, the numbers behind it, and the seconds from the fault to its first signs."""

    fingerprint: Fingerprint = field(default_factory=dict)
    signals: Signals = field(default_factory=dict)
    first: dict[str, float] = field(default_factory=dict)


def observe(app: Application, api: Kubernetes, since: str, telemetry: Telemetry | None) -> Observation:
    """The incident in an application's namespaces; events, restarts, spans and log lines count from `since` on.

    Without telemetry nothing is said about alerts.
    """
    pods = [pod for name in app.namespaces for pod in api.list("pods", name)]
    events = [event for name in app.namespaces for event in api.list("events", name)]
    slices = [piece for name in app.namespaces for piece in api.list("endpointslices", name)]
    published = [service for name in app.namespaces for service in api.list("services", name)]
    deployments = [one for name in app.namespaces for one in api.list("deployments", name)]
    injected, now = seconds(since), seconds(api.now())
    errors: dict[str, set[str]] = {}
    for pod in pods:
        errors.setdefault(workload_of(pod), set()).update(_error_lines(api, pod, since))
    failing = _failing_spans(app, api, injected, now)
    warnings = [one for one in events if one.get("type") == "Warning" and _since(_last_seen(one), since)]
    signals = take_signals(app, api, injected, now)
    found: dict[str, Iterable[str]] = {
        "pods": (f"{workload_of(pod)}: {state_of(pod)}" for pod in pods),
        "workloads": (
            f"{one['metadata']['name']}: {reason}" for one in deployments for reason in _unhealthy_conditions(one)
        ),
        "restarts": (workload_of(pod) for pod in pods if _restarted(pod, since)),
        "warnings": (f"{_stem(event)}: {event.get('reason')}" for event in warnings),
        "empty services": _empty(published, slices),
        "requests": _requests(app, api),
        "failing spans": (span.name for span in failing),
        "errors in logs": (workload for workload, lines in errors.items() if lines),
        "signals": words(signals),
    }
    moments = {
        "warning": first_moment((seconds(_first_seen(event)) for event in warnings), injected),
        "failing span": first_moment((span.start for span in failing), injected),
    }
    if telemetry is not None:
        found["alerts"], moments["alert"] = take_alerts(app, telemetry, injected, now)
    fingerprint = {feature: sorted(set(found[feature])) for feature in FEATURES if feature in found}
    samples = (f"{name}: {line}" for name, lines in errors.items() for line in sorted(lines)[:_SAMPLES])
    first = {name: moment for name, moment in moments.items() if moment is not None}
    return Observation({**fingerprint, LINES: sorted(samples)}, signals, first)


def agreement(one: Fingerprint, other: Fingerprint) -> dict[str, float | None]:
    """By feature, the share of symptoms that both fingerprints have; None where neither has any.

    What both show as healthy is no agreement about an incident. What one of them has not recorded is left out.
    """
    shares: dict[str, float | None] = {}
    for feature in _recorded(one, other):
        left, right = set(one[feature]), set(other[feature])
        common = {text for text in left & right if not text.endswith(_HEALTHY)}
        symptoms = common | (left ^ right)
        shares[feature] = len(common) / len(symptoms) if symptoms else None
    return shares


def differences(one: Fingerprint, other: Fingerprint) -> dict[str, tuple[list[str], list[str]]]:
    """By feature, what only the first and what only the second has; equal features are left out."""
    found = {}
    for feature in _recorded(one, other):
        left, right = set(one[feature]), set(other[feature])
        if left != right:
            found[feature] = (sorted(left - right), sorted(right - left))
    return found


def _recorded(one: Fingerprint, other: Fingerprint) -> list[str]:
    return [feature for feature in FEATURES if feature in one and feature in other]


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
        if _since(str(ended.get("finishedAt") or ""), since):
            return True
    return False


def _since(moment: str, since: str) -> bool:
    """Whether a moment is not earlier, to the second: texts with and without fractions cannot be compared whole."""
    seconds = len("2026-01-01T00:00:00")
    return moment[:seconds] >= since[:seconds]


def _last_seen(event: Mapping[str, Any]) -> str:
    series = event.get("series") or {}
    return str(series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime") or "")


def _first_seen(event: Mapping[str, Any]) -> str:
    return str(event.get("eventTime") or event.get("firstTimestamp") or event["metadata"]["creationTimestamp"])


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


def _unhealthy_conditions(deployment: Mapping[str, Any]) -> Iterator[str]:
    """What a Deployment reports in its conditions, as long as it is not well."""
    for one in (deployment.get("status") or {}).get("conditions") or ():
        if one["status"] == ("True" if one["type"] == "ReplicaFailure" else "False"):
            yield f"{one['type']} {one['status']} {one.get('reason')}"


def _failing_spans(app: Application, api: Kubernetes, start: float, end: float) -> list[Span]:
    """The spans that are marked as failed, from the application's own Jaeger."""
    return [span for name in services(app, api) for span in spans(app, api, name, start, end) if span.failed]


def _error_lines(api: Kubernetes, pod: Mapping[str, Any], since: str) -> set[str]:
    """The errors that containers of the pod, or those that ran before them, have logged since then."""
    found = set()
    for container in pod["spec"]["containers"]:
        for previous in (False, True):
            try:
                text = api.logs(
                    pod["metadata"]["name"],
                    pod["metadata"]["namespace"],
                    container=container["name"],
                    previous=previous,
                    timestamps=True,
                )
            except ApiRefused:
                continue  # it has not started, or there was none before
            for line in text.splitlines():
                moment, _, words = line.partition(" ")
                plain = _COLOURS.sub("", words)
                if _since(moment, since) and _COMPLAINT.search(plain):
                    found.add(_VARIABLE.sub("#", plain)[:_LONGEST])
    return found
