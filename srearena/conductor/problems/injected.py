"""Problems that consist of one registered fault. A family is a small class.

    @problem("missing_service_hotel_reservation", app="hotel_reservation", service="mongodb-rate")
    class MissingService(InjectedProblem):
        fault = "missing_service"
        explanation = "The Service {service} was deleted."
        remedy = "kubectl -n {ns} expose deployment {service} ..."

`{ns}`, `{service}` and the options of the fault are substituted in `explanation` and `remedy`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from srearena.conductor.oracles.checks import Check
from srearena.conductor.oracles.localization import LocalizationOracle
from srearena.conductor.oracles.mitigation import MitigationOracle
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.metadata import Entity
from srearena.generators.fault.base import Fault, FaultError, FaultInjector
from srearena.service.apps import find_application
from srearena.utils.decorators import mark_fault_injected

UNDO = "kubectl -n {ns} rollout undo deployment/{service}"


class InjectedProblem(Problem):
    fault: ClassVar[str]
    root_kind: ClassVar[str] = "Deployment"
    also: ClassVar[tuple[Callable[[], Check], ...]] = ()
    """Factories of additional checks of this family."""

    def __init__(self, app: str, service: str | Sequence[str], **options: Any) -> None:
        self.app = find_application(app)
        self.services = (service,) if isinstance(service, str) else tuple(service)
        self.faulty_service = service if isinstance(service, str) else list(service)
        self.options = options
        self.explanation = self._substitute(type(self).explanation)
        self.remedy = self._remedy()
        self.localization_oracle = LocalizationOracle(problem=self, expected=list(self.services))
        self.mitigation_oracle = MitigationOracle(problem=self, also=[check() for check in self.also])
        self._faults: list[Fault] = []

    def _substitute(self, text: str, service: str | None = None) -> str:
        values = {"ns": self.app.namespace, "service": service or ", ".join(self.services), **self.options}
        for key, value in values.items():
            text = text.replace(f"{{{key}}}", str(value))
        return text

    def _remedy(self) -> str:
        return "\n".join(self._substitute(type(self).remedy, service) for service in self.services)

    @property
    def roots(self) -> Sequence[Entity]:
        return tuple(Entity(self.root_kind, name, self.namespace) for name in self.services)

    @mark_fault_injected
    def inject_fault(self) -> None:
        injector = FaultInjector(self.namespace, self.cluster, self.kubernetes)
        self._faults = [injector.create(self.fault, name, **self.options) for name in self.services]
        for fault in self._faults:
            fault.inject()
            if not fault.in_place():
                raise FaultError(f"{self.id}: the fault did not take hold")

    @mark_fault_injected
    def recover_fault(self) -> None:
        for fault in reversed(self._faults):
            fault.recover()
