"""FlowSchemas and priority levels. They are kept and shown; nothing here queues requests by them."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.strategies.parts import fill, fill_empty, part
from srearena.cluster.embedded.registry.strategy import Strategy

GROUP = "flowcontrol.apiserver.k8s.io"


def _default_schema(obj: Obj) -> None:
    fill_empty(part(obj, "spec"), {"matchingPrecedence": 1000})
    part(obj, "status")


def _default_level(obj: Obj) -> None:
    spec = part(obj, "spec")
    if spec.get("exempt") is not None:
        fill(spec["exempt"], {"nominalConcurrencyShares": 0, "lendablePercent": 0})
    limited = spec.get("limited")
    if limited is not None:
        fill(limited, {"nominalConcurrencyShares": 30, "lendablePercent": 0})
        queuing = part(limited, "limitResponse").get("queuing")
        if queuing is not None:
            fill_empty(queuing, {"handSize": 8, "queues": 64, "queueLengthLimit": 50})
    part(obj, "status")


STRATEGIES = {
    f"flowschemas.{GROUP}": Strategy(default=_default_schema),
    f"prioritylevelconfigurations.{GROUP}": Strategy(default=_default_level),
}
