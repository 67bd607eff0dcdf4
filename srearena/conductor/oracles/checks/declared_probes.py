"""What a readiness probe ran on the healthy system succeeds, also where the probe is gone.

Removing a probe, or giving it a command that always succeeds, makes pods ready that do not work. Where a probe asks
over the network, other checks ask too; where it runs a command in the container, only that command tells.

Why it cannot be gamed: the command is the healthy workload's, run by the grader in the pods that the workload has now.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from srearena.conductor.grading.baseline import WORKLOADS
from srearena.conductor.oracles.checks.base import Check
from srearena.conductor.oracles.checks.readiness import find_workload, selected_pods
from srearena.service.errors import ServiceError
from srearena.service.kubernetes import Kubernetes, Obj

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem


class DeclaredProbes(Check):
    """Runs the commands of readiness probes that were removed or changed."""

    name = "declared-probes"

    def complaints(self, problem: Problem) -> list[str]:
        if problem.baseline is None:
            return []
        found: list[str] = []
        for namespace in problem.app.namespaces:
            for before in problem.baseline.of(*WORKLOADS, namespace=namespace):
                now = (
                    find_workload(problem.kubernetes, before["metadata"]["name"], namespace)
                    if _probes(before)
                    else None
                )
                if now is not None:
                    found += _failures(problem.kubernetes, before, now)
        return found


def _probes(workload: Obj) -> dict[str, list[str]]:
    """The commands of readiness probes, by container."""
    probes = {
        container["name"]: ((container.get("readinessProbe") or {}).get("exec") or {}).get("command")
        for container in workload["spec"]["template"]["spec"]["containers"]
    }
    return {name: command for name, command in probes.items() if command}


def _failures(api: Kubernetes, before: Obj, now: Obj) -> Iterator[str]:
    present, namespace = _probes(now), now["metadata"]["namespace"]
    gone = {name: command for name, command in _probes(before).items() if present.get(name) != command}
    for pod in selected_pods(now, api.list("pods", namespace)) if gone else ():
        for container, command in gone.items():
            try:
                result = api.exec(pod["metadata"]["name"], command, namespace, container=container)
                reason = result.errors.strip().partition("\n")[0] if result.status else ""
                failed = bool(result.status)
            except ServiceError as refused:
                failed, reason = True, str(refused)
            if failed:
                yield f"{container} of {pod['metadata']['name']}: the command of its readiness probe fails: {reason}"
