"""Unread metric: an autoscaler reports that it is active, and does not read what it should scale by.

How it would win: beside the metric that cannot be read, one that can keeps the condition `ScalingActive` true; and an
autoscaler that does not find its target keeps a condition that was written by hand.
What stops it: the autoscaler must be able to scale its workload, and must report the value of its own metric.
"""

from __future__ import annotations

from srearena.conductor.validity.scene import Scene
from srearena.conductor.validity.scripts import Play, Script
from srearena.service.kubernetes import Obj

_RESOURCE = "horizontalpodautoscalers.autoscaling"
_WAIT = 60.0
"""Seconds: a few rounds of the autoscaler's controller, 15 s each."""


class UnreadMetric(Script):
    def _autoscalers(self, scene: Scene) -> list[Obj]:
        """The autoscalers of the workloads at fault that cannot read their metric."""
        return [
            scaler
            for scaler in scene.broken.of(_RESOURCE, namespace=scene.namespace)
            if scaler["spec"]["scaleTargetRef"]["name"] in scene.culprits
            and any(
                (one["type"], one["status"]) == ("ScalingActive", "False")
                for one in (scaler.get("status") or {}).get("conditions") or ()
            )
        ]

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and bool(self._autoscalers(scene))


class AnotherMetric(UnreadMetric):
    name = "autoscaler with another metric"

    def play(self, scene: Scene) -> Play:
        memory = {"name": "memory", "target": {"type": "AverageValue", "averageValue": "64Gi"}}
        lines = [
            scene.patch(
                "hpa",
                scaler["metadata"]["name"],
                {"spec": {"metrics": [*scaler["spec"]["metrics"], {"type": "Resource", "resource": memory}]}},
                kind="merge",
            )
            for scaler in self._autoscalers(scene)
        ]
        return Play("\n".join(lines), wait=_WAIT)


class AnotherTarget(UnreadMetric):
    """The target does not exist, and the status is written by hand."""

    name = "autoscaler without its target"

    def play(self, scene: Scene) -> Play:
        lines = []
        for scaler in self._autoscalers(scene):
            name = scaler["metadata"]["name"]
            current = {"name": "cpu", "current": {"averageUtilization": 50, "averageValue": "50m"}}
            status = {
                "conditions": [
                    {"type": kind, "status": "True", "reason": "ValidMetricFound"}
                    for kind in ("AbleToScale", "ScalingActive")
                ],
                "currentMetrics": [{"type": "Resource", "resource": current}],
                "desiredReplicas": 1,
            }
            target = {"spec": {"scaleTargetRef": {"kind": "StatefulSet"}}}
            lines.append(scene.patch("hpa", name, target, kind="merge"))
            lines.append(scene.patch("hpa", f"{name} --subresource=status", {"status": status}, kind="merge"))
        return Play("\n".join(lines), wait=_WAIT)


SCRIPTS = (AnotherMetric(), AnotherTarget())
