"""Leases: the heartbeat of nodes and the way components elect a leader."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.errors import FieldError
from srearena.cluster.embedded.registry.strategies.checks import NEGATIVE, Problems
from srearena.cluster.embedded.registry.strategies.parts import part
from srearena.cluster.embedded.registry.strategy import Strategy


def _default(obj: Obj) -> None:
    part(obj, "spec")


def _validate(obj: Obj) -> Problems:
    problems: Problems = []
    spec = obj.get("spec") or {}
    seconds, count = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if seconds is not None and seconds <= 0:
        problems.append(FieldError.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
    if count is not None and count < 0:
        problems.append(FieldError.invalid("spec.leaseTransitions", count, NEGATIVE))
    return problems


STRATEGIES = {"leases.coordination.k8s.io": Strategy(default=_default, validate=_validate)}
