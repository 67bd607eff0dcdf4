"""Families about autoscalers, disruption budgets, quotas and limit ranges."""

from __future__ import annotations

from collections.abc import Iterable

from srearena.cluster.embedded.objects import Obj, dig
from srearena.cluster.embedded.telemetry.collectors.kube_state.families import (
    Family,
    Kind,
    Reading,
    amount,
    conditions,
    created,
    generation,
    info,
    named,
    number,
    observed,
)

_SOURCES = {
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "External": "external",
}
_TARGETS = (("value", "value"), ("average", "averageValue"), ("utilization", "averageUtilization"))


def _metrics(rows: Iterable[Obj], side: str) -> Iterable[Reading]:
    """Yield the autoscaler's metrics: specified (`target`) or measured (`current`)."""
    for row in rows:
        source = row.get(_SOURCES.get(row.get("type", ""), "")) or {}
        name = source.get("name") or dig(source, "metric", "name", default="")
        for kind, field in _TARGETS:
            value = (source.get(side) or {}).get(field)
            if value is not None:
                yield {"metric_name": name, "metric_target_type": kind}, amount(value)


def _target_metrics(autoscaler: Obj) -> Iterable[Reading]:
    return _metrics(autoscaler["spec"].get("metrics") or (), "target")


def _current_metrics(autoscaler: Obj) -> Iterable[Reading]:
    return _metrics(dig(autoscaler, "status", "currentMetrics", default=()), "current")


def _quota(quota: Obj) -> Iterable[Reading]:
    for kind in ("hard", "used"):
        for resource, quantity in sorted(dig(quota, "status", kind, default={}).items()):
            yield {"resource": resource, "type": kind}, amount(quantity)


def _limits(limits: Obj) -> Iterable[Reading]:
    for row in dig(limits, "spec", "limits", default=()):
        for constraint in ("min", "max", "default", "defaultRequest", "maxLimitRequestRatio"):
            for resource, quantity in sorted((row.get(constraint) or {}).items()):
                yield {"resource": resource, "type": row["type"], "constraint": constraint}, amount(quantity)


_H, _B = "kube_horizontalpodautoscaler", "kube_poddisruptionbudget"

AUTOSCALERS = Kind(
    "horizontalpodautoscalers.autoscaling",
    named("horizontalpodautoscaler"),
    (
        info(
            f"{_H}_info",
            "What the autoscaler scales.",
            scaletargetref_api_version=("spec", "scaleTargetRef", "apiVersion"),
            scaletargetref_kind=("spec", "scaleTargetRef", "kind"),
            scaletargetref_name=("spec", "scaleTargetRef", "name"),
        ),
        generation(_H),
        number(f"{_H}_spec_max_replicas", "At most so many pods.", "spec", "maxReplicas"),
        number(f"{_H}_spec_min_replicas", "At least so many pods.", "spec", "minReplicas", default=1.0),
        Family(f"{_H}_spec_target_metric", "What its metrics shall be.", _target_metrics),
        Family(f"{_H}_status_target_metric", "What its metrics are.", _current_metrics),
        number(f"{_H}_status_current_replicas", "Pods there are.", "status", "currentReplicas"),
        number(f"{_H}_status_desired_replicas", "Pods there should be.", "status", "desiredReplicas"),
        conditions(f"{_H}_status_condition", "Conditions of the autoscaler."),
    ),
)

DISRUPTION_BUDGETS = Kind(
    "poddisruptionbudgets.policy",
    named("poddisruptionbudget"),
    (
        created(_B),
        number(f"{_B}_status_current_healthy", "Healthy pods.", "status", "currentHealthy"),
        number(f"{_B}_status_desired_healthy", "Healthy pods there must be.", "status", "desiredHealthy"),
        number(f"{_B}_status_pod_disruptions_allowed", "Pods that may go now.", "status", "disruptionsAllowed"),
        number(f"{_B}_status_expected_pods", "Pods the budget counts.", "status", "expectedPods"),
        observed(_B),
    ),
)

QUOTAS = Kind(
    "resourcequotas",
    named("resourcequota"),
    (created("kube_resourcequota"), Family("kube_resourcequota", "Quota, and what is used of it.", _quota)),
)

LIMIT_RANGES = Kind(
    "limitranges",
    named("limitrange"),
    (Family("kube_limitrange", "Bounds and defaults for resources.", _limits), created("kube_limitrange")),
)

KINDS = (AUTOSCALERS, DISRUPTION_BUDGETS, QUOTAS, LIMIT_RANGES)
