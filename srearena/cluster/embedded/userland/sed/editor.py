"""Runs a sed script over lines: pattern space, hold space, ranges and branches."""

from __future__ import annotations

from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland.sed.script import Address, Command, SedError
from srearena.cluster.embedded.userland.sed.substitution import substituted
from srearena.cluster.embedded.userland.tools.inputs import LineReader

MAX_LOOPS = 10_000
MAX_SPACE = 256 * 1024
"""Characters of pattern and hold space; a script that wants more is out of memory."""
"""Branches within one line; a script that takes more is going round in circles."""


class Editor:
    """One run of a script over the inputs."""

    def __init__(self, process: Process, commands: list[Command], quiet: bool, *, in_place: bool = False) -> None:
        self.process = process
        self.commands = commands
        self.quiet = quiet
        self.in_place = in_place
        """The caller takes the output; it is not written."""
        self.pattern = ""
        self.hold = ""
        self.number = 0
        self.appended: list[str] = []
        self.output: list[str] = []
        self.exit_status: int | None = None
        self._lines: list[LineReader] = []
        self._ahead: bytes | None = None
        self._newline = True

    async def start(self, readers: list[LineReader]) -> None:
        self._lines = readers
        await self._advance()

    async def _advance(self) -> None:
        self._ahead = None
        while self._lines:
            self._ahead = await self._lines[0].next()
            if self._ahead is not None:
                return
            self._lines.pop(0)

    @property
    def at_last(self) -> bool:
        return self._ahead is None

    async def next_line(self) -> bool:
        if self._ahead is None:
            return False
        text = self._ahead.decode(errors="surrogateescape")
        self._newline = text.endswith("\n")
        self.pattern = text.removesuffix("\n")
        self.number += 1
        await self._advance()
        return True

    def emit(self, text: str, *, newline: bool = True) -> None:
        self.output.append(text + ("\n" if newline else ""))

    async def flush(self) -> None:
        if self.output:
            await self.process.write("".join(self.output))
            self.output = []

    def _matches(self, address: Address) -> bool:
        if address.regex is not None:
            return address.regex.search(self.pattern) is not None
        if address.last:
            return self.at_last
        if address.step:
            return self.number >= (address.line or 0) and (self.number - (address.line or 0)) % address.step == 0
        return self.number == address.line

    def _selected(self, command: Command) -> bool:
        if command.first is None:
            return True
        if command.second is None:
            return self._matches(command.first)
        second = command.second
        if command.active:
            ends = self.number >= command.started + second.plus if second.plus is not None else False
            if second.line is not None:
                if self.number > second.line:
                    command.active = False
                    return self._matches(command.first)
                ends = self.number == second.line
            elif second.plus is None:
                ends = self._matches(second)
            command.active = not ends
            return True
        if not self._matches(command.first):
            return False
        command.started = self.number
        single = (
            (second.line is not None and second.line <= self.number)
            or second.plus == 0
            or (second.last and self.at_last)
        )
        command.active = not single
        return True

    async def cycle(self) -> bool:
        """Run the script on the present line; False where it is over."""
        index = loops = 0
        replaced = False
        while index < len(self.commands):
            command = self.commands[index]
            index += 1
            if self._selected(command) is command.negated:
                if command.name == "{":
                    index = command.target
                continue
            name = command.name
            if name == "s" and command.regex is not None:
                self.pattern, count = substituted(
                    self.pattern,
                    command.regex,
                    command.replacement,
                    everywhere=command.everywhere,
                    number=max(1, command.number),
                )
                replaced = replaced or count > 0
                if count and command.prints:
                    self.emit(self.pattern)
            elif name == "d":
                await self._end_line(print_it=False)
                return True
            elif name == "D":
                head, newline, rest = self.pattern.partition("\n")
                if not newline:
                    await self._end_line(print_it=False)
                    return True
                self.pattern = rest
                del head
                index = 0
                loops += 1
            elif name in "qQ":
                await self._end_line(print_it=name == "q" and not self.quiet)
                self.exit_status = command.number
                return False
            elif name in "nN":
                if name == "n":
                    if not self.quiet:
                        self.emit(self.pattern)
                    self._flush_appended()
                    if not await self.next_line():
                        return False
                else:
                    before = self.pattern
                    if self.at_last:
                        await self._end_line(print_it=not self.quiet)
                        return False
                    await self.next_line()
                    self.pattern = f"{before}\n{self.pattern}"
            elif name in "bt":
                if name == "b" or replaced:
                    replaced = False
                    index = command.target if command.text else len(self.commands)
                    loops += 1
            else:
                self._simple(command)
            if len(self.pattern) + len(self.hold) > MAX_SPACE:
                raise SedError("memory exhausted")
            if loops > MAX_LOOPS:
                raise SedError("endless loop")
            if loops and loops % 100 == 0:
                await self.process.spend()
        await self._end_line(print_it=not self.quiet)
        return True

    def _simple(self, command: Command) -> None:
        match command.name:
            case "p":
                self.emit(self.pattern)
            case "P":
                self.emit(self.pattern.partition("\n")[0])
            case "=":
                self.emit(str(self.number))
            case "h":
                self.hold = self.pattern
            case "H":
                self.hold += "\n" + self.pattern
            case "g":
                self.pattern = self.hold
            case "G":
                self.pattern += "\n" + self.hold
            case "x":
                self.pattern, self.hold = self.hold, self.pattern
            case "z":
                self.pattern = ""
            case "l":
                self.emit(self.pattern.replace("\\", "\\\\").replace("\t", "\\t") + "$")
            case "y":
                self.pattern = self.pattern.translate(str.maketrans(command.text, command.replacement))
            case "a":
                self.appended.append(command.text)
            case "i":
                self.output.append(command.text)
            case "c":
                if command.second is None or not command.active:
                    self.output.append(command.text)
                self.pattern = "\0deleted"
            case "r":
                if self.process.files.is_file(command.text):
                    self.appended.append(self.process.files.read_text(command.text))

    def _flush_appended(self) -> None:
        self.output += self.appended
        self.appended = []

    async def _end_line(self, *, print_it: bool) -> None:
        if print_it and self.pattern != "\0deleted":
            self.emit(self.pattern, newline=self._newline or not self.at_last)
        self._flush_appended()
        if not self.in_place and (len(self.output) > 256 or self.number % 64 == 0):
            await self.flush()
