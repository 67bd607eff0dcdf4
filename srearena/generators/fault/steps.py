"""Faults that do not change an API object: a command in a pod, an operation on a machine, a pause.

Operations on machines use the cluster's `nodes`, because Kubernetes has no API for them. A command or operation is
undone by its inverse, which the fault names.
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
    """The selector of a deployment as a label selector of a list request."""
    labels = bed.kubernetes.get("deployments", deployment, bed.namespace)["spec"]["selector"]["matchLabels"]
    return ",".join(f"{key}={value}" for key, value in labels.items())


def pods_of(bed: Testbed, deployment: str) -> list[Obj]:
    """The running pods of a deployment."""
    pods = bed.kubernetes.list("pods", bed.namespace, labels=selector_of(bed, deployment))
    return [
        pod
        for pod in pods
        if (pod.get("status") or {}).get("phase") == "Running" and not pod["metadata"].get("deletionTimestamp")
    ]


def workers(bed: Testbed) -> list[str]:
    """The names of all nodes except those of the control plane."""
    return [
        node["metadata"]["name"]
        for node in bed.kubernetes.list("nodes")
        if "node-role.kubernetes.io/control-plane" not in (node["metadata"].get("labels") or {})
    ]


class Command(Fault):
    """Runs a command in a pod of a deployment, and another one to undo it."""

    def __init__(
        self,
        bed: Testbed,
        deployment: str,
        do: Sequence[str],
        undo: Sequence[str],
        check: Callable[[], bool] | None = None,
    ) -> None:
        self._bed = bed
        self._deployment = deployment
        self._do = list(do)
        self._undo = list(undo)
        self._check = check

    def inject(self) -> None:
        self.run(self._do)

    def recover(self) -> None:
        self.run(self._undo)

    def run(self, command: Sequence[str]) -> str:
        """Run a command and return its output; FaultError where it fails."""
        pods = pods_of(self._bed, self._deployment)
        if not pods:
            raise FaultError(f"{self._deployment} in {self._bed.namespace} has no running pod to run a command in")
        name = pods[0]["metadata"]["name"]
        done = self._bed.kubernetes.exec(name, list(command), self._bed.namespace)
        if done.status:
            text = (done.errors or done.output).strip()[-200:]
            raise FaultError(f"{command[0]} in {name} ended with {done.status}: {text}")
        return done.output

    def in_place(self) -> bool:
        return self._check is None or self._check()


class NodeOperation(Fault):
    """Runs operation `do` on machines with `arguments`, and `undo` with `undo_arguments` to recover."""

    def __init__(
        self,
        bed: Testbed,
        nodes: Sequence[str],
        do: str,
        undo: str,
        arguments: Mapping[str, Any] | None = None,
        undo_arguments: Mapping[str, Any] | None = None,
    ) -> None:
        self._bed = bed
        self._nodes = list(nodes)
        self._do = (do, dict(arguments or {}))
        self._undo = (undo, dict(undo_arguments or {}))
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
    """Waits, so that the faults before it take effect."""

    def __init__(self, bed: Testbed, seconds: float) -> None:
        self._bed = bed
        self._seconds = seconds

    def inject(self) -> None:
        self._bed.cluster.wait(self._seconds)

    def recover(self) -> None:
        pass

    def in_place(self) -> bool:
        return True
