"""What can be done to a machine of the real cluster, under the names that the embedded cluster's node access has."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.real_cluster import programs
from tests.real_cluster.layout import STATE, Node
from tests.real_cluster.machines import RealClusterError, start_program, stop_program


def stop_kubelet(node: Node) -> None:
    stop_program(node, "kubelet")


def start_kubelet(node: Node) -> None:
    start_program(node, "kubelet", programs.kubelet(node, STATE / "keys"))


OPERATIONS: Mapping[str, Callable[[Node], None]] = {"stop_kubelet": stop_kubelet, "start_kubelet": start_kubelet}


def perform(operation: str, node: str) -> None:
    """Do one of `OPERATIONS` to the node of this name."""
    found = [one for one in map(Node, range(16)) if one.name == node and one.folder.exists()]
    if not found or operation not in OPERATIONS:
        raise RealClusterError(f"cannot {operation} on {node!r}: there are {', '.join(OPERATIONS)}")
    OPERATIONS[operation](found[0])
