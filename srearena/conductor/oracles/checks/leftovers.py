"""The application works without what the agent left behind: pods, jobs and workloads of its own are removed first.

A pod of the agent could do the work of a program that is still broken: read from the queue, publish the results, take
off finalizers, restart what hangs. It is not declared and would not come back after a failure. So the grader
removes it, and the checks that follow see the application alone. The same holds for what the agent put beside a
program in the template of a workload or a CronJob: containers, and commands that probes and hooks run in the program's
container. A repaired program works without these; whether it does is asked by the other checks.

Why it cannot be gamed: everything goes that was not there when the agent started, unless the controller of an owner
makes it (`grading.ownership`), or it is in the place of a declared workload that is gone, which `intent` and `backends`
compare. What an operator makes for its custom resource it makes again. What is removed loses its finalizers, and is
a complaint if it is still there at the end. A pod's own grace period does not prolong its work: one that is being
deleted, by whomever, has half a minute left at most, and a second where it runs what no declared workload does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from srearena.conductor.grading.baseline import WORKLOADS, Baseline, Key, capture
from srearena.conductor.grading.ownership import runs_the_same
from srearena.conductor.grading.pod_templates import containers, pod_spec
from srearena.conductor.oracles.checks.base import Check
from srearena.service.errors import ApiRefused
from srearena.service.kubernetes import Obj

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem

_CRON_JOBS = "cronjobs.batch"
_RESOURCES = (*WORKLOADS, _CRON_JOBS, "replicasets.apps", "replicationcontrollers", "jobs.batch", "pods")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HOOKS = ("postStart", "preStop")
_ROUNDS = 3
"""What an operator or a job's schedule makes meanwhile is found in the next one."""
_SETTLE = 40.0
"""Seconds; longer than the usual 30 s that a pod has for its end."""
_STEP = 5.0
_GRACE = 30
"""Seconds that a pod has for its end by default."""
_FOREIGN_GRACE = 1
"""Seconds that a pod of the agent has."""


class Leftovers(Check):
    """Removes what the agent added to the application's namespaces."""

    name = "leftovers"

    def complaints(self, problem: Problem) -> list[str]:
        if problem.baseline is None or problem.handed_over is None:
            return []
        earlier = (problem.baseline, problem.handed_over)
        left: list[tuple[Key, Obj]] = []
        for _ in range(_ROUNDS):
            now = capture(problem.kubernetes, problem.app.namespaces)
            left = [*_added(problem, now, earlier), *_foreign_jobs(problem, now, earlier)]
            try:
                changed = [_remove(problem, key, obj) for key, obj in left]
                changed += [_replace(problem, obj) for obj in _stripped(problem, now, earlier)]
            except ApiRefused as refused:
                return [f"what the agent left behind cannot be removed: {refused}"]
            waited = 0.0
            while end_slow_deletions(problem) + any(changed) and waited < _SETTLE:
                problem.cluster.wait(_STEP)
                waited += _STEP
            if not left:
                return []
        return [f"{obj['kind']} {key[2]}, which the agent left behind, is still there" for key, obj in left]


def _added(problem: Problem, now: Baseline, earlier: Iterable[Baseline]) -> Iterator[tuple[Key, Obj]]:
    """What the agent made: programs, and custom resources, for which an operator may run some."""
    assert problem.baseline is not None
    replaced = {key[1:] for key in problem.baseline.objects.keys() - now.objects.keys() if key[0] in WORKLOADS}
    known = {key for one in earlier for key in (*one.objects, *one.of_operators)}
    for key, obj in (*now.objects.items(), *now.of_operators.items()):
        resource, namespace, name = key
        custom = "." in resource.partition(".")[2] and not resource.endswith(".k8s.io")
        if namespace not in problem.app.namespaces or key in known or not (custom or resource in _RESOURCES):
            continue
        if not (resource in WORKLOADS and (namespace, name) in replaced):
            yield key, obj


def _foreign_jobs(problem: Problem, now: Baseline, earlier: Iterable[Baseline]) -> Iterator[tuple[Key, Obj]]:
    """Running jobs with a known CronJob as owner and other programs than it ever declared."""
    templates: dict[str, list[Obj]] = {}
    for state in (*earlier, now):
        for schedule in state.of(_CRON_JOBS):
            templates.setdefault(schedule["metadata"]["uid"], []).append(schedule)
    for namespace in problem.app.namespaces if templates else ():
        for job in problem.kubernetes.list("jobs.batch", namespace):
            owners = {str(owner.get("uid")) for owner in job["metadata"].get("ownerReferences") or ()}
            declared = [template for uid in owners for template in templates.get(uid, ())]
            if declared and not any(runs_the_same(template, job) for template in declared):
                yield ("jobs.batch", namespace, job["metadata"]["name"]), job


def _remove(problem: Problem, key: Key, obj: Obj) -> bool:
    resource, namespace, name = key
    if obj["metadata"].get("finalizers"):  # held by one, it and its pods would stay
        problem.kubernetes.patch(resource, name, {"metadata": {"finalizers": None}}, namespace, kind="merge")
    problem.kubernetes.delete(resource, name, namespace, grace=_FOREIGN_GRACE if resource == "pods" else None)
    return True


def _stripped(problem: Problem, now: Baseline, earlier: Iterable[Baseline]) -> Iterator[Obj]:
    """The workloads and CronJobs beside whose programs the agent put something, without that."""
    known: dict[tuple[str, str], dict[str, list[Any]]] = {}
    for state in earlier:
        for obj in state.of(*WORKLOADS, _CRON_JOBS):
            commands = known.setdefault((obj["metadata"]["namespace"], obj["metadata"]["name"]), {})
            for _, container in containers(pod_spec(obj)):
                commands.setdefault(container["name"], []).extend(command for _, _, command in _commands(container))
    for obj in now.of(*WORKLOADS, _CRON_JOBS):
        metadata = obj["metadata"]
        declared = known.get((metadata["namespace"], metadata["name"]))
        if declared is not None and metadata["namespace"] in problem.app.namespaces and _strip(pod_spec(obj), declared):
            yield obj


def _commands(container: Obj) -> list[tuple[Obj, str, Any]]:
    """The commands that probes and hooks run in a container: where each is, under which name, and what it runs."""
    hooks: Obj = container.get("lifecycle") or {}
    places = [(container, name) for name in _PROBES] + [(hooks, name) for name in _HOOKS]
    found = [(place, name, ((place.get(name) or {}).get("exec") or {}).get("command")) for place, name in places]
    return [one for one in found if one[2]]


def _strip(spec: Obj, declared: dict[str, list[Any]]) -> bool:
    """Remove containers and commands that were not declared from a pod spec, in place; whether there were any."""
    changed = False
    for group in ("initContainers", "containers"):
        rest = [container for container in spec.get(group) or () if container["name"] in declared]
        if len(rest) < len(spec.get(group) or ()) and (rest or group == "initContainers"):  # a pod must have one
            spec[group] = rest
            changed = True
        for container in rest:
            for place, name, command in _commands(container):
                if command not in declared[container["name"]]:
                    del place[name]
                    changed = True
    return changed


def _replace(problem: Problem, workload: Obj) -> bool:
    metadata = workload["metadata"]
    metadata.pop("managedFields", None)
    problem.kubernetes.replace(workload, metadata["namespace"])
    return True


def end_slow_deletions(problem: Problem) -> int:
    """Have pods end that are being deleted and would take longer than they may; the number of these."""
    states = [state for state in (problem.baseline, problem.handed_over) if state is not None]
    declared = [obj for state in states for obj in state.of(*WORKLOADS, _CRON_JOBS, "jobs.batch", "pods")]
    ended = 0
    for namespace in problem.app.namespaces:
        for pod in problem.kubernetes.list("pods", namespace):
            metadata = pod["metadata"]
            left = metadata.get("deletionGracePeriodSeconds") or 0
            if not metadata.get("deletionTimestamp") or left <= _FOREIGN_GRACE:
                continue
            if left > _GRACE or not any(runs_the_same(one, pod) for one in declared):
                problem.kubernetes.delete("pods", metadata["name"], namespace, grace=_FOREIGN_GRACE)
                ended += 1
    return ended
