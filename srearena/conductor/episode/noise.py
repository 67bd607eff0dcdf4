"""Noise: what goes on in any living system beside an incident. Harmless, seeded, and recorded.

A pod of the front door is replaced, a workload is annotated, a config map appears that nobody reads, a link is a little
slow for a while. None of it touches what is at fault, and none of it needs repair: an agent that blames it is wrong.
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
Act = Callable[["Noise"], str]


class Noise:
    def __init__(self, problem: Problem, seed: int) -> None:
        self.problem = problem
        self.random = random.Random(f"{seed}:noise")
        self.done: list[str] = []
        """What was done, in words, for the record."""

    def happen(self, count: int = 3) -> list[str]:
        """Let a few harmless things happen; what they were."""
        for act in self.random.sample(_ACTS, k=min(count, len(_ACTS))):
            try:
                self.done.append(act(self))
            except (ServiceError, ClusterError):
                continue  # noise that cannot be made here is no loss
        return self.done

    def bystander(self) -> Obj:
        """A workload that has nothing to do with the fault."""
        problem = self.problem
        others = [
            obj
            for obj in problem.kubernetes.list("deployments", problem.namespace)
            if obj["metadata"]["name"] not in problem.faulty_services
        ]
        return self.random.choice(sorted(others, key=lambda obj: str(obj["metadata"]["name"])))


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


def _replace_front_door_pod(noise: Noise) -> str:
    problem, door = noise.problem, noise.problem.app.frontend
    if door is None or door.service in problem.faulty_services:
        return _annotate(noise)
    selector = problem.kubernetes.get("services", door.service, problem.namespace)["spec"]["selector"]
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


_ACTS: tuple[Act, ...] = (_annotate, _decoy, _replace_front_door_pod, _slow_link)
