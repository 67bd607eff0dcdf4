"""What of a fault can be seen by an engineer on call: in objects, events, alerts and the rate of errors.

Read with the agent's own identity, through the APIs it has. A problem without any symptom would be a riddle.
"""

from __future__ import annotations

from srearena.conductor.actions.telemetry import Telemetry
from srearena.conductor.baseline import Baseline
from srearena.conductor.errors import BadAction
from srearena.conductor.problems.base import Problem
from srearena.service.kubernetes import Kubernetes, Obj
from srearena.service.readiness import not_ready

_ERROR_SHARE = (
    'sum by (service_name) (rate(traces_span_metrics_calls_total{status_code="STATUS_CODE_ERROR"}[2m]))'
    " / sum by (service_name) (rate(traces_span_metrics_calls_total[2m])) > 0.05"
)


def visible(problem: Problem, api: Kubernetes, telemetry: Telemetry) -> list[str]:
    """The symptoms there are now, in words; `api` is the agent's."""
    namespaces = problem.app.namespaces
    found = not_ready(api, namespaces)
    found += _without_endpoints(problem.baseline, api, namespaces)
    for namespace in namespaces:
        warnings = [
            event
            for event in api.list("events", namespace)
            if event.get("type") == "Warning" and _last_seen(event) >= problem.broken_since
        ]
        found += sorted({f"event {event.get('reason')}: {event.get('message', '')[:150]}" for event in warnings})[:5]
    found += alerts(telemetry)
    try:
        errors = telemetry.query(_ERROR_SHARE)
    except BadAction:
        return found
    return found if errors == "(no data)" else [*found, f"errors in {errors}"]


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
