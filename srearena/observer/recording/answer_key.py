"""The answer key of a recording: the ground truth that the problem declares, and what was observed.

Root causes and explanations come from the problem; changes from the objects before and after the fault; affected
components, their order and the alerts from the recording. Nothing is listed that did not happen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from srearena.conductor.grading.baseline import WORKLOADS, Baseline
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.metadata import Entity
from srearena.observer.recording.propagation import Propagation, Step
from srearena.service.kubernetes import Obj
from srearena.snapshots.differences import differences, essential

Document = dict[str, Any]
_CATEGORIES = {
    "Misconfiguration": "Configuration Setting",
    "Code Defect": "Application",
    "Authentication Issue": "Configuration Setting",
    "Network/Storage Issue": "Network",
    "Operation Error": "Change",
    "Dependency Problem": "Resource Unavailable",
}
_WORKLOAD_KINDS = ("Deployment", "StatefulSet", "DaemonSet", "Service", "Pod", "ReplicaSet")
_ENTITY_LABELS = ("service_name", "service", "deployment", "statefulset", "daemonset", "pod", "node")
_GENERATED = re.compile(r"-[a-z0-9]{5,10}(-[a-z0-9]{5})?$")
_FLAG = "FeatureFlag"
"""Not an object: a recording shows the config map that holds it."""
_MOST_CHANGES = 4
_LONGEST = 400


class Workloads:
    """The components of the healthy application: each a workload with its Services."""

    def __init__(self, healthy: Baseline, namespaces: Sequence[str]) -> None:
        self.kinds: dict[str, str] = {}
        self.namespaces: dict[str, str] = {}
        self.services: dict[str, list[str]] = {}
        self._by_service: dict[str, str] = {}
        workloads = [obj for scope in namespaces for obj in healthy.of(*WORKLOADS, namespace=scope)]
        for obj in workloads:
            self.kinds[_name(obj)] = obj["kind"]
            self.namespaces[_name(obj)] = obj["metadata"].get("namespace", "")
        for scope in namespaces:
            for service in healthy.of("services", namespace=scope):
                if (selected := _selected(service, workloads)) is not None:
                    self._by_service[_name(service)] = selected
                    self.services.setdefault(selected, []).append(_name(service))

    def is_component(self, entity: Entity) -> bool:
        """Whether an object is one of these workloads, or a part of one."""
        return entity.kind in _WORKLOAD_KINDS and self.component(entity.name) in self.kinds

    def same_component(self, one: Entity, other: Entity) -> bool:
        """Whether two objects are views of one workload: then one of them is the root, and the others its aliases."""
        both = self.is_component(one) and self.is_component(other)
        return both and self.component(one.name) == self.component(other.name)

    def component(self, name: str) -> str:
        """The workload of a Service, workload or pod name; the name itself where there is none."""
        if name in self._by_service or name in self.kinds:
            return self._by_service.get(name, name)
        stem = _GENERATED.sub("", name)
        return stem if stem in self.kinds else name


def _name(obj: Obj) -> str:
    return str(obj["metadata"]["name"])


def _selected(service: Obj, workloads: Iterable[Obj]) -> str | None:
    selector = (service["spec"].get("selector") or {}).items()
    namespace = service["metadata"].get("namespace")
    for obj in workloads:
        labels = ((obj["spec"].get("template") or {}).get("metadata") or {}).get("labels") or {}
        if selector and obj["metadata"].get("namespace") == namespace and selector <= labels.items():
            return _name(obj)
    return None


class GroundTruthBuilder:
    """Collects the groups and aliases of the ground truth."""

    def __init__(self, problem: Problem, workloads: Workloads) -> None:
        self._problem = problem
        self._workloads = workloads
        self._groups: dict[str, Document] = {}
        self._aliases: list[list[str]] = []
        self._of_component: dict[str, dict[str, str]] = {}

    def _group(self, kind: str, name: str, namespace: str, *, root: bool = False) -> str:
        identity = f"{name}-{kind.lower()}-1"
        if identity not in self._groups:
            plain = name.replace(".", r"\.")
            pattern = f"{plain}-.*" if kind == "Pod" and name in self._workloads.kinds else rf"{plain}\b"
            group: Document = {"id": identity, "kind": kind, "filter": [pattern]}
            if namespace:
                group["namespace"] = namespace
            self._groups[identity] = group
        if root:
            self._groups[identity]["root_cause"] = True
        return identity

    def component(self, name: str) -> dict[str, str]:
        """The groups of one component by kind: its workload, its pods and its Services, which are aliases."""
        groups = self._of_component.get(name)
        if groups is None:
            kind, namespace = self._workloads.kinds.get(name, ""), self._workloads.namespaces.get(name, "")
            namespace = namespace or self._problem.namespace
            groups = {}
            if kind:
                groups[kind] = self._group(kind, name, namespace)
                groups["Pod"] = self._group("Pod", name, namespace)
            for service in self._workloads.services.get(name, [] if kind else [name]):
                groups.setdefault("Service", self._group("Service", service, namespace))
            self._of_component[name] = groups
            if len(groups) > 1:
                self._aliases.append(list(groups.values()))
        return groups

    def root(self, entity: Entity) -> str:
        """Add a root cause and return its group."""
        if not self._workloads.is_component(entity):
            return self._group(entity.kind, entity.name, entity.namespace, root=True)
        parts = self.component(self._workloads.component(entity.name))
        group = self._group(entity.kind, entity.name, entity.namespace, root=True)
        if group not in parts.values():
            self.add_alias(group, next(iter(parts.values()), group))
        return group

    def add_alias(self, one: str, other: str) -> None:
        """Record two groups as names of the same thing, so that either is a correct answer."""
        if one == other:
            return
        for alias in self._aliases:
            if other in alias:
                alias.extend([one] if one not in alias else [])
                return
        self._aliases.append([other, one])

    def reference(self, name: str) -> str:
        """The group that stands for a component in propagations and alerts: its Service, or else its workload."""
        parts = self.component(name)
        return parts.get("Service") or next(iter(parts.values()))

    def document(self, **sections: Any) -> Document:
        return {"groups": list(self._groups.values()), "aliases": self._aliases, **sections}


def answer_key(
    problem: Problem,
    before: Baseline,
    after: Baseline,
    propagation: Propagation,
    workloads: Workloads,
    pods: Mapping[str, str],
    fired: Sequence[Mapping[str, Any]],
) -> Document:
    """Create the document of `ground_truth.yaml`.

    `pods`: components whose pods are not ready, with the reason; `fired`: the labels of the alerts that began after the
    fault.
    """
    key = GroundTruthBuilder(problem, workloads)
    if not problem.roots:
        return key.document(propagations=[], alerts=[], fault=[], disruptions=[], recommended_actions=[])
    roots = {key.root(entity): entity for entity in problem.roots}
    members: dict[str, Entity] = {}
    for origin in problem.origins:
        first, *others = origin.members
        members[key.root(first)] = first
        for entity in others:
            if entity.kind != _FLAG and not workloads.same_component(entity, first):
                members[key.root(entity)] = entity
                key.add_alias(key.root(entity), key.root(first))
    steps = _steps(problem, key, members, propagation, workloads, pods)
    return key.document(
        propagations=steps,
        alerts=[_alert(key, workloads, propagation, labels) for labels in fired],
        fault=_faults(problem, before, after, roots),
        disruptions=_disruptions(problem, before, after, roots.values()),
        recommended_actions=_actions(problem),
    )


def _steps(
    problem: Problem,
    key: GroundTruthBuilder,
    roots: Mapping[str, Entity],
    propagation: Propagation,
    workloads: Workloads,
    pods: Mapping[str, str],
) -> list[Document]:
    cause = " ".join(problem.explanation.split())
    steps: list[Document] = []
    starts: dict[str, str] = {}
    for group, entity in roots.items():
        if workloads.is_component(entity):
            name = workloads.component(entity.name)
            starts[name] = group
            if name in pods:
                effect = f"pods of {name} are not ready: {pods[name]}"
                steps.append(_step(group, key.component(name)["Pod"], cause, effect))
            continue
        if entity not in problem.roots:
            continue
        declared = [workloads.component(t.name) for s, t in problem.propagation if s == entity]
        observed = [name for name in declared if name in propagation.affected or name in pods]
        for name in observed or propagation.origins():
            starts[name] = key.reference(name)
            effect = propagation.affected.get(name) or f"its pods are not ready: {pods.get(name, '')}"
            steps.append(_step(group, starts[name], cause, f"{name}: {effect}"))
    for step in propagation.steps_from(list(starts), cause):
        steps.append(_propagation_step(step, key, starts))
    return steps


def _propagation_step(step: Step, key: GroundTruthBuilder, starts: Mapping[str, str]) -> Document:
    source = starts.get(step.source) or key.reference(step.source)
    return _step(source, key.reference(step.target), step.condition, step.effect)


def _step(source: str, target: str, condition: str, effect: str) -> Document:
    return {"source": source, "target": target, "condition": condition, "effect": effect}


def _alert(
    key: GroundTruthBuilder, workloads: Workloads, propagation: Propagation, labels: Mapping[str, Any]
) -> Document:
    entity = next((str(labels[label]) for label in _ENTITY_LABELS if labels.get(label)), "")
    alert: Document = {"id": labels["alertname"]}
    name = workloads.component(propagation.workload_of_service.get(entity, entity))
    if name in workloads.kinds:
        alert["group_id"] = key.reference(name)
    text = f"{labels['alertname']} fired for {entity}" if entity else f"{labels['alertname']} fired"
    return {**alert, "metadata": {"description": text}}


def _faults(problem: Problem, before: Baseline, after: Baseline, roots: Mapping[str, Entity]) -> list[Document]:
    changed = [_pair(before, after, difference.key) for difference in before.differences(after)]
    faults: list[Document] = []
    for group, entity in roots.items():
        fault = {
            "category": _CATEGORIES.get(problem.fault_type, "Other"),
            "condition": " ".join(problem.explanation.split()),
            "fault_mechanism": problem.family or problem.id,
        }
        about = {"kind": entity.kind, "name": entity.name, "group_id": group}
        of_entity = [pair for pair in changed if _is_entity(pair, entity)]
        items = [item for pair in of_entity or changed for item in _items(*pair, named=not of_entity)][:_MOST_CHANGES]
        faults += [{**fault, "entity": {**about, "changed": item}} for item in items] or [{**fault, "entity": about}]
    return faults


def _disruptions(problem: Problem, before: Baseline, after: Baseline, roots: Iterable[Entity]) -> list[Document]:
    """What was done to which objects, as ITBench's descriptions of scenarios state it."""
    pairs = [_pair(before, after, key) for key in {**before.objects, **after.objects}]
    injections = []
    for entity in roots:
        found = next((pair for pair in pairs if _is_entity(pair, entity)), (None, None))
        version = (found[0] or found[1] or {}).get("apiVersion")
        metadata = {"name": entity.name, **({"namespace": entity.namespace} if entity.namespace else {})}
        obj = {**({"apiVersion": version} if version else {}), "kind": entity.kind, "metadata": metadata}
        injections.append({"id": problem.family or problem.id, "args": {"kubernetesObject": obj}})
    return [{"injections": injections}] if injections else []


def _pair(before: Baseline, after: Baseline, key: tuple[str, str, str]) -> tuple[Obj | None, Obj | None]:
    return before.objects.get(key), after.objects.get(key)


def _is_entity(pair: tuple[Obj | None, Obj | None], entity: Entity) -> bool:
    obj = pair[0] or pair[1] or {"metadata": {"name": ""}}
    namespace = obj["metadata"].get("namespace", "")
    in_namespace = not entity.namespace or namespace == entity.namespace
    return obj.get("kind") == entity.kind and _name(obj) == entity.name and in_namespace


def _items(old: Obj | None, new: Obj | None, *, named: bool) -> Iterable[Document]:
    """The changes of an object: `element`, `from`, `to`."""
    obj = old or new or {}
    prefix = f"{obj['kind']}/{_name(obj)}" if named else ""
    if old is None or new is None:
        words = ("absent", "present") if old is None else ("present", "absent")
        yield {"element": prefix or "the object itself", "from": words[0], "to": words[1]}
        return
    for item in differences(essential(old), essential(new)):
        element = f"{prefix}: {item['path']}" if named else item["path"]
        yield {"element": element, "from": _short(item.get("old")), "to": _short(item.get("new"))}


def _short(value: Any) -> str:
    return "" if value is None else str(value)[:_LONGEST]


def _actions(problem: Problem) -> list[Document]:
    lines = [line for line in problem.remedy.splitlines() if line.strip()]
    return [{"solution": {"id": "reference", "actions": ["\n".join(lines)]}}] if lines else []
