"""PodDisruptionBudgets."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.strategies.parts import fill, part
from srearena.cluster.embedded.registry.strategy import Strategy, WriteContext

_COUNTS = {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}


def _default(obj: Obj) -> None:
    part(obj, "spec")
    fill(part(obj, "status"), _COUNTS)


def _prepare_status(new: Obj, old: Obj, context: WriteContext) -> None:
    new["status"] = {**_COUNTS, **(new.get("status") or {})}


STRATEGIES = {
    "poddisruptionbudgets.policy": Strategy(default=_default, prepare_status=_prepare_status),
}
