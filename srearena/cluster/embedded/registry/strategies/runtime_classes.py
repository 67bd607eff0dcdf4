"""RuntimeClasses."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.strategies import checks
from srearena.cluster.embedded.registry.strategies.amounts import reading, settle
from srearena.cluster.embedded.registry.strategies.checks import Problems
from srearena.cluster.embedded.registry.strategies.parts import items
from srearena.cluster.embedded.registry.strategies.pod_scheduling import tolerations
from srearena.cluster.embedded.registry.strategies.requirements import container_requirements
from srearena.cluster.embedded.registry.strategy import Strategy


def _default(obj: Obj) -> None:
    settle(obj.get("overhead"), "podFixed")


def _validate(obj: Obj) -> Problems:
    problems: Problems = []
    checks.label(problems, "handler", obj.get("handler") or "")
    overhead, scheduling = obj.get("overhead"), obj.get("scheduling")
    if overhead is not None:
        container_requirements(problems, "overhead", {"limits": overhead.get("podFixed")})
    if scheduling is not None:
        checks.labels(problems, "scheduling.nodeSelector", scheduling.get("nodeSelector"))
        tolerations(problems, "scheduling.tolerations.tolerations", items(scheduling, "tolerations"))
    return problems


def _validate_update(new: Obj, old: Obj) -> Problems:
    problems: Problems = []
    checks.immutable(problems, "handler", new.get("handler") or "", old.get("handler") or "")
    return problems


STRATEGIES = {
    "runtimeclasses.node.k8s.io": Strategy(
        default=reading(_default), validate=_validate, validate_update=_validate_update
    ),
}
