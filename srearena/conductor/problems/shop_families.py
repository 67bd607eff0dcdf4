"""The Astronomy Shop's members of families that other applications have too."""

from __future__ import annotations

from typing import Any

from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.configuration import DuplicatePvcMounts
from srearena.conductor.problems.containers import InitContainerDependencyHang, ServicePortConflict, SidecarPortConflict
from srearena.conductor.problems.names import WrongDnsPolicy
from srearena.conductor.problems.probes import LivenessProbeMisconfiguration, ReadinessProbeMisconfiguration
from srearena.conductor.problems.registry import problem
from srearena.conductor.problems.services import MissingService, WrongServiceSelector

_SHOP = "astronomy_shop"
_MEMBERS: tuple[tuple[type[Problem], dict[str, Any]], ...] = (
    (MissingService, {"service": "ad"}),
    (WrongServiceSelector, {"service": "frontend"}),
    (WrongDnsPolicy, {"service": "frontend"}),
    (LivenessProbeMisconfiguration, {"service": "frontend"}),
    (ReadinessProbeMisconfiguration, {"service": "frontend"}),
    (SidecarPortConflict, {"service": "frontend"}),
    (ServicePortConflict, {"service": "ad"}),
    (InitContainerDependencyHang, {"service": "frontend"}),
    (DuplicatePvcMounts, {"service": "frontend"}),
)
for _family, _arguments in _MEMBERS:
    problem(f"{_family.family}_{_SHOP}", app=_SHOP, **_arguments)(_family)
