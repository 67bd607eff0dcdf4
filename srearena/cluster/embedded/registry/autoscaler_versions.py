"""HorizontalPodAutoscalers between autoscaling/v2, in which they are kept, and v1.

v1 knows one metric, the CPU utilization. Everything else that v2 can say travels in annotations, so that a client of
the old version that reads an object and writes it back loses nothing.
"""

from __future__ import annotations

from typing import Any

import orjson

from srearena.cluster.embedded.go_text import json_text
from srearena.cluster.embedded.objects import Obj, annotations_of

_PREFIX = "autoscaling.alpha.kubernetes.io/"
METRICS = f"{_PREFIX}metrics"
BEHAVIOR = f"{_PREFIX}behavior"
CURRENT_METRICS = f"{_PREFIX}current-metrics"
CONDITIONS = f"{_PREFIX}conditions"
_TRAVELLING = frozenset({METRICS, BEHAVIOR, CURRENT_METRICS, CONDITIONS})
_SAME_STATUS = ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas")

# A metric of v1 is a flat record: each of its fields in v1's order, and where v2 keeps it. `{}` stands for `target`
# in a specification and `current` in a status; the prefix of a value's name differs between the two likewise.
_VALUE_FIELDS: dict[str, tuple[tuple[str, str], ...]] = {
    "object": (
        ("target", "describedObject"),
        ("metricName", "metric.name"),
        ("{}Value", "{}.value"),
        ("selector", "metric.selector"),
        ("averageValue", "{}.averageValue"),
    ),
    "pods": (
        ("metricName", "metric.name"),
        ("{}AverageValue", "{}.averageValue"),
        ("selector", "metric.selector"),
    ),
    "resource": (
        ("name", "name"),
        ("{}AverageUtilization", "{}.averageUtilization"),
        ("{}AverageValue", "{}.averageValue"),
    ),
    "containerResource": (
        ("name", "name"),
        ("{}AverageUtilization", "{}.averageUtilization"),
        ("{}AverageValue", "{}.averageValue"),
        ("container", "container"),
    ),
    "external": (
        ("metricName", "metric.name"),
        ("metricSelector", "metric.selector"),
        ("{}Value", "{}.value"),
        ("{}AverageValue", "{}.averageValue"),
    ),
}
# Amounts that v1 writes even when there are none.
_ALWAYS = frozenset(
    {
        ("object", "targetValue"),
        ("object", "currentValue"),
        ("pods", "targetAverageValue"),
        ("pods", "currentAverageValue"),
        ("external", "currentValue"),
        ("resource", "currentAverageValue"),
        ("containerResource", "currentAverageValue"),
    }
)


def to_v1(autoscaler: Obj) -> Obj:
    """A kept autoscaler as autoscaling/v1 shows it."""
    spec, status = autoscaler.get("spec") or {}, autoscaler.get("status") or {}
    metrics, current = spec.get("metrics") or [], status.get("currentMetrics") or []
    shown: Obj = {key: spec[key] for key in ("scaleTargetRef", "minReplicas", "maxReplicas") if key in spec}
    cpu = next((metric for metric in metrics if _is_cpu(metric)), None)
    if cpu is not None:
        shown["targetCPUUtilizationPercentage"] = cpu["resource"]["target"]["averageUtilization"]
    others = [_flat(metric, "target") for metric in metrics if not _is_cpu(metric)]
    annotations = {key: value for key, value in annotations_of(autoscaler).items() if key not in _TRAVELLING}
    if others:
        annotations[METRICS] = json_text(others)
    if current:
        annotations[CURRENT_METRICS] = json_text([_flat(metric, "current") for metric in current])
    if spec.get("behavior") is not None:
        annotations[BEHAVIOR] = json_text(_behavior_as_go(spec["behavior"]))
    if status.get("conditions"):
        annotations[CONDITIONS] = json_text([_condition(condition) for condition in status["conditions"]])
    return _written(autoscaler, "autoscaling/v1", annotations, shown, _status_v1(status, current))


def to_v2(autoscaler: Obj) -> Obj:
    """An autoscaling/v1 autoscaler as it is kept."""
    spec, status = autoscaler.get("spec") or {}, autoscaler.get("status") or {}
    travelling = annotations_of(autoscaler)
    kept: Obj = {key: spec[key] for key in ("scaleTargetRef", "minReplicas", "maxReplicas") if key in spec}
    metrics = [_nested(metric, "target") for metric in _listed(travelling.get(METRICS))]
    percentage = spec.get("targetCPUUtilizationPercentage")
    if percentage is not None:
        metrics.append(_cpu_metric("target", percentage))
    if metrics:
        kept["metrics"] = metrics
    behavior = _read(travelling.get(BEHAVIOR))
    if isinstance(behavior, dict) and behavior:
        kept["behavior"] = _behavior_from_go(behavior)
    annotations = {key: value for key, value in travelling.items() if key not in _TRAVELLING}
    return _written(autoscaler, "autoscaling/v2", annotations, kept, _status_v2(status, travelling))


def _written(autoscaler: Obj, version: str, annotations: dict[str, str], spec: Obj, status: Obj) -> Obj:
    metadata = {key: value for key, value in (autoscaler.get("metadata") or {}).items() if key != "annotations"}
    if annotations:
        metadata["annotations"] = annotations
    return {
        "kind": autoscaler.get("kind", "HorizontalPodAutoscaler"),
        "apiVersion": version,
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


def _is_cpu(metric: Obj) -> bool:
    resource = metric.get("resource") or {}
    return (
        metric.get("type") == "Resource"
        and resource.get("name") == "cpu"
        and (resource.get("target") or {}).get("averageUtilization") is not None
    )


def _cpu_metric(holder: str, percentage: int) -> Obj:
    amount: Obj = {"averageUtilization": percentage}
    if holder == "target":
        amount = {"type": "Utilization", **amount}
    return {"type": "Resource", "resource": {"name": "cpu", holder: amount}}


def _status_v1(status: Obj, current: list[Obj]) -> Obj:
    shown: Obj = {key: status[key] for key in _SAME_STATUS if key in status}
    shown.setdefault("currentReplicas", 0)
    shown.setdefault("desiredReplicas", 0)
    for metric in current:
        resource = metric.get("resource") or {}
        used = (resource.get("current") or {}).get("averageUtilization")
        if metric.get("type") == "Resource" and resource.get("name") == "cpu" and used is not None:
            shown["currentCPUUtilizationPercentage"] = used
    return shown


def _status_v2(status: Obj, travelling: dict[str, str]) -> Obj:
    kept: Obj = {key: status[key] for key in _SAME_STATUS if key in status}
    used = status.get("currentCPUUtilizationPercentage")
    if used is not None:
        kept["currentMetrics"] = [_cpu_metric("current", used)]
    current = [_nested(metric, "current") for metric in _listed(travelling.get(CURRENT_METRICS))]
    if current:
        kept["currentMetrics"] = current
    conditions = _listed(travelling.get(CONDITIONS))
    if conditions:
        kept["conditions"] = conditions
    return kept


def _flat(metric: Obj, holder: str) -> Obj:
    """A v2 metric in v1's form, under the names of a specification (`target`) or a status (`current`)."""
    shown: Obj = {"type": metric.get("type", "")}
    for kind, fields in _VALUE_FIELDS.items():
        source = metric.get(kind)
        if source is None:
            continue
        flat: Obj = {}
        for name, path in fields:
            value: Any = source
            for step in path.format(holder).split("."):
                value = value.get(step) if isinstance(value, dict) else None
            label = name.format(holder)
            if value is not None:
                flat[label] = value
            elif (kind, label) in _ALWAYS:
                flat[label] = "0"
        shown[kind] = flat
    return shown


def _nested(metric: Obj, holder: str) -> Obj:
    """A v1 metric in v2's form."""
    kept: Obj = {"type": metric.get("type", "")}
    for kind, fields in _VALUE_FIELDS.items():
        source = metric.get(kind)
        if not isinstance(source, dict):
            continue
        nested: Obj = {}
        for name, path in fields:
            value = source.get(name.format(holder))
            if value is not None:
                first, _, rest = path.format(holder).partition(".")
                if rest:
                    nested.setdefault(first, {})[rest] = value
                else:
                    nested[first] = value
        amount = nested.setdefault(holder, {})
        if holder == "target":
            nested[holder] = {"type": _target_type(amount), **amount}
        kept[kind] = nested
    return kept


def _target_type(amount: Obj) -> str:
    if "averageUtilization" in amount:
        return "Utilization"
    return "AverageValue" if "averageValue" in amount else "Value"


def _condition(condition: Obj) -> Obj:
    keys = ("type", "status", "lastTransitionTime", "reason", "message")
    return {key: condition.get(key) for key in keys if condition.get(key) or key == "lastTransitionTime"}


def _behavior_as_go(behavior: Obj) -> Obj:
    """The behaviour travels as the server's own structure, whose fields carry no JSON names."""
    return {key[0].upper() + key[1:]: _rules_as_go(behavior.get(key)) for key in ("scaleUp", "scaleDown")}


def _rules_as_go(rules: Obj | None) -> Obj | None:
    if rules is None:
        return None
    policies = rules.get("policies")
    return {
        "StabilizationWindowSeconds": rules.get("stabilizationWindowSeconds"),
        "SelectPolicy": rules.get("selectPolicy"),
        "Policies": policies
        and [
            {"Type": p.get("type", ""), "Value": p.get("value", 0), "PeriodSeconds": p.get("periodSeconds", 0)}
            for p in policies
        ],
        "Tolerance": rules.get("tolerance"),
    }


def _behavior_from_go(value: Any) -> Any:
    """The same back: every name in lower case at its beginning, nothing where nothing was said."""
    if isinstance(value, dict):
        return {key[:1].lower() + key[1:]: _behavior_from_go(item) for key, item in value.items() if item is not None}
    return [_behavior_from_go(item) for item in value] if isinstance(value, list) else value


def _read(text: str | None) -> Any:
    if not text:
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _listed(text: str | None) -> list[Obj]:
    """The records in an annotation; what cannot be read is left aside, as the real conversion does."""
    found = _read(text)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
