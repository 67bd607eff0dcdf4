"""The law of answer keys, proved for a problem: undoing exactly what the key names repairs the system.

Undoing an object means restoring its state before the fault through the API: the old content is put back, what was
added is deleted, what was removed is created again. Programs that read their configuration only when they start are
restarted if that alone does not help. What no object shows (a database's users, a machine's disk) is undone by the
fault's own recovery.

1. Undoing all changed objects of the origins repairs.
2. Every changed object that a key names was changed by the fault.
3. An object whose undoing alone repairs is one of the key's changed objects.
4. Each of several origins counts: undoing it alone repairs, or undoing the others does not. Objects of one origin are
   alternatives, any of which is the right answer.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from srearena.conductor.episode.environment import open_cluster
from srearena.conductor.episode.preparation import Preparation
from srearena.conductor.episode.spec import EpisodeSpec, Timeline
from srearena.conductor.grading.baseline import WORKLOADS, Baseline
from srearena.conductor.grading.known_objects import entity_of
from srearena.conductor.oracles.base import Verdict
from srearena.conductor.oracles.localization import LocalizationOracle
from srearena.conductor.oracles.mitigation import MitigationOracle
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.composition import Composition
from srearena.conductor.problems.metadata import Entity, Origin
from srearena.config import Config
from srearena.service.errors import ApiRefused
from srearena.service.kubernetes import Kubernetes, Obj

_TIMELINE = Timeline(before=60.0, deployment=60.0)
_SETTLING = 120.0
"""Seconds after an undoing or a restart: a rollout takes a minute, and caches and queues as long again."""
_NO_OBJECTS = ("FeatureFlag", "KafkaTopic")
_CONSEQUENCES = ("Pod", "ReplicaSet", "EndpointSlice", "Job")
"""Kinds that controllers create and change in turn, unless the key names one of them."""
_SERVER_FIELDS = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")


@dataclass(slots=True)
class Undoing:
    """What the fault of a problem changed, and which undoings repair."""

    id: str
    changed: dict[str, str] = field(default_factory=dict)
    """How (`added`, `removed`, `changed`), by object."""
    complaints: list[str] = field(default_factory=list)


def check_origins(problem: Problem, seed: int = 0) -> Undoing:
    """Prove the law for a problem on an embedded cluster. Every undoing has a copy of the broken cluster."""
    with _Broken(problem, seed) as broken:
        differences = broken.differences()
        named = [entity for origin in problem.origins for entity in origin.changed]
        result = Undoing(problem.id, {str(entity): how for entity, how in differences.items()})
        result.complaints += _misread(problem)
        if _needs_recovery(problem, differences):
            restorable = []
        else:
            restorable = [entity for entity in named if entity in differences]
            absent = [entity for entity in named if entity not in differences and entity.kind not in _NO_OBJECTS]
            result.complaints += [f"{entity} is named and was not changed" for entity in absent]
        if not problem.repairable:
            return result
        complaint = broken.undo(restorable)
        if complaint and (restorable or not problem.data_is_lost):  # what is lost cannot be put back
            result.complaints.append(f"undoing what the key names does not repair: {complaint}")
        result.complaints += _superfluous(broken, problem.origins, restorable) if not complaint else []
        for entity in differences:
            if not problem.restart_is_a_remedy and entity not in named and not broken.undo([entity]):
                result.complaints.append(f"undoing {entity} alone repairs, and the key does not name it")
    return result


def _needs_recovery(problem: Problem, differences: Collection[Entity]) -> bool:
    """Whether a fault, or one of several, is in running processes, in stored data or in a machine."""
    if problem.restart_is_a_remedy or problem.undone_by_recovery or not differences:
        return True
    return isinstance(problem, Composition) and any(
        _needs_recovery(part, [entity for origin in part.origins for entity in origin.changed if entity in differences])
        for part in problem.parts
    )


def _superfluous(broken: _Broken, origins: Sequence[Origin], restorable: Sequence[Entity]) -> Iterator[str]:
    """Origins without which the others repair, and which alone do not."""
    for origin in origins if len(origins) > 1 else ():
        own = [entity for entity in restorable if entity in origin.changed]
        others = [entity for entity in restorable if entity not in own]
        if own and others and not broken.undo(others) and broken.undo(own):
            yield f"{own[0]} is named as an origin, repairs nothing alone, and is not needed beside the others"


def _misread(problem: Problem) -> Iterator[str]:
    """Names of an origin that its own key does not accept, because something else has them as well."""
    oracle = LocalizationOracle(problem)
    for origin in problem.origins:
        for entity in origin.members:
            for name in (entity.name, str(entity)):
                verdict = oracle.compare([name])
                if verdict.details["precision"] < 1:
                    yield f"{name} is a right answer, and is misread: {verdict.reasons}"


class _Broken:
    """A cluster on which the fault of a problem is in place."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.problem = problem
        spec = EpisodeSpec(seed, timeline=_TIMELINE, in_process=True, config=Config()).pinned_by(problem)
        self._cluster = open_cluster(problem, spec)
        self._preparation = Preparation(problem, self._cluster, spec.timeline)

    def __enter__(self) -> _Broken:
        try:
            self._preparation.deploy()
            self._preparation.settle()
            self._preparation.inject_fault()
            self._cluster.set_speed(0)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.problem.kubernetes.close()
        self._cluster.close()

    def differences(self) -> dict[Entity, str]:
        """What the fault changed, without what controllers change in turn."""
        named = {entity for origin in self.problem.origins for entity in origin.changed}
        assert self.problem.baseline is not None and self.problem.handed_over is not None
        before, after = self.problem.baseline, self.problem.handed_over
        found = before.differences(after)
        objects = {
            difference: before.objects.get(difference.key) or after.objects[difference.key] for difference in found
        }
        return {
            entity_of(obj): difference.how
            for difference, obj in objects.items()
            if entity_of(obj) in named or not _is_consequence(obj, difference.how)
        }

    def undo(self, entities: Sequence[Entity]) -> str:
        """Undo the change of some objects, or of everything, and return the first complaint of the oracle, or ""."""
        self.problem.kubernetes.close()
        self.problem.attach(self._cluster)
        return self._cluster.in_fork(lambda: self._undo(entities))

    def _undo(self, entities: Sequence[Entity]) -> str:
        if entities:
            before, after = (_by_entity(capture) for capture in (self.problem.baseline, self.problem.handed_over))
            for entity in entities:
                _restore(self.problem.kubernetes, before.get(entity), after.get(entity))
        else:
            self.problem.recover_fault()
        self._cluster.wait(_SETTLING)
        complaint = self._complaint()
        if complaint and not self.problem.restart_is_a_remedy:
            self._restart()
            complaint = self._complaint()
        return complaint

    def _restart(self) -> None:
        """Restart every workload of the application: programs read their configuration when they start."""
        api = self.problem.kubernetes
        for namespace in (*self.problem.app.namespaces, *self.problem.extra_namespaces):
            for resource in WORKLOADS:
                for obj in api.list(resource, namespace):
                    api.restart(resource, obj["metadata"]["name"], namespace)
        self._cluster.wait(_SETTLING)

    def _complaint(self) -> str:
        oracle = self.problem.oracle_for("mitigation")
        if isinstance(oracle, MitigationOracle):
            oracle.checks = [check for check in oracle.checks if not check.policy]
            return oracle.first_complaint()
        verdict = Verdict.from_answer(oracle.evaluate(None))
        return "" if verdict.passed else verdict.reasons[0]


def _is_consequence(obj: Obj, how: str) -> bool:
    provisioned = "pv.kubernetes.io/provisioned-by" in (obj["metadata"].get("annotations") or {})
    return obj["kind"] in _CONSEQUENCES or (provisioned and how == "added")


def _by_entity(capture: Baseline | None) -> dict[Entity, Obj]:
    return {entity_of(obj): obj for obj in capture.objects.values()} if capture is not None else {}


def _restore(api: Kubernetes, before: Obj | None, after: Obj | None) -> None:
    """Put an object back into its state before the fault."""
    if before is None:
        assert after is not None
        metadata = after["metadata"]
        api.delete(api.resource_of(after).name, metadata["name"], metadata.get("namespace"))
        return
    wanted = _writable(before)
    namespace = wanted["metadata"].get("namespace")
    if after is None:
        api.create(wanted, namespace)
        return
    resource = api.resource_of(after).name
    wanted["metadata"]["resourceVersion"] = api.get(resource, wanted["metadata"]["name"], namespace)["metadata"][
        "resourceVersion"
    ]
    if wanted["kind"] == "CronJob":  # unlike pods of other workloads, its runs are not replaced
        for job in api.list("jobs", namespace):
            if any(
                owner.get("uid") == after["metadata"]["uid"] for owner in job["metadata"].get("ownerReferences", ())
            ):
                api.delete("jobs", job["metadata"]["name"], namespace)
    try:
        api.replace(wanted, namespace)
    except ApiRefused:  # a field that cannot be changed
        api.delete(resource, wanted["metadata"]["name"], namespace)
        del wanted["metadata"]["resourceVersion"]
        with suppress(ApiRefused):  # still in use, as a claim with a pod: this object cannot be undone alone
            api.create(wanted, namespace)


def _writable(obj: Obj) -> Obj:
    wanted = copy.deepcopy(obj)
    wanted.pop("status", None)
    for name in _SERVER_FIELDS:
        wanted["metadata"].pop(name, None)
    return wanted
