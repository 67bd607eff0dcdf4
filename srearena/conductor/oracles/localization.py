"""Localization: the components at fault, compared as sets.

A component has several names: the Service, the Deployment, a ReplicaSet, a pod. They count as one where owner
references and selectors connect them at the time of the answer.

Why it cannot be gamed: naming everything costs precision, and only an answer that names every root and nothing else
passes; a partly right answer gets part of the score, never the verdict.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from srearena.conductor.actions.telemetry import Telemetry
from srearena.conductor.errors import BadSubmission
from srearena.conductor.grading.call_distance import graph_of, mean_distance
from srearena.conductor.oracles.base import Oracle, Verdict
from srearena.errors import SreArenaError
from srearena.service.errors import ServiceError
from srearena.service.kubernetes import Kubernetes, Obj

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem

_MOST_NAMES = 100
_GENERATED = re.compile(r"(?P<workload>.+?)(-[a-f0-9]{6,10})?-[a-z0-9]{5}")


def parse_names(submission: Any) -> list[str]:
    """Parse an answer: a list of texts, or one text with commas; BadSubmission for anything else."""
    if submission is None:
        return []
    if isinstance(submission, str):
        submission = [part for part in re.split(r"[,\s]+", submission.strip().strip("[]")) if part]
    if isinstance(submission, Mapping) or not isinstance(submission, Sequence | set | frozenset):
        raise BadSubmission('this stage takes a list of names: submit(["some-component"]), or submit([]) for none')
    names = list(submission)
    if not all(isinstance(name, str) for name in names) or len(names) > _MOST_NAMES:
        raise BadSubmission(f"this stage takes a list of at most {_MOST_NAMES} names, each a text")
    return list(dict.fromkeys(name.strip().strip("'\"") for name in names if name.strip()))


class Aliases:
    """Maps names to components, by the objects of some namespaces; the first object of a name takes precedence."""

    def __init__(self, workloads: Iterable[Obj], services: Iterable[Obj], owned: Iterable[Obj]) -> None:
        self._to_workload: dict[str, str] = {}
        templates: list[tuple[str, Mapping[str, str]]] = []
        for workload in workloads:
            name = workload["metadata"]["name"]
            self._to_workload.setdefault(name, name)
            templates.append((name, workload["spec"]["template"]["metadata"].get("labels") or {}))
        for service in services:
            name, selector = service["metadata"]["name"], service["spec"].get("selector") or {}
            if not selector or name in self._to_workload:
                continue
            matching = [other for other, labels in templates if selector.items() <= labels.items()]
            if len(matching) == 1:
                self._to_workload[name] = matching[0]
        self._by_owner = {
            obj["metadata"]["name"]: owner["name"]
            for obj in owned
            for owner in obj["metadata"].get("ownerReferences", ())
            if owner.get("controller")
        }

    def component(self, name: str) -> str:
        """The workload that a name belongs to, or the name itself."""
        short = name.rstrip("/").rpartition("/")[2]
        visited = {short}
        while short in self._by_owner and self._by_owner[short] not in visited:
            short = self._by_owner[short]
            visited.add(short)
        if short in self._to_workload:
            return self._to_workload[short]
        generated = _GENERATED.fullmatch(short)  # the name of a deleted pod still contains its workload
        if generated is not None and generated["workload"] in self._to_workload:
            return self._to_workload[generated["workload"]]
        return short


def aliases_in(kubernetes: Kubernetes, namespaces: Iterable[str]) -> Aliases:
    def list_all(*resources: str) -> list[Obj]:
        return [obj for name in namespaces for resource in resources for obj in kubernetes.list(resource, name)]

    workloads = list_all("deployments", "statefulsets", "daemonsets")
    return Aliases(workloads, list_all("services"), list_all("replicasets", "pods"))


class LocalizationOracle(Oracle):
    def __init__(self, problem: Problem, expected: Sequence[str | None] | str | None = None) -> None:
        super().__init__(problem)
        names = [expected] if isinstance(expected, str) or expected is None else list(expected)
        self.expected = tuple(name for name in names if name)

    def evaluate(self, submission: Any) -> Verdict:
        answer = parse_names(submission)
        return self.compare(answer, self.expected)

    def compare(self, answer: Sequence[str], expected: Sequence[str]) -> Verdict:
        """Precision and recall of a set of names against another, after aliases."""
        try:
            aliases = aliases_in(self.problem.kubernetes, self.problem.fault_namespaces)
        except ServiceError:
            aliases = Aliases((), (), ())
        answered = {aliases.component(name) for name in answer}
        right = {aliases.component(name) for name in expected}
        hits = answered & right
        precision = len(hits) / len(answered) if answered else float(not right)
        recall = len(hits) / len(right) if right else float(not answered)
        score = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        reasons = [f"{name} is at fault, and was not named" for name in sorted(right - answered)]
        reasons += [f"{name} was named, and is not at fault" for name in sorted(answered - right)]
        reasons += [f"{name} is at fault, and was named" for name in sorted(hits)]
        details = {
            "precision": round(precision, 4),
            "recall": round(recall, 4),
            "answered": sorted(answered),
            "distance": mean_distance(self._calls(aliases), answered, right),
        }
        return Verdict(answered == right, score, tuple(reasons), details)

    def _calls(self, aliases: Aliases) -> dict[str, set[str]]:
        """The call graph by traces; empty where there are no traces."""
        try:
            telemetry = Telemetry(self.problem.cluster)
        except SreArenaError:
            return {}  # a stored trial has no cluster
        try:
            calls = telemetry.calls()
        except SreArenaError:
            return {}
        finally:
            telemetry.close()
        return graph_of((aliases.component(caller), aliases.component(called)) for caller, called in calls)
