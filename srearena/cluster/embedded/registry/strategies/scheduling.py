"""PriorityClasses."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj, name_of
from srearena.cluster.embedded.registry.errors import FieldError
from srearena.cluster.embedded.registry.strategies import checks
from srearena.cluster.embedded.registry.strategies.checks import Problems
from srearena.cluster.embedded.registry.strategies.parts import fill
from srearena.cluster.embedded.registry.strategies.pod_spec import PREEMPTION_POLICIES
from srearena.cluster.embedded.registry.strategy import Strategy

HIGHEST = 1_000_000_000
SYSTEM_CLASSES = {"system-cluster-critical": 2 * HIGHEST, "system-node-critical": 2 * HIGHEST + 1000}
_SYSTEM_PREFIX = "system-"


def _default(obj: Obj) -> None:
    fill(obj, {"preemptionPolicy": "PreemptLowerPriority"})


def _validate(obj: Obj) -> Problems:
    problems: Problems = []
    name, value = name_of(obj), obj.get("value") or 0
    if name.startswith(_SYSTEM_PREFIX):
        problem = _system_class_problem(name, value, bool(obj.get("globalDefault")))
        if problem:
            text = f"priority class names with '{_SYSTEM_PREFIX}' prefix are reserved for system use only"
            problems.append(FieldError.forbidden("metadata.name", f"{text}. error: {problem}"))
    elif value > HIGHEST:
        text = f"maximum allowed value of a user defined priority is {HIGHEST}"
        problems.append(FieldError.forbidden("value", text))
    if obj.get("preemptionPolicy") is not None:
        checks.required_one_of(problems, "preemptionPolicy", obj["preemptionPolicy"], PREEMPTION_POLICIES)
    return problems


def _system_class_problem(name: str, value: int, is_default: bool) -> str:
    if name not in SYSTEM_CLASSES:
        return f"{name} is not a known system priority class"
    if value != SYSTEM_CLASSES[name]:
        return f"value of {name} PriorityClass must be {SYSTEM_CLASSES[name]}"
    return f"globalDefault of {name} PriorityClass must be false" if is_default else ""


def _validate_update(new: Obj, old: Obj) -> Problems:
    problems: Problems = []
    if (new.get("value") or 0) != (old.get("value") or 0):
        problems.append(FieldError.forbidden("value", "may not be changed in an update."))
    checks.immutable(problems, "preemptionPolicy", new.get("preemptionPolicy"), old.get("preemptionPolicy"))
    return problems


STRATEGIES = {
    "priorityclasses.scheduling.k8s.io": Strategy(
        default=_default, validate=_validate, validate_update=_validate_update
    ),
}
