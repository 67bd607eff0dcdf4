"""Process entry points, exit, execve, and errors of program start."""

from __future__ import annotations

import errno
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from srearena.cluster.embedded.machine.processes.process import Process

Entry = Callable[["Process"], Coroutine[Any, Any, int]]
"""What a process runs, to an exit status."""


class Exit(Exception):
    """Raised inside a process to end it with that status."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code & 0xFF


class Replaced(Exception):
    """Raised inside a process to replace its program (execve)."""

    def __init__(self, entry: Entry) -> None:
        super().__init__()
        self.entry = entry


class ExecError(Exception):
    """A program could not be started: errno and the requested name."""

    def __init__(self, name: str, number: int, *, searched: bool = False, late: bool = False) -> None:
        super().__init__(name, number)
        self.name = name
        self.number = number
        self.searched = searched
        """The name was looked for along $PATH and not found."""
        self.late = late
        """The file exists and is executable, but the kernel cannot run it."""

    @property
    def status(self) -> int:
        """The exit status of a shell for this error."""
        return 127 if self.number in (errno.ENOENT, errno.ENOTDIR) else 126
