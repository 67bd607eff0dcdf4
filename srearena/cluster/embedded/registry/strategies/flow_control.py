"""FlowSchemas and priority levels. They are kept and shown; nothing here queues requests by them."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.errors import FieldError
from srearena.cluster.embedded.registry.strategies import checks
from srearena.cluster.embedded.registry.strategies.checks import Problems
from srearena.cluster.embedded.registry.strategies.parts import fill, fill_empty, part
from srearena.cluster.embedded.registry.strategy import Strategy

GROUP = "flowcontrol.apiserver.k8s.io"
_LOWEST_PRECEDENCE = 10000


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


def _validate_schema(obj: Obj) -> Problems:
    problems: Problems = []
    spec = obj.get("spec") or {}
    precedence = spec.get("matchingPrecedence") or 0
    if precedence <= 0:
        problems.append(FieldError.invalid("spec.matchingPrecedence", precedence, "must be a positive value"))
    if precedence > _LOWEST_PRECEDENCE:
        text = f"must not be greater than {_LOWEST_PRECEDENCE}"
        problems.append(FieldError.invalid("spec.matchingPrecedence", precedence, text))
    level = (spec.get("priorityLevelConfiguration") or {}).get("name") or ""
    where = "spec.priorityLevelConfiguration.name"
    if checks.required(problems, where, level, "must reference a priority level"):
        checks.subdomain(problems, where, level)
    return problems


STRATEGIES = {
    f"flowschemas.{GROUP}": Strategy(default=_default_schema, validate=_validate_schema),
    f"prioritylevelconfigurations.{GROUP}": Strategy(default=_default_level),
}
