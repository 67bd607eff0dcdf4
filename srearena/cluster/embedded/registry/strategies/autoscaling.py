"""HorizontalPodAutoscalers, kept as autoscaling/v2."""

from __future__ import annotations

from typing import Any

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.strategies.amounts import reading, settle_one
from srearena.cluster.embedded.registry.strategies.autoscaler_rules import SOURCES, validate_autoscaler
from srearena.cluster.embedded.registry.strategies.parts import fill, part
from srearena.cluster.embedded.registry.strategy import Strategy, WriteContext

CPU_UTILIZATION = 80


def _scale_up() -> Obj:
    return {
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Max",
        "policies": [
            {"type": "Pods", "value": 4, "periodSeconds": 15},
            {"type": "Percent", "value": 100, "periodSeconds": 15},
        ],
    }


def _scale_down() -> Obj:
    return {"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}


def _default(obj: Obj) -> None:
    spec = part(obj, "spec")
    fill(spec, {"minReplicas": 1})
    if not spec.get("metrics"):
        usual = {"type": "Utilization", "averageUtilization": CPU_UTILIZATION}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": usual}}]
    for metric in spec["metrics"]:
        for key in SOURCES.values():
            target = (metric.get(key) or {}).get("target")
            if target:
                settle_one(target, "value")
                settle_one(target, "averageValue")
    behavior = spec.get("behavior")
    if behavior is not None:
        fill(part(behavior, "scaleUp"), _scale_up())
        fill(part(behavior, "scaleDown"), _scale_down())
        for rules in (behavior["scaleUp"], behavior["scaleDown"]):
            settle_one(rules, "tolerance")
    _default_status(part(obj, "status"))


def _default_status(status: Obj) -> None:
    status.setdefault("desiredReplicas", 0)
    status.setdefault("currentMetrics", None)


def _prepare_status(new: Obj, old: Obj, context: WriteContext) -> None:
    status: dict[str, Any] = new.get("status") or {}
    if "desiredReplicas" not in status or "currentMetrics" not in status:
        new["status"] = {"desiredReplicas": 0, "currentMetrics": None, **status}


STRATEGIES = {
    "horizontalpodautoscalers.autoscaling": Strategy(
        default=reading(_default), prepare_status=_prepare_status, validate=validate_autoscaler
    ),
}
