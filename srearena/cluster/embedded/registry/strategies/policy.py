"""PodDisruptionBudgets."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry import names
from srearena.cluster.embedded.registry.errors import FieldError
from srearena.cluster.embedded.registry.strategies import checks
from srearena.cluster.embedded.registry.strategies.checks import Problems
from srearena.cluster.embedded.registry.strategies.parts import fill, part
from srearena.cluster.embedded.registry.strategy import Strategy, WriteContext

_COUNTS = {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}


def _default(obj: Obj) -> None:
    part(obj, "spec")
    fill(part(obj, "status"), _COUNTS)


def _prepare_status(new: Obj, old: Obj, context: WriteContext) -> None:
    new["status"] = {**_COUNTS, **(new.get("status") or {})}


def _validate(obj: Obj) -> Problems:
    problems: Problems = []
    spec = obj.get("spec") or {}
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if least is not None and most is not None:
        shown = {
            "MinAvailable": least,
            "Selector": checks.selector_in_order(spec.get("selector")),
            "MaxUnavailable": most,
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        problems.append(FieldError.invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set"))
    for key, value in (("minAvailable", least), ("maxUnavailable", most)):
        if value is not None:
            checks.positive_number_or_percent(problems, f"spec.{key}", value)
            checks.at_most_hundred_percent(problems, f"spec.{key}", value)
    checks.selector(problems, "spec.selector", spec.get("selector"))
    if spec.get("unhealthyPodEvictionPolicy") is not None:
        supported = ("AlwaysAllow", "IfHealthyBudget")
        checks.one_of(problems, "spec.unhealthyPodEvictionPolicy", spec["unhealthyPodEvictionPolicy"], supported)
    return problems


STRATEGIES = {
    "poddisruptionbudgets.policy": Strategy(
        default=_default, prepare_status=_prepare_status, validate=_validate, name_errors=names.path_segment_errors
    ),
}
