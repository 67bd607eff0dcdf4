"""The machines of the single-machine cluster in tests/real_cluster: sets of namespaces, each held by a process."""

from __future__ import annotations

from srearena.cluster import NodeAccess, NodeAccessError
from tests.real_cluster.machines import RealClusterError
from tests.real_cluster.operations import OPERATIONS, perform


class HolderMachines(NodeAccess):
    def operations(self) -> tuple[str, ...]:
        return (*OPERATIONS, "restore")

    def perform(self, operation: str, node: str, **arguments: object) -> None:
        try:
            # Nobody knows whether a kubelet runs, and one more start does no harm after a stop.
            for step in ("stop_kubelet", "start_kubelet") if operation == "restore" else (operation,):
                perform(step, node)
        except RealClusterError as problem:
            raise NodeAccessError(str(problem)) from problem
