"""Where tools read from: named files or standard input, by lines or as a whole."""

from __future__ import annotations

import errno
from collections import deque

from srearena.cluster.embedded.machine.files.streams import CHUNK, OpenFile, os_error
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland.tools.wording import complain

MAX_HELD = 64 * 1024 * 1024
"""Bytes that a tool that must hold its whole input (tar, gzip) can hold."""
MAX_LINES = 200_000
"""Lines that a tool that must hold all of them (sort, tac) can hold: sorting them takes a few seconds."""


class LineReader:
    """Lines of one file; the work of reading costs the process a little time."""

    def __init__(self, process: Process, file: OpenFile) -> None:
        self._process = process
        self._file = file
        self._buffer = b""
        self._lines: list[bytes] = []
        self._next = 0
        self._ended = False

    async def next(self) -> bytes | None:
        """The next line, with its newline if it has one; None at the end."""
        while self._next >= len(self._lines):
            if self._ended:
                return None
            data = await self._file.read(CHUNK)
            await self._process.spend()
            if not data:
                self._ended = True
                self._lines, self._next = ([self._buffer] if self._buffer else []), 0
                self._buffer = b""
                continue
            lines = (self._buffer + data).split(b"\n")
            self._buffer = lines.pop()
            self._lines, self._next = [line + b"\n" for line in lines], 0
        line = self._lines[self._next]
        self._next += 1
        return line


async def whole(process: Process, file: OpenFile, limit: int = MAX_HELD) -> bytes:
    """Everything up to the end of the stream."""
    chunks: list[bytes] = []
    size = 0
    while size < limit and (data := await file.read(CHUNK)):
        chunks.append(data)
        size += len(data)
        await process.spend()
    return b"".join(chunks)


async def _whole_lines(process: Process, file: OpenFile) -> bytes:
    """Everything up to the end of the stream; OSError where there are too many lines for the memory."""
    chunks: list[bytes] = []
    size = lines = 0
    while data := await file.read(CHUNK):
        chunks.append(data)
        size += len(data)
        lines += data.count(b"\n")
        if lines > MAX_LINES or size > MAX_HELD:
            raise os_error(errno.ENOMEM)
        await process.spend()
        await process.heed_signals()
    return b"".join(chunks)


async def ending(process: Process, file: OpenFile, lines: int) -> bytes:
    """At least the last `lines` lines. An endless line is held until memory ends, as a real tool would hold it."""
    before, chunks, buffered, newlines = process.memory, deque[bytes](), 0, 0
    while data := await file.read(CHUNK):
        buffered += len(data)
        newlines += data.count(b"\n")
        if buffered <= MAX_HELD:
            chunks.append(data)
        while chunks and newlines - (first := chunks[0].count(b"\n")) > lines:
            newlines -= first
            buffered -= len(chunks.popleft())
        process.set_memory(before + buffered)
        await process.spend()
        await process.heed_signals()
    process.set_memory(before)
    return b"".join(chunks)


async def opened(process: Process, name: str, path: str) -> OpenFile | None:
    """The file to read for an operand (`-` is standard input), or None after a complaint."""
    if path == "-":
        return process.fd(0).retain()
    try:
        return process.open(path, "r")
    except OSError as error:
        await complain(process, name, path, error)
        return None


async def held_lines(process: Process, name: str, paths: list[str]) -> tuple[list[str], int]:
    """All lines of all inputs, without newlines, and the exit status so far."""
    status = 0
    lines: list[str] = []
    for path in paths or ["-"]:
        file = await opened(process, name, path)
        if file is None:
            status = 1
            continue
        try:
            text = (await _whole_lines(process, file)).decode(errors="surrogateescape")
        except OSError as error:
            await complain(process, name, path, error)
            status = 1
            continue
        finally:
            file.release()
        found = text.split("\n")
        if found[-1] == "":
            found.pop()
        lines.extend(found)
    return lines, status
