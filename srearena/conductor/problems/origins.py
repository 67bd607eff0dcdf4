"""Problems whose origin differs from the components that show symptoms.

The ground truth names the origin: the database whose user lost a right, DNS, the node, the policy. The affected
components are the propagation, from the origin up to the frontend; the oracle also restarts the first of them. Where
the changed object is no workload itself, the target of the fault misbehaves because of it and belongs to the origin.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, ClassVar

from srearena.conductor.oracles.checks import Check, FreshPods
from srearena.conductor.oracles.mitigation import MitigationOracle, usual_checks
from srearena.conductor.problems.injected import InjectedProblem
from srearena.conductor.problems.metadata import Entity


class OriginProblem(InjectedProblem):
    """An injected fault with an origin (`origin`, or the target of the fault) and a path of `victims`."""

    origin: ClassVar[str] = ""
    origin_namespace: ClassVar[str | None] = None
    """The namespace of the origin; None for the application's, "" for a cluster-scoped object."""

    def __init__(self, app: str, service: str | Sequence[str], victims: Sequence[str] = (), **options: Any) -> None:
        super().__init__(app, service, **options)
        if self.origin:
            self.faulty_service = self.origin
        self.victims = tuple(victims)
        self.mitigation_oracle = MitigationOracle(self, checks=[*self._usual(), *self.more_checks()])

    def _usual(self) -> list[Check]:
        restarted = tuple(dict.fromkeys((*self.faulty_services, *self.victims[:1])))
        return [check for check in usual_checks() if check.name != FreshPods.name] + [FreshPods(restarted)]

    def more_checks(self) -> Iterable[Check]:
        """Additional checks of this family."""
        return [check() for check in self.also]

    def root(self, service: str) -> Entity:
        namespace = self.namespace if self.origin_namespace is None else self.origin_namespace
        name = self.origin or self._substitute(self.root_name, service)
        return Entity(self.root_kind, name, namespace)

    @property
    def affected_components(self) -> frozenset[str]:
        return super().affected_components | {*self.victims}

    @property
    def propagation(self) -> Sequence[tuple[Entity, Entity]]:
        path = [Entity("Deployment", name, self.namespace) for name in self.victims]
        first = [(root, path[0]) for root in self.roots] if path else []
        return (*first, *pairwise(path))
