"""The answer key of a recording: the problem's own truth, and what really came of it.

The root and the words are the problem's; what changed is read off the objects before and after; which components were
hit, in what order and which alerts told of it is read off what was recorded. Nothing is added that did not happen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from srearena.conductor.grading.baseline import WORKLOADS, Baseline
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.metadata import Entity
from srearena.observer.recording.propagation import Spread, Step
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
_OF_WORKLOADS = ("Deployment", "StatefulSet", "DaemonSet", "Service", "Pod", "ReplicaSet")
_ENTITY_LABELS = ("service_name", "service", "deployment", "statefulset", "daemonset", "pod", "node")
_GENERATED = re.compile(r"-[a-z0-9]{5,10}(-[a-z0-9]{5})?$")
_MOST_CHANGES = 4
_LONGEST = 400


class Workloads:
    """Which Services and Deployments of the healthy application are one component."""

    def __init__(self, healthy: Baseline, namespaces: Sequence[str]) -> None:
        self.kinds: dict[str, str] = {}
        self.namespaces: dict[str, str] = {}
        self.services: dict[str, list[str]] = {}
        self._by_service: dict[str, str] = {}
        found = [obj for place in namespaces for obj in healthy.of(*WORKLOADS, namespace=place)]
        for obj in found:
            self.kinds[_name(obj)] = obj["kind"]
            self.namespaces[_name(obj)] = obj["metadata"].get("namespace", "")
        for place in namespaces:
            for service in healthy.of("services", namespace=place):
                if (selected := _selected(service, found)) is not None:
                    self._by_service[_name(service)] = selected
                    self.services.setdefault(selected, []).append(_name(service))

    def component(self, name: str) -> str:
        """The workload that a Service, a workload or a pod's name stands for; the name itself where none does."""
        if name in self._by_service or name in self.kinds:
            return self._by_service.get(name, name)
        stem = _GENERATED.sub("", name)
        return stem if stem in self.kinds else name


def _name(obj: Obj) -> str:
    return str(obj["metadata"]["name"])


def _selected(service: Obj, workloads: Iterable[Obj]) -> str | None:
    selector = (service["spec"].get("selector") or {}).items()
    place = service["metadata"].get("namespace")
    for obj in workloads:
        labels = ((obj["spec"].get("template") or {}).get("metadata") or {}).get("labels") or {}
        if selector and obj["metadata"].get("namespace") == place and selector <= labels.items():
            return _name(obj)
    return None


class GroundTruthBuilder:
    """Groups, aliases and everything that refers to them, as they are found."""

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
        """The groups of one component by kind: its workload, its pods and its Services, which mean the same."""
        known = self._of_component.get(name)
        if known is None:
            kind, place = self._workloads.kinds.get(name, ""), self._workloads.namespaces.get(name, "")
            place = place or self._problem.namespace
            known = {}
            if kind:
                known[kind] = self._group(kind, name, place)
                known["Pod"] = self._group("Pod", name, place)
            for service in self._workloads.services.get(name, [] if kind else [name]):
                known.setdefault("Service", self._group("Service", service, place))
            self._of_component[name] = known
            if len(known) > 1:
                self._aliases.append(list(known.values()))
        return known

    def root(self, entity: Entity) -> str:
        if entity.kind not in _OF_WORKLOADS:
            return self._group(entity.kind, entity.name, entity.namespace, root=True)
        parts = self.component(self._workloads.component(entity.name))
        own = self._group(entity.kind, entity.name, entity.namespace, root=True)
        if own not in parts.values():
            self._alias(own, next(iter(parts.values()), own))
        return own

    def _alias(self, one: str, other: str) -> None:
        if one == other:
            return
        for alias in self._aliases:
            if other in alias:
                alias.extend([one] if one not in alias else [])
                return
        self._aliases.append([other, one])

    def same(self, one: str, other: str) -> None:
        """Two names for one root: whoever names either is right."""
        self._alias(one, other)

    def spoken(self, name: str) -> str:
        """The group by which others speak of a component: its Service, or else its workload."""
        parts = self.component(name)
        return parts.get("Service") or next(iter(parts.values()))

    def document(self, **rest: Any) -> Document:
        return {"groups": list(self._groups.values()), "aliases": self._aliases, **rest}


def answer_key(
    problem: Problem,
    before: Baseline,
    after: Baseline,
    spread: Spread,
    workloads: Workloads,
    pods: Mapping[str, str],
    fired: Sequence[Mapping[str, Any]],
) -> Document:
    """The document of `ground_truth.yaml`. `pods`: components whose pods are not ready, and why; `fired`: the labels
    of the alerts that began after the fault."""
    key = GroundTruthBuilder(problem, workloads)
    if not problem.roots:
        return key.document(propagations=[], alerts=[], fault=[], recommended_actions=[])
    roots = {key.root(entity): entity for entity in problem.roots}
    _carriers(problem, key, roots)
    steps = _steps(problem, key, roots, spread, workloads, pods)
    return key.document(
        propagations=steps,
        alerts=[_alert(key, workloads, spread, labels) for labels in fired],
        fault=_faults(problem, before, after, roots),
        recommended_actions=_actions(problem),
    )


def _carriers(problem: Problem, key: GroundTruthBuilder, roots: Mapping[str, Entity]) -> None:
    """Where a problem says that its root obeys something else (a flag in a config map), that is as right an answer."""
    targets = {target for _, target in problem.propagation}
    for source, target in problem.propagation:
        if source not in targets and source not in problem.roots and target in problem.roots:
            key.same(key.root(source), next(group for group, entity in roots.items() if entity == target))


def _steps(
    problem: Problem,
    key: GroundTruthBuilder,
    roots: Mapping[str, Entity],
    spread: Spread,
    workloads: Workloads,
    pods: Mapping[str, str],
) -> list[Document]:
    cause = " ".join(problem.explanation.split())
    found: list[Document] = []
    starts: dict[str, str] = {}
    for group, entity in roots.items():
        if entity.kind in _OF_WORKLOADS:
            name = workloads.component(entity.name)
            starts[name] = group
            if name in pods:
                effect = f"pods of {name} are not ready: {pods[name]}"
                found.append(_step(group, key.component(name)["Pod"], cause, effect))
            continue
        declared = [workloads.component(t.name) for s, t in problem.propagation if s == entity]
        for name in [who for who in declared if who in spread.affected or who in pods] or spread.origins():
            starts[name] = key.spoken(name)
            effect = spread.affected.get(name) or f"its pods are not ready: {pods.get(name, '')}"
            found.append(_step(group, starts[name], cause, f"{name}: {effect}"))
    for step in spread.steps_from(list(starts), cause):
        found.append(_spoken(step, key, starts))
    return found


def _spoken(step: Step, key: GroundTruthBuilder, starts: Mapping[str, str]) -> Document:
    source = starts.get(step.source) or key.spoken(step.source)
    return _step(source, key.spoken(step.target), step.condition, step.effect)


def _step(source: str, target: str, condition: str, effect: str) -> Document:
    return {"source": source, "target": target, "condition": condition, "effect": effect}


def _alert(key: GroundTruthBuilder, workloads: Workloads, spread: Spread, labels: Mapping[str, Any]) -> Document:
    about = next((str(labels[label]) for label in _ENTITY_LABELS if labels.get(label)), "")
    alert: Document = {"id": labels["alertname"]}
    name = workloads.component(spread.workload_of_service.get(about, about))
    if name in workloads.kinds:
        alert["group_id"] = key.spoken(name)
    described = f"{labels['alertname']} fired for {about}" if about else f"{labels['alertname']} fired"
    return {**alert, "metadata": {"description": described}}


def _faults(problem: Problem, before: Baseline, after: Baseline, roots: Mapping[str, Entity]) -> list[Document]:
    changed = [_keyed(before, after, difference.key) for difference in before.differences(after)]
    found: list[Document] = []
    for group, entity in roots.items():
        fault = {
            "category": _CATEGORIES.get(problem.fault_type, "Other"),
            "condition": " ".join(problem.explanation.split()),
            "fault_mechanism": problem.family or problem.id,
        }
        about = {"kind": entity.kind, "name": entity.name, "group_id": group}
        own = [pair for pair in changed if _same(pair, entity)]
        items = [item for pair in own or changed for item in _items(*pair, named=not own)][:_MOST_CHANGES]
        found += [{**fault, "entity": {**about, "changed": item}} for item in items] or [{**fault, "entity": about}]
    return found


def _keyed(before: Baseline, after: Baseline, key: tuple[str, str, str]) -> tuple[Obj | None, Obj | None]:
    return before.objects.get(key), after.objects.get(key)


def _same(pair: tuple[Obj | None, Obj | None], entity: Entity) -> bool:
    obj = pair[0] or pair[1] or {"metadata": {"name": ""}}
    place = obj["metadata"].get("namespace", "")
    return obj.get("kind") == entity.kind and _name(obj) == entity.name and place == (entity.namespace or place)


def _items(old: Obj | None, new: Obj | None, *, named: bool) -> Iterable[Document]:
    """What changed about an object: `element`, `from`, `to`."""
    one = old or new or {}
    prefix = f"{one['kind']}/{_name(one)}" if named else ""
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
