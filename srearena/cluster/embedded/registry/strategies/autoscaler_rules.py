"""What a HorizontalPodAutoscaler may say."""

from __future__ import annotations

from typing import Any

from srearena.cluster.embedded.objects import Obj, dig
from srearena.cluster.embedded.quantity import parse
from srearena.cluster.embedded.registry import names
from srearena.cluster.embedded.registry.errors import FieldError
from srearena.cluster.embedded.registry.strategies import checks
from srearena.cluster.embedded.registry.strategies.checks import Problems
from srearena.cluster.embedded.registry.strategies.parts import items
from srearena.cluster.embedded.registry.strategies.resource_names import container_name_errors

SOURCES = {
    "Object": "object",
    "External": "external",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}
"""The field of a metric that belongs to each type."""

_LONGEST_WINDOW = 3600
_LONGEST_PERIOD = 1800
_SELECT_POLICIES = ("Disabled", "Max", "Min")
_TARGETS = ("Utilization", "Value", "AverageValue")


def validate_autoscaler(obj: Obj) -> Problems:
    problems: Problems = []
    spec = obj.get("spec") or {}
    least, most = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    if least is not None and least < 1:
        problems.append(FieldError.invalid("spec.minReplicas", least, "must be greater than or equal to 1"))
    if most < 1:
        problems.append(FieldError.invalid("spec.maxReplicas", most, "must be greater than 0"))
    if least is not None and most < least:
        text = "must be greater than or equal to `minReplicas`"
        problems.append(FieldError.invalid("spec.maxReplicas", most, text))
    _reference(problems, "spec.scaleTargetRef", spec.get("scaleTargetRef") or {}, needs_group=True)
    metrics = items(spec, "metrics")
    for index, metric in enumerate(metrics):
        _metric(problems, f"spec.metrics[{index}]", metric)
    if least == 0 and not any(metric.get("type") in ("Object", "External") for metric in metrics):
        text = "must specify at least one Object or External metric to support scaling to zero replicas"
        problems.append(FieldError.forbidden("spec.metrics", text))
    for key in ("scaleUp", "scaleDown"):
        rules = dig(spec, "behavior", key)
        if rules is not None:
            _rules(problems, f"spec.behavior.{key}", rules)
    return problems


def _reference(problems: Problems, path: str, reference: Obj, *, needs_group: bool) -> None:
    for key in ("kind", "name"):
        value = reference.get(key) or ""
        if checks.required(problems, f"{path}.{key}", value):
            checks.invalid_each(problems, f"{path}.{key}", value, names.path_segment_errors(value))
    version = reference.get("apiVersion") or ""
    if version.count("/") > 1:
        text = f"unexpected GroupVersion string: {version}"
        problems.append(FieldError.invalid(f"{path}.apiVersion", version, text))
    elif needs_group and "/" not in version and version != "v1":
        problems.append(FieldError.invalid(f"{path}.apiVersion", version, "apiVersion must specify API group"))


def _metric(problems: Problems, path: str, metric: Obj) -> None:
    kind = metric.get("type") or ""
    if not kind:
        problems.append(FieldError.required(f"{path}.type", "must specify a metric source type"))
    if kind not in SOURCES:
        problems.append(FieldError.not_supported(f"{path}.type", kind, sorted(SOURCES)))
    sources = [key for key in SOURCES.values() if metric.get(key) is not None]
    if sources:
        _source(problems, f"{path}.{sources[0]}", sources[0], metric[sources[0]])
    expected = SOURCES.get(kind, "")
    if expected and expected not in sources:
        text = "must populate information for the given metric source"
        problems.append(FieldError.required(f"{path}.{expected}", text))
    if len(sources) != 1:
        for key in sources:
            if key != expected:
                text = "must populate the given metric source only"
                problems.append(FieldError.forbidden(f"{path}.{key}", text))


def _source(problems: Problems, path: str, kind: str, source: Obj) -> None:
    target = source.get("target") or {}
    if kind in ("resource", "containerResource"):
        _resource_source(problems, path, kind, source)
    else:
        if kind == "object":
            _reference(problems, f"{path}.describedObject", source.get("describedObject") or {}, needs_group=False)
        name = dig(source, "metric", "name", default="")
        if checks.required(problems, f"{path}.metric.name", name, "must specify a metric name"):
            checks.invalid_each(problems, f"{path}.metric.name", name, names.path_segment_errors(name))
    _target(problems, f"{path}.target", target)
    _required_target(problems, f"{path}.target", kind, target)


def _resource_source(problems: Problems, path: str, kind: str, source: Obj) -> None:
    name = source.get("name") or ""
    if checks.required(problems, f"{path}.name", name, "must specify a resource name") and kind != "resource":
        checks.invalid_each(problems, f"{path}.name", name, container_name_errors(name))
    if kind == "containerResource":
        container = source.get("container") or ""
        if checks.required(problems, f"{path}.container", container, "must specify a container"):
            checks.label(problems, f"{path}.container", container)


def _target(problems: Problems, path: str, target: Obj) -> None:
    kind = target.get("type") or ""
    if not kind:
        problems.append(FieldError.required(f"{path}.type", "must specify a metric target type"))
    if kind not in _TARGETS:
        text = "must be either Utilization, Value, or AverageValue"
        problems.append(FieldError.invalid(f"{path}.type", kind, text))
    for key in ("value", "averageValue"):
        if target.get(key) is not None and parse(target[key]).sign != 1:
            problems.append(FieldError.invalid(f"{path}.{key}", target[key], "must be positive"))
    share = target.get("averageUtilization")
    if share is not None and share < 1:
        problems.append(FieldError.invalid(f"{path}.averageUtilization", share, "must be greater than 0"))


def _required_target(problems: Problems, path: str, kind: str, target: Obj) -> None:
    whole, each, share = (target.get(key) is not None for key in ("value", "averageValue", "averageUtilization"))
    if kind in ("resource", "containerResource"):
        if not share and not each:
            text = "must set either a target raw value or a target utilization"
            problems.append(FieldError.required(f"{path}.averageUtilization", text))
        if share and each:
            text = "may not set both a target raw value and a target utilization"
            problems.append(FieldError.forbidden(f"{path}.averageValue", text))
    elif kind == "pods":
        if not each:
            text = "must specify a positive target averageValue"
            problems.append(FieldError.required(f"{path}.averageValue", text))
    elif not whole and not each:
        external = "must set either a target value for metric or a per-pod target"
        text = external if kind == "external" else "must set either a target value or averageValue"
        problems.append(FieldError.required(f"{path}.averageValue", text))
    elif kind == "external" and whole and each:
        text = "may not set both a target value for metric and a per-pod target"
        problems.append(FieldError.forbidden(f"{path}.value", text))


def _rules(problems: Problems, path: str, rules: Obj) -> None:
    window: Any = rules.get("stabilizationWindowSeconds")
    if window is not None and window < 0:
        text = "must be greater than or equal to zero"
        problems.append(FieldError.invalid(f"{path}.stabilizationWindowSeconds", window, text))
    if window is not None and window > _LONGEST_WINDOW:
        text = f"must be less than or equal to {_LONGEST_WINDOW}"
        problems.append(FieldError.invalid(f"{path}.stabilizationWindowSeconds", window, text))
    if rules.get("selectPolicy") is not None:
        checks.one_of(problems, f"{path}.selectPolicy", rules["selectPolicy"], _SELECT_POLICIES)
    if not rules.get("policies"):
        problems.append(FieldError.required(f"{path}.policies", "must specify at least one Policy"))
    for index, policy in enumerate(items(rules, "policies")):
        where = f"{path}.policies[{index}]"
        checks.one_of(problems, f"{where}.type", policy.get("type") or "", ("Percent", "Pods"))
        checks.positive(problems, f"{where}.value", policy.get("value"))
        period = policy.get("periodSeconds") or 0
        checks.positive(problems, f"{where}.periodSeconds", period)
        if period > _LONGEST_PERIOD:
            text = f"must be less than or equal to {_LONGEST_PERIOD}"
            problems.append(FieldError.invalid(f"{where}.periodSeconds", period, text))
    if rules.get("tolerance") is not None and parse(rules["tolerance"]).nano < 0:
        problems.append(FieldError.invalid(f"{path}.tolerance", rules["tolerance"], checks.NEGATIVE))
