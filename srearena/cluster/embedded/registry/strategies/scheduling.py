"""PriorityClasses."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.strategies.parts import fill
from srearena.cluster.embedded.registry.strategy import Strategy


def _default(obj: Obj) -> None:
    fill(obj, {"preemptionPolicy": "PreemptLowerPriority"})


STRATEGIES = {"priorityclasses.scheduling.k8s.io": Strategy(default=_default)}
