"""Steps of faults that are not edits of one object: a command in a pod, something done to a machine, a pause.

What is typed into a pod leaves no object behind; what is done to a machine goes through the cluster's `nodes`, because
Kubernetes has no API for it. Both are undone by their opposite, which the fault has to name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from srearena.generators.fault.errors import FaultError
from srearena.generators.fault.registry import Fault
from srearena.generators.fault.testbed import Testbed
from srearena.service.kubernetes import Obj

__all__ = ["Command", "NodeOperation", "Pause", "pods_of", "selector_of", "workers"]


def selector_of(bed: Testbed, deployment: str) -> str:
    """The selector of a deployment, as a list request takes it."""
    wanted = bed.kubernetes.get("deployments", deployment, bed.namespace)["spec"]["selector"]["matchLabels"]
    return ",".join(f"{key}={value}" for key, value in wanted.items())


def pods_of(bed: Testbed, deployment: str) -> list[Obj]:
    """The running pods of a deployment."""
    pods = bed.kubernetes.list("pods", bed.namespace, labels=selector_of(bed, deployment))
    return [
        pod
        for pod in pods
        if (pod.get("status") or {}).get("phase") == "Running" and not pod["metadata"].get("deletionTimestamp")
    ]


def workers(bed: Testbed) -> list[str]:
    """The nodes that run applications."""
    return [
        node["metadata"]["name"]
        for node in bed.kubernetes.list("nodes")
        if "node-role.kubernetes.io/control-plane" not in (node["metadata"].get("labels") or {})
    ]


class Command(Fault):
    """A command run in a deployment's pod, and the one that takes it back."""

    def __init__(
        self,
        bed: Testbed,
        deployment: str,
        do: Sequence[str],
        undo: Sequence[str],
        holds: Callable[[], bool] | None = None,
    ) -> None:
        self._bed = bed
        self._deployment = deployment
        self._do = list(do)
        self._undo = list(undo)
        self._holds = holds

    def inject(self) -> None:
        self.run(self._do)

    def recover(self) -> None:
        self.run(self._undo)

    def run(self, command: Sequence[str]) -> str:
        """What a command prints; FaultError where it fails."""
        pods = pods_of(self._bed, self._deployment)
        if not pods:
            raise FaultError(f"{self._deployment} in {self._bed.namespace} has no running pod to run a command in")
        name = pods[0]["metadata"]["name"]
        done = self._bed.kubernetes.exec(name, list(command), self._bed.namespace)
        if done.status:
            words = (done.errors or done.output).strip()[-200:]
            raise FaultError(f"{command[0]} in {name} ended with {done.status}: {words}")
        return done.output

    def in_place(self) -> bool:
        return self._holds is None or self._holds()


class NodeOperation(Fault):
    """Something done to machines, and what takes it back; `do` is said with `arguments`, `undo` with `back`."""

    def __init__(
        self,
        bed: Testbed,
        nodes: Sequence[str],
        do: str,
        undo: str,
        arguments: Mapping[str, Any] | None = None,
        back: Mapping[str, Any] | None = None,
    ) -> None:
        self._bed = bed
        self._nodes = list(nodes)
        self._do = (do, dict(arguments or {}))
        self._undo = (undo, dict(back or {}))
        self._done = False

    def _perform(self, operation: str, arguments: Mapping[str, Any]) -> None:
        for node in self._nodes:
            self._bed.cluster.nodes.perform(operation, node, **arguments)

    def inject(self) -> None:
        self._perform(*self._do)
        self._done = True

    def recover(self) -> None:
        self._perform(*self._undo)
        self._done = False

    def in_place(self) -> bool:
        return self._done


class Pause(Fault):
    """Nothing broken: time for what came before to take hold."""

    def __init__(self, bed: Testbed, seconds: float) -> None:
        self._bed = bed
        self._seconds = seconds

    def inject(self) -> None:
        self._bed.cluster.wait(self._seconds)

    def recover(self) -> None:
        pass

    def in_place(self) -> bool:
        return True
