"""A pseudo terminal: the line discipline between a person's keyboard and the processes in front of it.

It is in canonical mode, as a shell without its own line editor leaves it: input is echoed and delivered line by
line, backspace erases, ^C interrupts the foreground process group, ^D on an empty line is the end of input.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from signal import Signals
from typing import TYPE_CHECKING

from srearena.cluster.embedded.clock import Clock
from srearena.cluster.embedded.machine.files.streams import CHUNK, Change, OpenFile, Pipe

if TYPE_CHECKING:
    from srearena.cluster.embedded.machine.processes.process import Process

MAX_LINE = 4096
_END_OF_INPUT = 0x04
_ERASE = (0x7F, 0x08)
_ERASE_WORD = 0x17
_ERASE_LINE = 0x15
_SIGNALS = {0x03: Signals.SIGINT, 0x1C: Signals.SIGQUIT, 0x1A: Signals.SIGTSTP}


class Terminal:
    """`feed` takes input; output goes to `output`, or to `on_output` where that is set."""

    __slots__ = (
        "_changed",
        "_interrupted",
        "_line",
        "_on_output",
        "_ready",
        "clock",
        "columns",
        "foreground",
        "hung_up",
        "output",
        "rows",
    )

    def __init__(self, clock: Clock, *, on_output: Callable[[bytes], object] | None = None) -> None:
        self.clock = clock
        self.output = Pipe(clock)
        self.rows = 24
        self.columns = 80
        self.foreground: Process | None = None
        """The process whose group the keyboard's signals go to."""
        self.hung_up = False
        self._interrupted = False
        self._on_output = on_output
        self._line = bytearray()
        self._ready: deque[bytes] = deque()
        self._changed = Change(clock)

    def file(self) -> OpenFile:
        """The terminal as a file for a process's descriptors."""
        return _TerminalFile(self)

    def feed(self, data: bytes) -> None:
        """Process input bytes."""
        for byte in data:
            self._key(byte)

    def _key(self, byte: int) -> None:
        if byte in _SIGNALS:
            self._line.clear()
            self._echo(b"^" + bytes((byte + 64,)) + b"\r\n")
            self._signal(_SIGNALS[byte])
            self._interrupted = True
            self._changed.notify()
        elif byte in (0x0D, 0x0A):
            self._echo(b"\r\n")
            self._hand_over(bytes(self._line) + b"\n")
        elif byte == _END_OF_INPUT:
            self._hand_over(bytes(self._line))
        elif byte in _ERASE:
            if self._line:
                self._erase(1)
        elif byte == _ERASE_LINE:
            self._erase(len(self._line))
        elif byte == _ERASE_WORD:
            text = bytes(self._line)
            self._erase(len(text) - (text.rstrip().rfind(b" ") + 1))
        elif len(self._line) < MAX_LINE:
            self._line.append(byte)
            self._echo(b"^" + bytes((byte + 64,)) if byte < 0x20 and byte != 0x09 else bytes((byte,)))

    def _erase(self, count: int) -> None:
        for _ in range(count):
            # A character of several bytes goes as a whole.
            while self._line and 0x80 <= self._line[-1] < 0xC0:
                self._line.pop()
            if self._line:
                self._line.pop()
                self._echo(b"\b \b")

    def _hand_over(self, data: bytes) -> None:
        self._line.clear()
        self._ready.append(data)
        self._changed.notify()

    def _echo(self, data: bytes) -> None:
        if self._on_output is not None:
            self._on_output(data)
        elif self.output.reader_open:
            self.output.write_now(data)

    def _signal(self, number: int) -> None:
        front = self.foreground
        if front is None:
            return
        for process in list(front.container.pids.processes.values()):
            if process.group == front.group:
                process.raise_signal(number)

    def resize(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self._signal(Signals.SIGWINCH)

    def hang_up(self) -> None:
        """Close the terminal (SIGHUP)."""
        if not self.hung_up:
            self.hung_up = True
            self._signal(Signals.SIGHUP)
            self._changed.notify()

    async def read(self, size: int) -> bytes:
        while not self._ready:
            if self.hung_up:
                return b""
            await self._changed.wait()
        data = self._ready.popleft()
        if len(data) > size:
            self._ready.appendleft(data[size:])
        return data[:size]

    async def read_line(self) -> bytes | None:
        """A line for a shell at its prompt; None where ^C took it away, b"" at the end."""
        self._interrupted = False
        while not self._ready:
            if self.hung_up:
                return b""
            await self._changed.wait()
            if self._interrupted:
                return None
        return self._ready.popleft()

    async def write(self, data: bytes) -> None:
        shown = data.replace(b"\n", b"\r\n")
        if self._on_output is not None:
            self._on_output(shown)
        elif self.output.reader_open:
            await self.output.write(shown)


class _TerminalFile(OpenFile):
    __slots__ = ("terminal",)
    is_tty = True
    description = "/dev/pts/0"

    def __init__(self, terminal: Terminal) -> None:
        super().__init__()
        self.terminal = terminal

    async def read(self, size: int = CHUNK) -> bytes:
        return await self.terminal.read(size)

    async def write(self, data: bytes) -> None:
        await self.terminal.write(data)

    def closed(self) -> None:
        self.terminal.output.close_writer()


def terminal_of(file: OpenFile) -> Terminal | None:
    return file.terminal if isinstance(file, _TerminalFile) else None
