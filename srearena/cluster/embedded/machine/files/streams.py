"""Byte streams between processes, and between a container and external clients.

A file descriptor points at an `OpenFile`, which is counted: it closes when the last descriptor that shares it does.
Every buffer is bounded, so a writer that is faster than its reader waits (on virtual time) instead of growing.
Code outside the simulated machine (the API's exec and attach) uses the `*_now` methods and `watch`, which never wait.
"""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Callable
from random import Random

from srearena.cluster.embedded.clock import Clock, Signal

PIPE_CAPACITY = 64 * 1024
CHUNK = 64 * 1024
MAX_LINE = 1024 * 1024


def os_error(number: int, path: str | None = None) -> OSError:
    """The exception for an errno; Python picks the subclass (FileNotFoundError, BrokenPipeError...) by itself."""
    return OSError(number, os.strerror(number)) if path is None else OSError(number, os.strerror(number), path)


class OpenFile:
    """An open file description: what descriptors point at, shared by dup and by inheritance."""

    __slots__ = ("_references",)
    is_tty = False
    description = ""
    """What the links in /proc/PID/fd say it is; empty for a pipe."""

    def __init__(self) -> None:
        self._references = 1

    async def read(self, size: int = CHUNK) -> bytes:
        """Up to `size` bytes, as soon as there are any; b"" at the end."""
        raise os_error(errno.EBADF)

    async def write(self, data: bytes) -> None:
        raise os_error(errno.EBADF)

    async def read_line(self, limit: int = MAX_LINE) -> bytes:
        """One line with its newline, and not a byte more; what there was at the end of the stream."""
        line = bytearray()
        while len(line) < limit:
            byte = await self.read(1)
            line += byte
            if byte in (b"", b"\n"):
                break
        return bytes(line)

    def retain(self) -> OpenFile:
        self._references += 1
        return self

    def release(self) -> None:
        self._references -= 1
        if self._references == 0:
            self.closed()

    def closed(self) -> None:
        """The last descriptor went away."""


class Change:
    """A condition variable on virtual time; costs nothing while there are no waiters."""

    __slots__ = ("_clock", "_signal")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._signal: Signal[None] | None = None

    def notify(self) -> None:
        if self._signal is not None:
            signal, self._signal = self._signal, None
            signal.set(None)

    @property
    def signal(self) -> Signal[None]:
        """Set at the next change."""
        if self._signal is None:
            self._signal = Signal(self._clock)
        return self._signal

    async def wait(self, timeout: float | None = None) -> bool:
        return await self.signal.wait(timeout)


class Pipe:
    """A bounded byte queue with a reading and a writing end."""

    __slots__ = ("_change", "_chunks", "_size", "_watcher", "capacity", "clock", "reader_open", "writer_open")

    def __init__(self, clock: Clock, capacity: int = PIPE_CAPACITY) -> None:
        self.clock = clock
        self.capacity = capacity
        self.reader_open = True
        self.writer_open = True
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self._change = Change(clock)
        self._watcher: Callable[[], object] | None = None

    def ends(self) -> tuple[OpenFile, OpenFile]:
        """The reading and the writing end as files; call once."""
        return _PipeReader(self), _PipeWriter(self)

    @property
    def size(self) -> int:
        return self._size

    @property
    def room(self) -> int:
        return max(0, self.capacity - self._size)

    @property
    def at_end(self) -> bool:
        """Nothing left to read, and nothing will come."""
        return not self._size and not self.writer_open

    def watch(self, callback: Callable[[], object] | None) -> None:
        """Call `callback` (from the clock's queue) whenever bytes, room, or a closed end appear."""
        self._watcher = callback
        if callback is not None:
            self.clock.after(0, callback)

    def write_now(self, data: bytes) -> int:
        """Write as much as fits; returns the number of bytes."""
        if not self.reader_open or not self.writer_open:
            raise os_error(errno.EPIPE)
        taken = data[: self.room]
        if taken:
            self._chunks.append(bytes(taken))
            self._size += len(taken)
            self._changed()
        return len(taken)

    def read_now(self, size: int = CHUNK) -> bytes | None:
        """Available data, at most `size` bytes; b"" at the end of the stream, None if there is none yet."""
        if not self._size:
            return None if self.writer_open else b""
        taken: list[bytes] = []
        while size > 0 and self._chunks:
            chunk = self._chunks.popleft()
            if len(chunk) > size:
                self._chunks.appendleft(chunk[size:])
                chunk = chunk[:size]
            taken.append(chunk)
            size -= len(chunk)
            self._size -= len(chunk)
        self._changed()
        return b"".join(taken)

    def find(self, byte: bytes) -> int:
        """How many bytes are waiting before the first such one, or before the end of what is there."""
        before = 0
        for chunk in self._chunks:
            index = chunk.find(byte)
            if index >= 0:
                return before + index
            before += len(chunk)
        return before - 1

    async def read(self, size: int = CHUNK) -> bytes:
        while (found := self.read_now(size)) is None:
            await self._change.wait()
        return found

    async def write(self, data: bytes) -> None:
        written = self.write_now(data)
        while written < len(data):
            await self._change.wait()
            written += self.write_now(data[written : written + self.capacity])

    async def readable(self, timeout: float | None = None) -> bool:
        """True once a read would not wait, False after `timeout` virtual seconds."""
        deadline = None if timeout is None else self.clock.now + timeout
        while not self._size and self.writer_open:
            left = None if deadline is None else deadline - self.clock.now
            if left is not None and left <= 0:
                return False
            await self._change.wait(left)
        return True

    def close_writer(self) -> None:
        self.writer_open = False
        self._changed()

    def close_reader(self) -> None:
        self.reader_open = False
        self._chunks.clear()
        self._size = 0
        self._changed()

    def _changed(self) -> None:
        self._change.notify()
        if self._watcher is not None:
            self.clock.after(0, self._watcher)


class _PipeReader(OpenFile):
    __slots__ = ("pipe",)

    def __init__(self, pipe: Pipe) -> None:
        super().__init__()
        self.pipe = pipe

    async def read(self, size: int = CHUNK) -> bytes:
        return await self.pipe.read(size)

    async def read_line(self, limit: int = MAX_LINE) -> bytes:
        line = b""
        while not line.endswith(b"\n") and len(line) < limit:
            part = await self.pipe.read(max(1, self.pipe.find(b"\n") + 1))
            if not part:
                break
            line += part
        return line

    def closed(self) -> None:
        self.pipe.close_reader()


class _PipeWriter(OpenFile):
    __slots__ = ("pipe",)

    def __init__(self, pipe: Pipe) -> None:
        super().__init__()
        self.pipe = pipe

    async def write(self, data: bytes) -> None:
        await self.pipe.write(data)

    def closed(self) -> None:
        self.pipe.close_writer()


class NullFile(OpenFile):
    """/dev/null: discards writes, reads are empty."""

    __slots__ = ()
    description = "/dev/null"

    async def read(self, size: int = CHUNK) -> bytes:
        return b""

    async def write(self, data: bytes) -> None:
        return None


class ZeroFile(NullFile):
    """/dev/zero."""

    __slots__ = ()
    description = "/dev/zero"

    async def read(self, size: int = CHUNK) -> bytes:
        return bytes(size)


class FullFile(ZeroFile):
    """/dev/full: always out of space."""

    __slots__ = ()
    description = "/dev/full"

    async def write(self, data: bytes) -> None:
        raise os_error(errno.ENOSPC)


class RandomFile(NullFile):
    """/dev/urandom, drawn from the cluster's seeded generator."""

    __slots__ = ("_random",)
    description = "/dev/urandom"

    def __init__(self, random: Random) -> None:
        super().__init__()
        self._random = random

    async def read(self, size: int = CHUNK) -> bytes:
        return self._random.randbytes(size)


class BytesFile(OpenFile):
    """A fixed text to read: here-documents, generated files, a probe's empty input."""

    __slots__ = ("_data", "_offset")

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self._data = data
        self._offset = 0

    async def read(self, size: int = CHUNK) -> bytes:
        found = self._data[self._offset : self._offset + size]
        self._offset += len(found)
        return found

    async def read_line(self, limit: int = MAX_LINE) -> bytes:
        end = self._data.find(b"\n", self._offset)
        return await self.read(min(limit, (end + 1 if end >= 0 else len(self._data)) - self._offset))


class CommandFile(OpenFile):
    """A file of the kernel, for which each write is a command."""

    __slots__ = ("accept",)

    def __init__(self, accept: Callable[[bytes], object]) -> None:
        super().__init__()
        self.accept = accept

    async def write(self, data: bytes) -> None:
        self.accept(data)


class Capture(OpenFile):
    """Keeps the first `limit` bytes written to it and drops the rest, as the kubelet does with a probe's output."""

    __slots__ = ("_data", "limit")

    def __init__(self, limit: int = 16 * 1024 * 1024) -> None:
        super().__init__()
        self._data = bytearray()
        self.limit = limit

    async def write(self, data: bytes) -> None:
        room = self.limit - len(self._data)
        if room > 0:
            self._data += data[:room]

    @property
    def data(self) -> bytes:
        return bytes(self._data)

    @property
    def text(self) -> str:
        return self._data.decode(errors="replace")
