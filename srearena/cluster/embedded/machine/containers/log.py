"""The log of a container: lines of standard output and error, as the runtime stores them for `kubectl logs`.

Lines carry the instant at which they were completed. The log is rotated as the kubelet does: when the current file
is full a new one begins, and only the current one is shown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from srearena.cluster.embedded.clock import Clock
from srearena.cluster.embedded.machine.files.streams import Change, OpenFile

MAX_LINE = 16 * 1024
MAX_BYTES = 10 * 1024 * 1024


class LogLine(NamedTuple):
    time: float
    stream: str
    """`stdout` or `stderr`."""
    text: bytes
    """Without the newline."""
    partial: bool = False
    """No newline ends it: the runtime split a long line here, or the container ended."""


class ContainerLog:
    __slots__ = (
        "_attached",
        "_bytes",
        "_changed",
        "_dropped_bytes",
        "_lines",
        "_pending",
        "before_rotation",
        "clock",
        "dropped",
        "limit",
    )

    def __init__(self, clock: Clock, limit: int = MAX_BYTES) -> None:
        self.clock = clock
        self.limit = limit
        self.dropped = 0
        """The number of lines removed by rotation; line numbers are not reused."""
        self.before_rotation: Callable[[], object] | None = None
        """Called before rotation, so that followers can read the lines that will be removed."""
        self._lines: list[LogLine] = []
        self._bytes = 0
        self._dropped_bytes = 0
        self._pending: dict[str, bytes] = {}
        self._changed = Change(clock)
        self._attached: tuple[Callable[[str, bytes], object], ...] = ()

    @property
    def end(self) -> int:
        """The number of the next line."""
        return self.dropped + len(self._lines)

    @property
    def size(self) -> int:
        return self._bytes

    @property
    def written(self) -> int:
        """Bytes written since the container was created, those of removed lines included."""
        return self._dropped_bytes + self._bytes

    def lines(self, start: int = 0) -> list[LogLine]:
        """The lines from number `start` on that are still there."""
        return self._lines[max(0, start - self.dropped) :]

    def text(self) -> str:
        """Everything, as `kubectl logs` prints it."""
        return "".join(line.text.decode(errors="replace") + ("" if line.partial else "\n") for line in self._lines)

    async def changed(self, timeout: float | None = None) -> bool:
        """Wait for the next line."""
        return await self._changed.wait(timeout)

    def on_change(self, callback: Callable[[], object]) -> None:
        """Call back once, at the next line."""
        self._changed.signal.then(callback)

    def attach(self, callback: Callable[[str, bytes], object]) -> Callable[[], None]:
        """Call `callback` with all further output (stream, data), until the returned function is called."""
        self._attached = (*self._attached, callback)

        def detach() -> None:
            self._attached = tuple(other for other in self._attached if other is not callback)

        return detach

    def write(self, stream: str, data: bytes) -> None:
        for callback in self._attached:
            callback(stream, data)
        if not self._pending and 0 < len(data) <= MAX_LINE and data.find(b"\n") == len(data) - 1:
            # The usual case: one whole line.
            self._add(LogLine(self.clock.now, stream, data[:-1]))
            self._changed.notify()
            return
        data = self._pending.pop(stream, b"") + data
        *whole, rest = data.split(b"\n")
        for line in whole:
            while len(line) > MAX_LINE:
                self._add(LogLine(self.clock.now, stream, line[:MAX_LINE], True))
                line = line[MAX_LINE:]
            self._add(LogLine(self.clock.now, stream, line))
        while len(rest) >= MAX_LINE:
            self._add(LogLine(self.clock.now, stream, rest[:MAX_LINE], True))
            rest = rest[MAX_LINE:]
        if rest:
            self._pending[stream] = rest
        if whole:
            self._changed.notify()

    def flush(self) -> None:
        """Write an unfinished last line when the container ends; it stays without a newline."""
        pending, self._pending = self._pending, {}
        for stream, text in pending.items():
            self._add(LogLine(self.clock.now, stream, text, True))
        self._changed.notify()

    def _add(self, line: LogLine) -> None:
        if self._bytes > self.limit:
            if self.before_rotation is not None:
                self.before_rotation()
            self.dropped += len(self._lines)
            self._lines = []
            self._dropped_bytes += self._bytes
            self._bytes = 0
        self._lines.append(line)
        self._bytes += len(line.text) + 1

    def writer(self, stream: str) -> OpenFile:
        return LogWriter(self, stream)


class LogWriter(OpenFile):
    """The writer of one stream of a log; writes never block."""

    __slots__ = ("log", "stream")

    def __init__(self, log: ContainerLog, stream: str) -> None:
        super().__init__()
        self.log = log
        self.stream = stream

    async def write(self, data: bytes) -> None:
        self.log.write(self.stream, data)

    def write_at_once(self, data: bytes) -> None:
        self.log.write(self.stream, data)
