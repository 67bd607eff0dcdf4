"""A real cluster that a kubeconfig points at: kind on this machine, a remote cluster, a cloud's.

Time is real, so `wait` sleeps. The cluster is neither started nor stopped, since it is not ours. Its telemetry
endpoints come from the configuration, and its machines are unreachable unless a `NodeAccess` is given.
"""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

from srearena.cluster.base import Cluster, ClusterError, NodeAccess, NodeAccessError, TelemetryEndpoints
from srearena.cluster.kubernetes.contexts import default_kubeconfig, read_context
from srearena.temporary import make_folder


class KubernetesCluster(Cluster):
    def __init__(
        self,
        kubeconfig: Path | None = None,
        *,
        context: str = "",
        name: str = "kubernetes",
        telemetry: TelemetryEndpoints | None = None,
        nodes: NodeAccess | None = None,
    ) -> None:
        """`context` names one of the kubeconfig's contexts; the current one by default."""
        self.context = read_context(kubeconfig or default_kubeconfig(), context)
        self._name = name
        self._telemetry = telemetry
        self._nodes: NodeAccess = nodes or NoNodeAccess()
        self._folder = make_folder("srearena")
        self.kubeconfig.touch(mode=0o600)
        self.kubeconfig.write_text(self.context.minimal_kubeconfig())

    @property
    def name(self) -> str:
        return self._name

    @property
    def kubeconfig(self) -> Path:
        return self._folder / "kubeconfig"

    @property
    def nodes(self) -> NodeAccess:
        return self._nodes

    def set_node_access(self, nodes: NodeAccess | None) -> None:
        """Set how the machines are reached; None where they are not."""
        self._nodes = nodes or NoNodeAccess()

    @property
    def telemetry(self) -> TelemetryEndpoints:
        if self._telemetry is None:
            raise ClusterError("config.yml does not say where this cluster's telemetry is read")
        return self._telemetry

    def wait(self, seconds: float) -> None:
        threading.Event().wait(seconds)

    def catch_up(self) -> None:
        """Do nothing: real time is always the present."""

    def close(self) -> None:
        """Remove the private kubeconfig; the cluster keeps running."""
        shutil.rmtree(self._folder, ignore_errors=True)


class NoNodeAccess(NodeAccess):
    """Machines that cannot be reached."""

    def operations(self) -> tuple[str, ...]:
        return ()

    def perform(self, operation: str, node: str, **arguments: object) -> None:
        raise NodeAccessError(f"there is no access to the machine {node} to {operation.replace('_', ' ')}")
