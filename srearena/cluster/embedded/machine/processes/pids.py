"""PID namespaces."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from srearena.cluster.embedded.machine.files.streams import os_error

if TYPE_CHECKING:
    from srearena.cluster.embedded.machine.processes.process import Process


OWN_FIRST = 20_000
"""The first process ID of a container that shares the machine's process namespace."""


class PidNamespace:
    """A PID namespace; process 1 is the first to be started.

    Where a pod's containers share one, process 1 is the pod's own pause process, and theirs begin with `first`.
    """

    __slots__ = ("_next", "limit", "processes")

    def __init__(self, limit: int = 1024, first: int = 1) -> None:
        self.processes: dict[int, Process] = {}
        self.limit = limit
        self._next = first

    def enter(self, process: Process) -> int:
        if len(self.processes) >= self.limit:
            raise os_error(errno.EAGAIN)
        pid = self._next
        self._next += 1
        self.processes[pid] = process
        return pid

    def get(self, pid: int) -> Process | None:
        return self.processes.get(pid)

    @property
    def init(self) -> Process | None:
        return self.processes.get(1)
