"""What of a fault can be seen by an engineer on call: in objects, events, alerts, errors, latency and load.

Read with the agent's own identity, through the APIs it has. A problem without any symptom would be a riddle.
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
    "asked much more than before:": f"{_REQUESTS} > 3 * {_REQUESTS.replace('[2m]', _BEFORE)}",
    "takes only part of the connections:": 'min by (service) (avg_over_time(probe_success{service!=""}[2m])) < 0.8',
}
"""What a look at the dashboards shows."""
_STUCK_SECONDS = 60
_DELETABLE = ("pods", "deployments", "configmaps", "services", "persistentvolumeclaims", "jobs")


def visible(problem: Problem, api: Kubernetes, telemetry: Telemetry) -> list[str]:
    """The symptoms there are now, in words; `api` is the agent's."""
    namespaces = problem.app.namespaces
    now = problem.kubernetes.now()
    found = not_ready(api, namespaces)
    found += _without_endpoints(problem.baseline, api, namespaces)
    for namespace in namespaces:
        warnings = [
            event
            for event in api.list("events", namespace)
            if event.get("type") == "Warning" and _last_seen(event) >= problem.injected_at
        ]
        found += sorted({f"event {event.get('reason')}: {event.get('message', '')[:150]}" for event in warnings})[:5]
        found += _replaced(api, namespace, problem.injected_at)
        found += _stuck(api, namespace, now)
    return [*found, *alerts(telemetry), *_measured(telemetry, problem.injected_at)]


def _measured(telemetry: Telemetry, since: str) -> list[str]:
    before = datetime.fromisoformat(since).timestamp() if since else 0.0
    found = []
    for words, query in _MEASURES.items():
        try:
            seen = telemetry.query(query.replace("BEFORE", f"{before:.0f}"))
        except BadAction:
            return []  # there is no telemetry
        if seen != "(no data)":
            found.append(f"{words} {seen}")
    return found


def _replaced(api: Kubernetes, namespace: str, since: str) -> list[str]:
    """Pods and containers that came in place of others since, though nobody rolled anything out."""
    sets = {one["metadata"]["name"]: one for one in api.list("replicasets", namespace)}
    found = []
    for pod in api.list("pods", namespace):
        name = pod["metadata"]["name"]
        owners = [sets.get(owner["name"]) for owner in pod["metadata"].get("ownerReferences", ())]
        old = any(owner is not None and owner["metadata"]["creationTimestamp"] < since for owner in owners)
        if old and pod["metadata"]["creationTimestamp"] >= since:
            found.append(f"pod {name} came in place of another")
        for status in (pod.get("status") or {}).get("containerStatuses") or ():
            ended = (status.get("lastState") or {}).get("terminated") or {}
            if ended.get("finishedAt", "") >= since > "":
                found.append(f"container {status['name']} of pod {name} ended ({ended.get('reason')})")
    return found


def _stuck(api: Kubernetes, namespace: str, now: str) -> list[str]:
    """What was deleted a while ago, and is still there."""
    latest = datetime.fromisoformat(now).timestamp() - _STUCK_SECONDS
    return [
        f"{resource} {obj['metadata']['name']} does not go away"
        for resource in _DELETABLE
        for obj in api.list(resource, namespace)
        if (deleted := obj["metadata"].get("deletionTimestamp"))
        and datetime.fromisoformat(deleted).timestamp() < latest
    ]


def _last_seen(event: Obj) -> str:
    """When it last happened: what went wrong while everything started is no symptom."""
    series = event.get("series") or {}
    return str(series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime") or "")


def alerts(telemetry: Telemetry) -> list[str]:
    """The alerts that fire; none where there is no telemetry."""
    try:
        firing = telemetry.firing()
    except BadAction:
        return []
    return [
        f"alert {alert['labels'].get('alertname')} {alert['labels'].get('service_name', '')}".rstrip()
        for alert in firing
    ]


def _without_endpoints(baseline: Baseline | None, api: Kubernetes, namespaces: tuple[str, ...]) -> list[str]:
    found = []
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
        found += [f"Service {name} has no endpoints" for name in sorted(services - ready)]
    return found
