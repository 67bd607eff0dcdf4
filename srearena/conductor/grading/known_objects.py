"""The objects of a cluster as they were before the agent came in, and which component each name in an answer means.

A component goes by several names: the workload, the Service that selects it, its replica sets and pods. All of that is
fixed from what the harness captured before the fault and when the fault was in place; the live cluster is not
consulted. Replica sets, jobs and pods are recognized by the name that the controller of a captured workload gives them,
so pods of a later rollout have the same component.

Why it cannot be gamed: an object that the agent makes (a Service, a workload, an owner reference, a label) is not in
the capture, and a captured name stands for what it stood for then. A name that is used in several namespaces stands for
all of its objects, the wrong ones included, unless the answer says which namespace is meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from srearena.conductor.grading.baseline import Baseline
from srearena.conductor.problems.metadata import Entity
from srearena.ground_truth.kinds import CLUSTER_SCOPED, canonical_kind, is_known_kind
from srearena.service.kubernetes import Obj

_SAFE = "[bcdfghjklmnpqrstvwxz2456789]"
"""The letters of generated names (k8s.io/apimachinery/pkg/util/rand): without vowels, so that no words arise."""
_TOP_LEVEL = ("Deployment", "StatefulSet", "DaemonSet", "CronJob", "Job", "ReplicaSet")
_GENERATED = {
    "Deployment": re.compile(rf"(.+?)-{_SAFE}{{6,10}}(-{_SAFE}{{5}})?"),
    "StatefulSet": re.compile(r"(.+)-\d+"),
    "DaemonSet": re.compile(rf"(.+)-{_SAFE}{{5}}"),
    "ReplicaSet": re.compile(rf"(.+)-{_SAFE}{{5}}"),
    "Job": re.compile(rf"(.+)-{_SAFE}{{5}}"),
    "CronJob": re.compile(rf"(.+?)-\d{{8,10}}(-{_SAFE}{{5}})?"),
}
"""The names that a controller gives to the replica sets, jobs and pods of a workload."""
_RIGHTS = frozenset(("ServiceAccount", "Role", "RoleBinding"))
"""Kinds of objects that a program brings along under its own name, into other namespaces too."""
_ONE_COMPONENT = frozenset((*_TOP_LEVEL, "Pod", "Service", "Endpoints", "EndpointSlice"))
"""Kinds that are views of one component: an answer may name any of them."""


@dataclass(frozen=True, slots=True)
class Known:
    """An object of the capture, and the component that it belongs to."""

    entity: Entity
    component: str


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a name in an answer stands for, in one namespace."""

    label: str
    components: frozenset[str]


class KnownObjects:
    """Names and what they stood for before the agent came in."""

    def __init__(self, known: Iterable[Known] = ()) -> None:
        self._known = tuple(known)
        self._by_name: dict[str, list[Known]] = {}
        for one in self._known:
            self._by_name.setdefault(one.entity.name.lower(), []).append(one)
        self._namespaces = {one.entity.namespace for one in self._known if one.entity.namespace}

    @classmethod
    def of(cls, *captures: Baseline | None) -> KnownObjects:
        """The objects of several captures; what an earlier one says about a name counts."""
        known: dict[Entity, Known] = {}
        for number, capture in enumerate(one for one in captures if one is not None):
            objects = list(capture.objects.values())
            # What selects a workload is decided by the first capture, before the fault may have changed a selector.
            owners = _workloads_by_service(objects) if not number else {}
            for obj in objects:
                entity = entity_of(obj)
                known.setdefault(entity, Known(entity, str(owners.get(entity, entity))))
        return cls(known.values())

    @classmethod
    def from_document(cls, rows: Iterable[Sequence[str]]) -> KnownObjects:
        return cls(Known(Entity(kind, name, namespace), component) for namespace, kind, name, component in rows)

    def as_document(self) -> list[list[str]]:
        return [[one.entity.namespace, one.entity.kind, one.entity.name, one.component] for one in self._known]

    def including(self, entities: Iterable[Entity]) -> KnownObjects:
        """These objects, and others that the truth names and a capture does not contain (a flag, a job)."""
        absent = [entity for entity in dict.fromkeys(entities) if self._find(entity) is None]
        return KnownObjects((*self._known, *(Known(entity, str(entity)) for entity in absent)))

    @property
    def component_names(self) -> set[str]:
        """The names of workloads and Services, in lower case: other objects have names that are common words."""
        return {one.entity.name.lower() for one in self._known if one.entity.kind in _ONE_COMPONENT}

    def component(self, entity: Entity) -> str:
        """The component that an object of the truth belongs to."""
        known = self._find(entity)
        return str(entity) if known is None else known.component

    def _find(self, entity: Entity) -> Known | None:
        alike = [
            one
            for one in self._by_name.get(entity.name.lower(), ())
            if one.entity.namespace == entity.namespace and _same_kind(one.entity.kind, entity.kind)
        ]
        return min(alike, key=lambda one: one.entity.kind != entity.kind, default=None)

    def meanings(self, text: str) -> list[Meaning]:
        """What a name stands for, once per namespace in which it is used; a name of nothing known means itself."""
        namespace, kind, name = self._parts(text)
        matching = [one for one in self._named(name, kind) if _in_namespace(one.entity, namespace)]
        if kind is None and len(matching) > 1:  # a namespace has the name of its application: say `namespace/NAME`
            matching = [one for one in matching if one.entity.kind != "Namespace"] or matching
            matching = _without_rights_elsewhere(matching)
        if not matching:
            return [Meaning(text, frozenset((text,)))]
        components: dict[str, list[str]] = {}
        for one in matching:
            components.setdefault(one.entity.namespace, []).append(one.component)
        return [Meaning(_label(found), frozenset(found)) for found in components.values()]

    def _named(self, name: str, kind: str | None) -> list[Known]:
        matching = [one for one in self._by_name.get(name, ()) if kind is None or _same_kind(one.entity.kind, kind)]
        if matching or (kind is not None and kind not in _ONE_COMPONENT):
            return matching
        return [
            one
            for of_kind, pattern in _GENERATED.items()
            if (generated := pattern.fullmatch(name)) is not None
            for one in self._by_name.get(generated[1], ())
            if one.entity.kind == of_kind
        ]

    def _parts(self, text: str) -> tuple[str, str | None, str]:
        """Namespace, kind and name of `name`, `kind/name`, `namespace/name` or `namespace/kind/name`."""
        *before, name = text.lower().split("/") if text.isascii() else [text]
        match before:
            case []:
                return "", None, name
            case [first] if first in self._namespaces or not is_known_kind(first):
                return first, None, name
            case [first]:
                return "", canonical_kind(first), name
            case [first, second] if is_known_kind(second) or not is_known_kind(first):
                return first, canonical_kind(second), name
            case [first, second]:
                return second, canonical_kind(first), name
            case _:
                return "", None, text  # no object has such a name


def entity_of(obj: Obj) -> Entity:
    metadata = obj["metadata"]
    return Entity(str(obj["kind"]), str(metadata["name"]), str(metadata.get("namespace", "")))


def _workloads_by_service(objects: Sequence[Obj]) -> dict[Entity, Entity]:
    """The workload of each Service that selects exactly one."""
    templates = [
        (entity_of(obj), (obj["spec"]["template"].get("metadata") or {}).get("labels") or {})
        for obj in objects
        if obj["kind"] in ("Deployment", "StatefulSet", "DaemonSet")
    ]
    selected: dict[Entity, Entity] = {}
    for obj in objects:
        if obj["kind"] != "Service" or not (selector := obj["spec"].get("selector")):
            continue
        service = entity_of(obj)
        matching = [
            workload
            for workload, labels in templates
            if workload.namespace == service.namespace and selector.items() <= labels.items()
        ]
        if len(matching) == 1:
            selected[service] = matching[0]
    return selected


def _same_kind(one: str, other: str) -> bool:
    return one.lower() == other.lower() or {one, other} <= _ONE_COMPONENT


def _without_rights_elsewhere(matching: list[Known]) -> list[Known]:
    """Who names a program without a kind does not mean its rights in another namespace than its own."""
    homes = {one.entity.namespace for one in matching if one.entity.kind in _ONE_COMPONENT}
    return [one for one in matching if not homes or one.entity.namespace in homes or one.entity.kind not in _RIGHTS]


def _in_namespace(entity: Entity, namespace: str) -> bool:
    return not namespace or entity.namespace.lower() == namespace or entity.kind in CLUSTER_SCOPED


def _label(components: Sequence[str]) -> str:
    """The component to report: a workload, if one of them is."""
    return min(components, key=lambda name: (name.split("/")[-2] not in _TOP_LEVEL, name))
