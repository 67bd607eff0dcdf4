"""Whether a server's data directory still takes writes, looked at every few seconds.

A disk fills, turns read-only or fails without notice; a server that caches results for bulk traffic has to detect it,
so that its `epoch` moves. Looking writes nothing.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Literal

from srearena.cluster.embedded.machine.processes.process import Process

INTERVAL = 5.0
ROOM = 64 * 1024
"""Bytes below which nothing more than a page or two fits."""
State = Literal["", "full", "readonly", "failing"]


def state_of(process: Process, folder: str) -> State:
    try:
        mount = process.files.stat(folder).mount
    except OSError as error:
        return "failing" if error.errno == errno.EIO else ""
    if not mount.writable:
        return "readonly"
    capacity, used = mount.volume.space.limits
    return "full" if capacity and capacity - used < ROOM else ""


class DiskWatch:
    def __init__(self, process: Process, folder: str, changed: Callable[[], object]) -> None:
        self.process = process
        self.folder = folder
        self.state: State = state_of(process, folder)
        self._changed = changed
        process.clock.after(INTERVAL, self._look)

    def look(self) -> State:
        """The state right now."""
        state = state_of(self.process, self.folder)
        if state != self.state:
            self.state = state
            self._changed()
        return state

    def _look(self) -> None:
        if not self.process.done.is_set:
            self.look()
            self.process.clock.after(INTERVAL, self._look)
