"""Problems that consist of one registered fault. A family is a small class.

    @problem("missing_service_hotel_reservation", app="hotel_reservation", service="mongodb-rate")
    class MissingService(InjectedProblem):
        fault = "missing_service"
        explanation = "The Service {service} was deleted."
        remedy = "kubectl -n {ns} expose deployment {service} ..."

`{ns}`, `{service}` and the options of the fault are substituted in `explanation` and `remedy`, and `{restore}` in a
remedy by a JSON patch that gives the fields `restores` of the Deployment the values of the application's manifests. A
targeted patch repairs whatever revisions the rollout history has, which `kubectl rollout undo` does not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from srearena.conductor.oracles.checks import Check
from srearena.conductor.oracles.localization import LocalizationOracle
from srearena.conductor.oracles.mitigation import MitigationOracle
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.metadata import WORKLOAD_KINDS, Entity, Origin
from srearena.generators.fault.base import Fault, FaultError, FaultInjector
from srearena.generators.fault.edits import edits_of
from srearena.service.apps import find_application
from srearena.service.kubernetes import Obj
from srearena.utils.decorators import mark_fault_injected

RESTORE = "kubectl -n {ns} patch deployment {service} --type=json -p '{restore}'"
POD = "/spec/template/spec"
CONTAINER = f"{POD}/containers/0"


_STORES = re.compile(r"\b(mongodb|memcached|redis|valkey|service)\b")


def component_stem(name: str) -> str:
    """The name that a store and its client share: `media` of `media-mongodb` and `media-service`."""
    return _STORES.sub("", name).strip("-")


class InjectedProblem(Problem):
    fault: ClassVar[str]
    root_kind: ClassVar[str] = "Deployment"
    """The kind of the changed object that the ground truth names first."""
    root_name: ClassVar[str] = "{service}"
    also_changed: ClassVar[tuple[str, ...]] = ()
    """Further objects that must be restored as well, as `Kind/name` or `namespace/Kind/name`."""
    misbehaving: ClassVar[tuple[str, ...] | None] = None
    """The components that misbehave because of the changed objects; None for `service`, where these are no workload."""
    contributing: ClassVar[tuple[str, ...]] = ()
    """Objects that an answer may name in addition."""
    also: ClassVar[tuple[Callable[[], Check], ...]] = ()
    """Factories of additional checks of this family."""
    restores: ClassVar[tuple[str, ...]] = ()
    """JSON pointers to the fields of the Deployment that the fault changes."""

    def __init__(self, app: str, service: str | Sequence[str], **options: Any) -> None:
        self.app = find_application(app)
        self.services = (service,) if isinstance(service, str) else tuple(service)
        self.faulty_service = service if isinstance(service, str) else list(service)
        self.options = options
        self.explanation = self._substitute(type(self).explanation)
        self.remedy = self._remedy()
        self.localization_oracle = LocalizationOracle(self)
        self.mitigation_oracle = MitigationOracle(problem=self, also=[check() for check in self.also])
        self._faults: list[Fault] = []

    def _substitute(self, text: str, service: str | None = None) -> str:
        values = {"ns": self.app.namespace, "service": service or ", ".join(self.services), **self.options}
        for key, value in values.items():
            text = text.replace(f"{{{key}}}", str(value))
        if "{restore}" in text:
            text = text.replace("{restore}", self.restoring_patch(values["service"], *self.restores))
        return text

    def declared(self, service: str) -> Obj:
        """The Deployment as its authors declared it; empty where the application has none of that name."""
        return next((m.obj for m in self.app.manifests if m.kind == "Deployment" and m.name == service), {})

    def restoring_patch(self, service: str, *pointers: str) -> str:
        """A JSON patch, for a shell's single quotes, that gives fields of a Deployment their declared values."""
        patch: list[Obj] = []
        for pointer in pointers:
            value: Any = self.declared(service)
            for key in pointer.strip("/").split("/"):
                value = value[int(key)] if isinstance(value, list) else (value or {}).get(key)
            operation = {"op": "remove"} if value is None else {"op": "add", "value": value}
            patch.append({**operation, "path": pointer})
        return json.dumps(patch).replace("'", "\\u0027")

    def _remedy(self) -> str:
        return "\n".join(self._substitute(type(self).remedy, service) for service in self.services)

    def root(self, service: str) -> Entity:
        """The changed object that the ground truth names first."""
        return Entity.parse(f"{self.root_kind}/{self._substitute(self.root_name, service)}", self.namespace)

    @property
    def origins(self) -> Sequence[Origin]:
        return tuple(self.origin_at(self.root(service), service) for service in self.services)

    def origin_at(self, root: Entity, service: str) -> Origin:
        misbehaving = self.misbehaving
        if misbehaving is None:
            misbehaving = () if root.kind in WORKLOAD_KINDS else ("Deployment/{service}",)
        return Origin(
            (root, *self._entities(self.also_changed, service)),
            self._entities(misbehaving, service),
            self._entities(self.contributing, service),
        )

    def _entities(self, references: Sequence[str], service: str) -> tuple[Entity, ...]:
        return tuple(Entity.parse(self._substitute(text, service), self.namespace) for text in references)

    @mark_fault_injected
    def inject_fault(self) -> None:
        injector = FaultInjector(self.namespace, self.cluster, self.kubernetes)
        self._faults = [injector.create(self.fault, name, **self.options) for name in self.services]
        for fault in self._faults:
            fault.inject()
            if not fault.in_place():
                raise FaultError(f"{self.id}: the fault did not take hold")

    @property
    def affected_components(self) -> frozenset[str]:
        options = [value for value in self.options.values() if isinstance(value, str)]
        named = {*self.faulty_services, *self.services, *options}
        stems = {component_stem(name) for name in named}
        users = {
            manifest.name
            for manifest in self.app.manifests
            if manifest.kind == "Deployment" and component_stem(manifest.name) in stems
        }
        return frozenset(named | users)

    @property
    def changed_objects(self) -> frozenset[str]:
        return frozenset(name for fault in self._faults for name in fault.changes)

    @property
    def edited_workloads(self) -> tuple[str, ...]:
        edits = [edit for edit in edits_of(self._faults) if edit.changed_template]
        return tuple(name for _, namespace, name in (edit.target for edit in edits) if namespace == self.namespace)

    @mark_fault_injected
    def recover_fault(self) -> None:
        for fault in reversed(self._faults):
            fault.recover()
