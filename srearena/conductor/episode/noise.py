"""Noise: innocent changes that happen in any running system, before and after an incident. Seeded and recorded.

Workloads get new revisions, are restarted and scaled, ConfigMaps, Services and nodes are edited, objects are added, by
the same authors as the fault (`generators.fault.authors`). So neither the newest change, nor a field manager, nor a
rollout history with two revisions tells the fault. Noise keeps the application healthy and needs no repair: an agent
that blames it is wrong.

Invariants: what is changed is drawn from the objects of the healthy system, so the same seed gives the same changes
with and without the fault; after the fault, no component that it affects gets new pods, except workloads whose pod
template holds the fault and keeps it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from srearena.cluster import ClusterError
from srearena.conductor.episode.innocent_objects import INNOCENT_OBJECTS
from srearena.conductor.problems.base import Problem
from srearena.generators.fault.authors import Author, draw_author
from srearena.service.errors import ServiceError
from srearena.service.kubernetes import Obj

_BEFORE, _AFTER = (8, 14), (2, 9)
"""How many changes there are before and after the fault."""
_FOLLOW_UPS = 0.6
"""The share of faults in a pod template that innocent revisions of the same workload may follow."""
_QUIET = 75.0
"""Seconds without changes before the baseline is captured, so that rollouts are complete and rates are back."""
_QUIET_AFTER = 40.0
_NOT_RESTARTED = frozenset({"cart", "consul", "flagd", "kafka", "load-generator", "loadgenerator", "nacos"})
"""Workloads whose restart users notice: they keep registrations, queues or flags in memory, accept connections before
they can serve (cart of the Astronomy Shop), or are the load itself."""
_ANNOTATIONS = ("reviewed-by", "cost-centre", "team", "on-call", "runbook", "tier", "last-audit")
_VARIABLES = ("BUILD_ID", "GIT_COMMIT", "RELEASE_CHANNEL", "DEPLOY_ENV", "FEATURE_SET", "TRACE_TEAM")
"""Environment variables that no program of the applications reads."""


@dataclass(frozen=True, slots=True)
class Target:
    """An object of the healthy system that noise may change."""

    resource: str
    name: str
    namespace: str

    def __str__(self) -> str:
        return f"{self.resource.removesuffix('s')} {self.name}"


class Noise:
    """Innocent changes to the system of one problem."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.problem = problem
        self.random = random.Random(f"{seed}:noise")
        self.performed: list[str] = []
        """Descriptions of what was done, for the result."""
        self.targets: dict[str, list[Target]] = {}
        self.fault_injected = False
        self._follow_up = ""
        self.shared = False
        """Whether the system is for other problems too: then the first choice is taken, whatever they affect."""
        self.edited: set[str] = set()
        """The objects so chosen. A problem that affects none of them would have had the same changes."""

    def before_fault(self, seconds: float) -> None:
        """Run the healthy system for so long, with changes."""
        self.targets = {resource: list(self._existing(resource)) for resource in _RESOURCES}
        self._run(seconds, self.random.randint(*_BEFORE), min(_QUIET, seconds / 2))

    def after_fault(self, seconds: float) -> None:
        """Run the system for so long after the fault, with changes that do not interfere with it."""
        self.fault_injected = True
        if self.random.random() < _FOLLOW_UPS and self.problem.edited_workloads:
            self._follow_up = self.problem.edited_workloads[0]
        self._run(seconds, self.random.randint(*_AFTER), min(_QUIET_AFTER, seconds / 2))

    def _run(self, seconds: float, count: int, quiet: float) -> None:
        wait, passed = self.problem.cluster.wait, 0.0
        for moment in sorted(self.random.uniform(0.0, seconds - quiet) for _ in range(count)):
            wait(moment - passed)
            passed = moment
            self._perform()
        wait(max(seconds - passed, 0.0))

    def _perform(self) -> None:
        actions, weights = zip(*_ACTIONS, strict=True)
        action: Action = self.random.choices(actions, weights)[0]
        author = draw_author(self.random)
        try:
            description = action(self, author)
        except (ServiceError, ClusterError):
            return  # not possible on this cluster; other changes remain
        if description:
            self.performed.append(description)

    def _existing(self, resource: str) -> Iterator[Target]:
        problem = self.problem
        for namespace in ("",) if resource == "nodes" else problem.app.namespaces:
            names = [str(obj["metadata"]["name"]) for obj in problem.kubernetes.list(resource, namespace or None)]
            yield from (Target(resource, name, namespace) for name in sorted(names) if name != "kube-root-ca.crt")

    def choose(self, resource: str, allowed: Callable[[Target], bool] = lambda target: True) -> Target | None:
        """A random object of the healthy system; None where none is allowed."""
        # All are drawn from, so that the same seed draws the same numbers whatever is allowed.
        targets = self.targets.get(resource, [])
        for target in self.random.sample(targets, len(targets)):
            if allowed(target):
                return target
        return None

    def choose_rollout(self) -> Target | None:
        """A workload for a new revision; after some faults, first the one that has the fault and keeps it."""
        chosen, name = self.choose("deployments", self.may_restart), self._follow_up
        if not name:
            return chosen
        self._follow_up = ""
        return next((target for target in self.targets["deployments"] if target.name == name), chosen)

    def may_restart(self, target: Target) -> bool:
        """Whether new pods of this workload change nothing: neither for users nor for the fault."""
        problem, name = self.problem, target.name
        if name in _NOT_RESTARTED:
            return False
        if not self.fault_injected or name in problem.edited_workloads:
            return True
        return not problem.affects_new_pods and name not in problem.affected_components

    def may_edit(self, target: Target) -> bool:
        """Before the fault anything; after it, its objects get no other edits than innocent revisions."""
        return not self.fault_injected or self.is_bystander(target)

    def is_bystander(self, target: Target) -> bool:
        if self.shared and not self.fault_injected:
            self.edited.add(target.name)
            return True
        return target.name not in self.problem.affected_components

    def patch(self, target: Target, patch: Obj, author: Author) -> None:
        api = self.problem.kubernetes
        api.patch(target.resource, target.name, patch, target.namespace, manager=author.updates_as)


Action = Callable[[Noise, Author], str]
"""Makes one change as an author and describes it; an empty text where there is nothing to change."""


def _new_revision(noise: Noise, author: Author) -> str:
    """A rollout: another annotation, variable or setting in the pod template."""
    number = noise.random.randrange(10_000, 100_000)
    change = noise.random.choice(("annotation", "variable", "variable", "grace period"))
    variable = noise.random.choice(_VARIABLES)
    target = noise.choose_rollout()
    if target is None:
        return ""
    api = noise.problem.kubernetes
    pod = api.get("deployments", target.name, target.namespace)["spec"]["template"]["spec"]
    template: Obj = {"metadata": {"annotations": {"checksum/config": f"{number:x}"}}}
    if change == "variable":
        # The last container is the application's own, also where a fault put another before it.
        container = pod["containers"][-1]["name"]
        template = {"spec": {"containers": [{"name": container, "env": [{"name": variable, "value": f"{number}"}]}]}}
    elif change == "grace period" and not noise.fault_injected:
        template = {"spec": {"terminationGracePeriodSeconds": 31 + number % 14}}
    noise.patch(target, {"spec": {"template": template}}, author)
    return f"{target}: a new revision with another {change} ({author.updates_as})"


def _restart(noise: Noise, author: Author) -> str:
    target = noise.choose("deployments", noise.may_restart)
    if target is None:
        return ""
    noise.problem.kubernetes.restart(target.resource, target.name, target.namespace)
    return f"{target}: restarted"


def _annotate(noise: Noise, author: Author) -> str:
    resource = noise.random.choice(("deployments", "deployments", "services", "configmaps", "nodes"))
    key, value = noise.random.choice(_ANNOTATIONS), f"{noise.random.randrange(1, 500)}"
    target = noise.choose(resource, noise.may_edit)
    if target is None:
        return ""
    noise.patch(target, {"metadata": {"annotations": {key: value}}}, author)
    return f"{target}: annotated with {key} ({author.updates_as})"


def _label_service(noise: Noise, author: Author) -> str:
    target, value = noise.choose("services", noise.may_edit), f"{noise.random.randrange(1, 40)}"
    if target is None:
        return ""
    noise.patch(target, {"metadata": {"labels": {"release": f"r{value}"}}}, author)
    return f"{target}: labelled ({author.updates_as})"


def _edit_config_map(noise: Noise, author: Author) -> str:
    revision = f"{noise.random.randrange(2, 60)}"
    target = noise.choose("configmaps", noise.is_bystander)
    if target is None:
        return ""
    noise.patch(target, {"data": {"revision": revision}}, author)
    return f"{target}: revision {revision} ({author.updates_as})"


def _rollout_settings(noise: Noise, author: Author) -> str:
    """Settings of a Deployment that start no rollout."""
    target, seconds = noise.choose("deployments", noise.may_edit), noise.random.randrange(300, 900, 30)
    if target is None:
        return ""
    noise.patch(target, {"spec": {"progressDeadlineSeconds": seconds}}, author)
    return f"{target}: progress deadline of {seconds} s ({author.updates_as})"


def _add_object(noise: Noise, author: Author) -> str:
    make = noise.random.choice(INNOCENT_OBJECTS)
    bystander = noise.choose("deployments", noise.is_bystander)
    if bystander is None:
        return ""
    api, namespace = noise.problem.kubernetes, bystander.namespace
    selector = api.get("deployments", bystander.name, namespace)["spec"]["selector"]["matchLabels"]
    obj = make(bystander.name, selector)
    resource = api.resource_of(obj)
    if api.find(resource.name, obj["metadata"]["name"], namespace if resource.namespaced else None) is not None:
        return ""
    api.create(obj, namespace if resource.namespaced else None, manager=author.creates_as)
    return f"{obj['kind']} {obj['metadata']['name']} added ({author.creates_as})"


_RESOURCES = ("deployments", "services", "configmaps", "nodes")
_ACTIONS: tuple[tuple[Action, int], ...] = (
    (_new_revision, 8),
    (_restart, 2),
    (_annotate, 3),
    (_label_service, 2),
    (_edit_config_map, 2),
    (_rollout_settings, 2),
    (_add_object, 3),
)
"""Each with its weight. Rollouts are the most frequent change of a system under development."""
