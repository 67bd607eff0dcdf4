"""The symptoms that an engineer on call can see: in objects, events, alerts, errors, latency and load.

They are read with the agent's identity, through the agent's APIs. A problem without symptoms could not be solved.
"""

from __future__ import annotations

from datetime import datetime

from srearena.conductor.actions.telemetry import Telemetry
from srearena.conductor.errors import BadAction
from srearena.conductor.grading.baseline import Baseline
from srearena.conductor.problems.base import Problem
from srearena.service.kubernetes import Kubernetes, Obj
from srearena.service.readiness import not_ready

_ERRORS = 'sum by (service_name) (rate(traces_span_metrics_calls_total{status_code="STATUS_CODE_ERROR"}[2m]))'
_REQUESTS = "sum by (service_name) (rate(traces_span_metrics_calls_total[2m]))"
_P95 = (
    "histogram_quantile(0.95, sum by (service_name, le) (rate(traces_span_metrics_duration_milliseconds_bucket[2m])))"
)
_BEFORE = "[2m] @ BEFORE"
"""The two minutes before the fault."""
_MEASURES = {
    "errors in": f"{_ERRORS} / {_REQUESTS} > 0.05",
    "much slower than before:": f"{_P95} > 3 * {_P95.replace('[2m]', _BEFORE)}",
    "much more load than before:": f"{_REQUESTS} > 3 * {_REQUESTS.replace('[2m]', _BEFORE)}",
    "accepts only part of the connections:": 'min by (service) (avg_over_time(probe_success{service!=""}[2m])) < 0.8',
}
"""Symptoms in metrics, as a dashboard would show them. Thresholds are chosen well above the variation under load."""
_STUCK_SECONDS = 60
"""Twice the default grace period of a pod."""
_DELETABLE = ("pods", "deployments", "configmaps", "services", "persistentvolumeclaims", "jobs")


def visible_symptoms(problem: Problem, api: Kubernetes, telemetry: Telemetry) -> list[str]:
    """Describe the current symptoms; `api` has the agent's identity."""
    namespaces = problem.app.namespaces
    now = problem.kubernetes.now()
    symptoms = not_ready(api, namespaces)
    symptoms += _without_endpoints(problem.baseline, api, namespaces)
    for namespace in namespaces:
        warnings = [
            event
            for event in api.list("events", namespace)
            if event.get("type") == "Warning" and _last_seen(event) >= problem.injected_at
        ]
        symptoms += sorted({f"event {event.get('reason')}: {event.get('message', '')[:150]}" for event in warnings})[:5]
        symptoms += _replaced(api, namespace, problem.injected_at)
        symptoms += _stuck(api, namespace, now)
    return [*symptoms, *alerts(telemetry), *_measured(telemetry, problem.injected_at)]


def _measured(telemetry: Telemetry, since: str) -> list[str]:
    before = datetime.fromisoformat(since).timestamp() if since else 0.0
    symptoms = []
    for description, query in _MEASURES.items():
        try:
            value = telemetry.query(query.replace("BEFORE", f"{before:.0f}"))
        except BadAction:
            return []  # no telemetry
        if value != "(no data)":
            symptoms.append(f"{description} {value}")
    return symptoms


def _replaced(api: Kubernetes, namespace: str, since: str) -> list[str]:
    """Pods and containers that were replaced since then without a rollout."""
    sets = {one["metadata"]["name"]: one for one in api.list("replicasets", namespace)}
    symptoms = []
    for pod in api.list("pods", namespace):
        name = pod["metadata"]["name"]
        owners = [sets.get(owner["name"]) for owner in pod["metadata"].get("ownerReferences", ())]
        old = any(owner is not None and owner["metadata"]["creationTimestamp"] < since for owner in owners)
        if old and pod["metadata"]["creationTimestamp"] >= since:
            symptoms.append(f"pod {name} replaced another pod")
        for status in (pod.get("status") or {}).get("containerStatuses") or ():
            ended = (status.get("lastState") or {}).get("terminated") or {}
            if ended.get("finishedAt", "") >= since > "":
                symptoms.append(f"container {status['name']} of pod {name} ended ({ended.get('reason')})")
    return symptoms


def _stuck(api: Kubernetes, namespace: str, now: str) -> list[str]:
    """Objects that were deleted a while ago and still exist."""
    latest = datetime.fromisoformat(now).timestamp() - _STUCK_SECONDS
    return [
        f"{resource} {obj['metadata']['name']} is not removed after its deletion"
        for resource in _DELETABLE
        for obj in api.list(resource, namespace)
        if (deleted := obj["metadata"].get("deletionTimestamp"))
        and datetime.fromisoformat(deleted).timestamp() < latest
    ]


def _last_seen(event: Obj) -> str:
    """The last occurrence of an event: warnings during startup are not symptoms."""
    series = event.get("series") or {}
    return str(series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime") or "")


def alerts(telemetry: Telemetry) -> list[str]:
    """Describe the firing alerts; none where there is no telemetry."""
    try:
        firing = telemetry.firing()
    except BadAction:
        return []
    return [
        f"alert {alert['labels'].get('alertname')} {alert['labels'].get('service_name', '')}".rstrip()
        for alert in firing
    ]


def _without_endpoints(baseline: Baseline | None, api: Kubernetes, namespaces: tuple[str, ...]) -> list[str]:
    symptoms = []
    for namespace in namespaces:
        ready = {
            (piece["metadata"].get("labels") or {}).get("kubernetes.io/service-name")
            for piece in api.list("endpointslices", namespace)
            if any((end.get("conditions") or {}).get("ready") for end in piece.get("endpoints") or ())
        }
        services = {
            service["metadata"]["name"]
            for service in (baseline.of("services", namespace=namespace) if baseline else ())
            if service["spec"].get("selector")
        }
        symptoms += [f"Service {name} has no endpoints" for name in sorted(services - ready)]
    return symptoms
