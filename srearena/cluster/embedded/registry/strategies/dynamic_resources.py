"""Claims on devices. They are kept and shown; nothing here allocates devices."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.strategies import checks
from srearena.cluster.embedded.registry.strategies.checks import Problems
from srearena.cluster.embedded.registry.strategies.parts import fill_empty, items, part
from srearena.cluster.embedded.registry.strategy import Strategy

GROUP = "resource.k8s.io"


def _default_requests(spec: Obj) -> None:
    for request in items(spec.get("devices"), "requests"):
        exact = request.get("exactly")
        for wanted in (*((exact,) if exact is not None else ()), *items(request, "firstAvailable")):
            fill_empty(wanted, {"allocationMode": "ExactCount"})
            if wanted["allocationMode"] == "ExactCount":
                fill_empty(wanted, {"count": 1})


def _default_claim(obj: Obj) -> None:
    _default_requests(part(obj, "spec"))
    part(obj, "status")


def _default_template(obj: Obj) -> None:
    template = part(obj, "spec")
    part(template, "metadata")
    _default_requests(part(template, "spec"))


def _spec_is_fixed(new: Obj, old: Obj) -> Problems:
    problems: Problems = []
    checks.immutable(problems, "spec", new.get("spec"), old.get("spec"))
    return problems


STRATEGIES = {
    f"resourceclaims.{GROUP}": Strategy(default=_default_claim, validate_update=_spec_is_fixed),
    f"resourceclaimtemplates.{GROUP}": Strategy(default=_default_template, validate_update=_spec_is_fixed),
}
