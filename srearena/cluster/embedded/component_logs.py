"""What programs of the cluster itself log about the work that the simulator's components do in their place.

Each message is one that the real program logs at its default verbosity (`-v=0`, which is how kubeadm starts them), so
most of their work is silent here too. A program that does not run logs nothing.
"""

from __future__ import annotations

from collections.abc import Callable

API_SERVER, CONTROLLER_MANAGER, METRICS_SERVER = "kube-apiserver", "kube-controller-manager", "metrics-server"
PROVISIONER, ETCD = "local-path-provisioner", "etcd"
Write = Callable[[str, str], None]
"""Writes a line: its severity (I, W or E) and its text, from the place in the source on."""


class ComponentLogs:
    """The logs of the control plane's programs that run now, by the program's name."""

    def __init__(self) -> None:
        self._writers: dict[str, Write] = {}

    def open(self, program: str, write: Write) -> None:
        self._writers[program] = write

    def close(self, program: str, write: Write) -> None:
        """Forget a log, unless a later run of the program has taken its place."""
        if self._writers.get(program) is write:
            del self._writers[program]

    def write(self, program: str, severity: str, place: str, text: str) -> None:
        """Log one line; `place` is the file and the line in the real program's source."""
        if (write := self._writers.get(program)) is not None:
            write(severity, f"{place}] {text}")
