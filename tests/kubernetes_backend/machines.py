"""The machines of the single-machine cluster in tests/real_cluster: sets of namespaces, each held by a process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from srearena.cluster import NodeAccess, NodeAccessError
from tests.real_cluster.operations import OPERATIONS

_PERFORM = "import sys; from tests.real_cluster.operations import perform; perform(*sys.argv[1:])"


class HolderMachines(NodeAccess):
    def __init__(self) -> None:
        self._stopped: set[str] = set()

    def operations(self) -> tuple[str, ...]:
        return (*OPERATIONS, "restore")

    def perform(self, operation: str, node: str, **arguments: object) -> None:
        if operation == "restore":
            if node not in self._stopped:
                return
            operation = "start_kubelet"
        complaint = _done(operation, node)
        if complaint:
            raise NodeAccessError(f"on {node}: {complaint}")
        (self._stopped.add if operation == "stop_kubelet" else self._stopped.discard)(node)


def _done(operation: str, node: str) -> str:
    """Empty if it was done. In a process of its own: what it starts outlives the tests."""
    words = [sys.executable, "-c", _PERFORM, operation, node]
    here = Path(__file__).parents[2]
    done = subprocess.run(
        words,
        cwd=here,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    return (done.stderr.strip().splitlines() or ["it failed"])[-1] if done.returncode else ""
