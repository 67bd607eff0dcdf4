"""What the author of an agent script knows: the application, the healthy objects, the broken ones, and the answer key.

That is more than an agent knows. A cheat that fails in spite of this knowledge fails without it; an honest repair uses
it where an engineer would use the repository with the manifests.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from srearena.conductor.grading.baseline import WORKLOADS, Baseline, Difference
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.service.kubernetes import Obj
from srearena.service.readiness import missing_replicas

_SERVER_FIELDS = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink")
_ASSIGNED_TO_SERVICES = ("clusterIP", "clusterIPs", "healthCheckNodePort")


_TURNS = 8
"""Seeds after which a script that takes turns has been played on every problem."""


@cache
def _turns() -> dict[str, int]:
    """The seed, modulo `_TURNS`, at which it is a problem's turn: neighbours by application and level differ."""
    registry = ProblemRegistry()
    problems = {name: registry.get_problem(name) for name in registry.get_problem_ids()}
    ordered = sorted(problems, key=lambda name: (problems[name].app.name, problems[name].level, name))
    return {name: number % _TURNS for number, name in enumerate(ordered)}


@dataclass
class Scene:
    """One prepared problem, as the author of a script sees it."""

    problem: Problem
    broken: Baseline
    """The objects when the agent starts."""
    seed: int = 0

    @property
    def namespace(self) -> str:
        return self.problem.namespace

    @property
    def culprits(self) -> tuple[str, ...]:
        return self.problem.faulty_services

    @property
    def healthy(self) -> Baseline:
        assert self.problem.baseline is not None, "the episode is prepared"
        return self.problem.baseline

    @cached_property
    def changes(self) -> list[Difference]:
        """The objects that the fault changed."""
        return self.healthy.differences(self.broken)

    @property
    def has_turn(self) -> bool:
        """Whether scripts whose outcome hardly depends on the fault are played here: on one problem in eight."""
        return _turns().get(self.problem.id, 0) == self.seed % _TURNS

    def workloads(self) -> Iterator[tuple[str, Obj]]:
        """The present workloads of the application, with their resource."""
        for resource in WORKLOADS:
            for obj in self.broken.of(resource, namespace=self.namespace):
                yield resource, obj

    def failing(self) -> list[tuple[str, Obj]]:
        """The workloads that are not ready."""
        return [(resource, obj) for resource, obj in self.workloads() if missing_replicas(obj) is not None]

    def culprit_workloads(self) -> list[tuple[str, Obj]]:
        return [(resource, obj) for resource, obj in self.workloads() if obj["metadata"]["name"] in self.culprits]

    def services(self) -> list[Obj]:
        return [s for s in self.healthy.of("services", namespace=self.namespace) if s["spec"].get("selector")]

    def services_of(self, workload: Obj) -> list[Obj]:
        labels = workload["spec"]["template"]["metadata"].get("labels") or {}
        return [service for service in self.services() if service["spec"]["selector"].items() <= labels.items()]

    def frontend_service(self) -> Obj | None:
        frontend = self.problem.app.frontend
        if frontend is None:
            return None
        return self.broken.get("services", frontend.service, frontend.namespace or self.namespace)

    def revisions(self, name: str) -> list[tuple[int, Obj]]:
        """The revisions of a Deployment with their pod templates, the newest first."""
        found = []
        for one in self.problem.kubernetes.list("replicasets", self.namespace):
            metadata = one["metadata"]
            if any(owner["name"] == name for owner in metadata.get("ownerReferences", ())):
                number = (metadata.get("annotations") or {}).get("deployment.kubernetes.io/revision", "0")
                found.append((int(number), template_of(one)))
        return sorted(found, key=lambda pair: -pair[0])

    def is_autoscaled(self, workload: str) -> bool:
        scalers = self.healthy.of("horizontalpodautoscalers.autoscaling", namespace=self.namespace)
        return any(scaler["spec"]["scaleTargetRef"]["name"] == workload for scaler in scalers)

    # Command lines

    def kubectl(self, arguments: str, namespace: str | None = None) -> str:
        return f"kubectl -n {namespace or self.namespace} {arguments}"

    def patch(self, resource: str, name: str, patch: Any, *, kind: str = "strategic", namespace: str = "") -> str:
        text = shlex.quote(json.dumps(patch))
        return self.kubectl(f"patch {resource} {name} --type={kind} -p {text}", namespace)

    def undo(self, deployment: str, revision: int) -> str:
        return self.kubectl(f"rollout undo deployment/{deployment} --to-revision={revision}")


def template_of(workload: Obj) -> Obj:
    """The pod template without what controllers and restarts have added."""
    template: Obj = json.loads(json.dumps(workload["spec"]["template"]))
    metadata = template.setdefault("metadata", {})
    (metadata.get("labels") or {}).pop("pod-template-hash", None)
    metadata.pop("annotations", None)
    metadata.pop("creationTimestamp", None)
    return template


def apply(*objects: Obj, verb: str = "apply") -> str:
    """A command line that creates or changes these objects."""
    items = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
    return f"kubectl {verb} -f - <<'EOF'\n{items}\nEOF"


def as_manifest(obj: Obj) -> Obj:
    """An object as an engineer would write it: without status and without what the API server has added."""
    metadata = {key: value for key, value in obj["metadata"].items() if key not in _SERVER_FIELDS}
    annotations = metadata.get("annotations") or {}
    metadata["annotations"] = {k: v for k, v in annotations.items() if not k.startswith("deployment.kubernetes.io/")}
    manifest = {key: value for key, value in obj.items() if key not in ("status", "metadata")}
    manifest["metadata"] = metadata
    if obj.get("kind") == "Service":
        manifest["spec"] = {k: v for k, v in obj["spec"].items() if k not in _ASSIGNED_TO_SERVICES}
        if obj["spec"].get("clusterIP") == "None":
            manifest["spec"]["clusterIP"] = "None"
    return json.loads(json.dumps(manifest))  # type: ignore[no-any-return]
