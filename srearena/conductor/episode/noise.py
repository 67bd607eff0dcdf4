"""Noise: harmless changes that happen in any running system beside an incident. Seeded and recorded.

A pod of the frontend is replaced, a workload is annotated, an unused config map is created, a link has a higher latency
for a while. Noise never touches the faulty components and needs no repair: an agent that blames it is wrong.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from srearena.cluster import ClusterError
from srearena.conductor.problems.base import Problem
from srearena.service.errors import ServiceError
from srearena.service.kubernetes import Obj

_CHANGES = (
    ("release", "2026.11"),
    ("team", "platform"),
    ("reviewed-by", "ops"),
    ("cost-centre", "4711"),
)
_DECOYS = ("dashboards", "runbook-links", "rollout-notes", "alert-routing")
Action = Callable[["Noise"], str]


class Noise:
    """Harmless changes to one problem's application."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.problem = problem
        self.random = random.Random(f"{seed}:noise")
        self.performed: list[str] = []
        """Descriptions of what was done, for the result."""

    def perform(self, count: int = 3) -> list[str]:
        """Perform a few random actions and return their descriptions."""
        for action in self.random.sample(_ACTIONS, k=min(count, len(_ACTIONS))):
            try:
                self.performed.append(action(self))
            except (ServiceError, ClusterError):
                continue  # not possible on this cluster; other actions remain
        return self.performed

    def bystander(self) -> Obj:
        """A random Deployment that is not at fault."""
        problem = self.problem
        healthy = [
            obj
            for obj in problem.kubernetes.list("deployments", problem.namespace)
            if obj["metadata"]["name"] not in problem.faulty_services
        ]
        return self.random.choice(sorted(healthy, key=lambda obj: str(obj["metadata"]["name"])))


def _annotate(noise: Noise) -> str:
    problem, name = noise.problem, noise.bystander()["metadata"]["name"]
    key, value = noise.random.choice(_CHANGES)
    problem.kubernetes.patch(
        "deployments", name, {"metadata": {"annotations": {key: value}}}, problem.namespace, manager="kubectl-annotate"
    )
    return f"deployment {name} annotated with {key}"


def _decoy(noise: Noise) -> str:
    problem, name = noise.problem, noise.random.choice(_DECOYS)
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"version": "3"}}
    problem.kubernetes.create(body, problem.namespace)
    return f"config map {name} created"


def _replace_frontend_pod(noise: Noise) -> str:
    problem, front_door = noise.problem, noise.problem.app.frontend
    if front_door is None or front_door.service in problem.faulty_services:
        return _annotate(noise)
    selector = problem.kubernetes.get("services", front_door.service, problem.namespace)["spec"]["selector"]
    labels = ",".join(f"{key}={value}" for key, value in selector.items())
    pods = problem.kubernetes.list("pods", problem.namespace, labels=labels)
    pod = noise.random.choice(sorted(obj["metadata"]["name"] for obj in pods))
    problem.kubernetes.delete("pods", pod, problem.namespace)
    return f"pod {pod} replaced"


def _slow_link(noise: Noise) -> str:
    problem = noise.problem
    labels = noise.bystander()["spec"]["selector"]["matchLabels"]
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    pods = problem.kubernetes.list("pods", problem.namespace, labels=selector)
    pod = noise.random.choice(sorted(pods, key=lambda obj: str(obj["metadata"]["name"])))
    name, node = f"{problem.namespace}/{pod['metadata']['name']}", pod["spec"]["nodeName"]
    problem.cluster.nodes.perform("shape_network", node, pod=name, delay=0.02)
    problem.cluster.wait(30)
    problem.cluster.nodes.perform("shape_network", node, pod=name)
    return f"pod {name} was 20 ms slower for half a minute"


_ACTIONS: tuple[Action, ...] = (_annotate, _decoy, _replace_frontend_pod, _slow_link)
