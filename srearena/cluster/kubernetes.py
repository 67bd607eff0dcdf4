"""A real cluster, whichever the kubeconfig points at: kind on this machine, a remote one, a cloud.

Time is real there, so `wait` sleeps; nothing is started and nothing is stopped, since somebody else owns it. Its
telemetry is where its owner says it is, and its machines are out of reach unless a way to them is given.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

from srearena.cluster.base import Cluster, ClusterError, NodeAccess, NodeAccessError, TelemetryEndpoints


def default_kubeconfig() -> Path:
    """The file that kubectl would use: the first of `KUBECONFIG` that exists, or `~/.kube/config`."""
    named = [Path(part) for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    for path in (*named, Path.home() / ".kube" / "config"):
        if path.is_file():
            return path
    raise ClusterError("there is no kubeconfig: set KUBECONFIG, or put one at ~/.kube/config")


class KubernetesCluster(Cluster):
    def __init__(
        self, kubeconfig: Path | None = None, *, name: str = "kubernetes", telemetry: TelemetryEndpoints | None = None
    ) -> None:
        self._kubeconfig = kubeconfig or default_kubeconfig()
        if not self._kubeconfig.is_file():
            raise ClusterError(f"there is no kubeconfig at {self._kubeconfig}")
        self._name = name
        self._telemetry = telemetry

    @property
    def name(self) -> str:
        return self._name

    @property
    def kubeconfig(self) -> Path:
        return self._kubeconfig

    @property
    def nodes(self) -> NodeAccess:
        return _NoAccess()

    @property
    def telemetry(self) -> TelemetryEndpoints:
        if self._telemetry is None:
            raise ClusterError("config.yml does not say where this cluster's telemetry is read")
        return self._telemetry

    def wait(self, seconds: float) -> None:
        threading.Event().wait(seconds)

    def catch_up(self) -> None:
        """It is in the present already."""

    def close(self) -> None:
        """It goes on without us."""


class _NoAccess(NodeAccess):
    def operations(self) -> tuple[str, ...]:
        return ()

    def perform(self, operation: str, node: str, **arguments: object) -> None:
        raise NodeAccessError(f"there is no way to the machine {node} to {operation.replace('_', ' ')}")
