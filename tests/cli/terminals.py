"""A Python program on a terminal of its own."""

from __future__ import annotations

import os
import pty
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager


class Terminal:
    """A terminal, and what was printed on it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.printed = ""

    def wait_for(self, text: str) -> None:
        while text not in self.printed:
            ready, _, _ = select.select([self._descriptor], [], [], 60)
            assert ready, f"{text!r} was not printed: {self.printed!r}"
            self.printed += os.read(self._descriptor, 65536).decode()

    def read_all(self) -> str:
        """Everything that is printed until the program ends."""
        while True:
            try:
                data = os.read(self._descriptor, 65536)
            except OSError:  # Linux: the other end is closed
                return self.printed
            if not data:
                return self.printed
            self.printed += data.decode()

    def type(self, keys: str) -> None:
        os.write(self._descriptor, keys.encode())


@contextmanager
def started_on_terminal(*words: str, **variables: str) -> Iterator[Terminal]:
    """Start Python with arguments; it has ended when the block is left."""
    process, descriptor = pty.fork()
    if process == 0:
        os.execve(sys.executable, [sys.executable, *words], {**os.environ, **variables})
    try:
        yield Terminal(descriptor)
    finally:
        os.close(descriptor)
        os.waitpid(process, 0)
