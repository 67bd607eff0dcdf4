"""A real cluster, whichever the kubeconfig points at: kind on this machine, a remote one, a cloud.

Time is real there, so `wait` sleeps; nothing is started and nothing is stopped, since somebody else owns it. Its
telemetry is where its owner says it is, and its machines are out of reach unless a way to them is given.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from pathlib import Path

from srearena.cluster.base import Cluster, ClusterError, NodeAccess, NodeAccessError, TelemetryEndpoints
from srearena.cluster.kubernetes.contexts import default_kubeconfig, read_context


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
        """`context` is one of the kubeconfig's; its current one by default."""
        self.context = read_context(kubeconfig or default_kubeconfig(), context)
        self._name = name
        self._telemetry = telemetry
        self._nodes: NodeAccess = nodes or NoAccess()
        self._folder = Path(tempfile.mkdtemp(prefix="srearena-"))
        self.kubeconfig.touch(mode=0o600)
        self.kubeconfig.write_text(self.context.narrowed())

    @property
    def name(self) -> str:
        return self._name

    @property
    def kubeconfig(self) -> Path:
        return self._folder / "kubeconfig"

    @property
    def nodes(self) -> NodeAccess:
        return self._nodes

    def reach_machines(self, nodes: NodeAccess | None) -> None:
        """Show a way to the machines, where there is one."""
        self._nodes = nodes or NoAccess()

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
        shutil.rmtree(self._folder, ignore_errors=True)


class NoAccess(NodeAccess):
    """Machines that nobody showed us a way to."""

    def operations(self) -> tuple[str, ...]:
        return ()

    def perform(self, operation: str, node: str, **arguments: object) -> None:
        raise NodeAccessError(f"there is no way to the machine {node} to {operation.replace('_', ' ')}")
