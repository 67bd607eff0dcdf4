"""Problems whose origin is not where they hurt.

Ground truth names the origin: the database whose user lost a right, the name service, the node, the policy. Those that
suffer are propagation, from the origin up to the front door; the first of them is started anew by the oracle too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, ClassVar

from srearena.conductor.oracles.checks import Check, FreshPods
from srearena.conductor.oracles.localization import LocalizationOracle
from srearena.conductor.oracles.mitigation import MitigationOracle, usual_checks
from srearena.conductor.problems.injected import InjectedProblem
from srearena.conductor.problems.metadata import Entity


class OriginProblem(InjectedProblem):
    """An injected fault with an origin (`origin`, else what the fault is aimed at) and a path of `victims`."""

    origin: ClassVar[str] = ""
    origin_namespace: ClassVar[str | None] = None
    """Where the origin is; None is the application's namespace, "" none at all."""

    def __init__(self, app: str, service: str | Sequence[str], victims: Sequence[str] = (), **options: Any) -> None:
        super().__init__(app, service, **options)
        if self.origin:
            self.faulty_service = self.origin
        self.victims = tuple(victims)
        self.localization_oracle = LocalizationOracle(self, list(self.faulty_services))
        self.mitigation_oracle = MitigationOracle(self, checks=[*self._usual(), *self.more_checks()])

    def _usual(self) -> list[Check]:
        started_anew = tuple(dict.fromkeys((*self.faulty_services, *self.victims[:1])))
        return [check for check in usual_checks() if check.name != FreshPods.name] + [FreshPods(started_anew)]

    def more_checks(self) -> Iterable[Check]:
        """What this family asks beside the usual."""
        return [check() for check in self.also]

    @property
    def roots(self) -> Sequence[Entity]:
        place = self.namespace if self.origin_namespace is None else self.origin_namespace
        return tuple(Entity(self.root_kind, name, place) for name in self.faulty_services)

    @property
    def propagation(self) -> Sequence[tuple[Entity, Entity]]:
        path = [Entity("Deployment", name, self.namespace) for name in self.victims]
        first = [(root, path[0]) for root in self.roots] if path else []
        return (*first, *pairwise(path))
