"""sed: a stream editor with addresses, substitution, and the commands one meets in scripts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from srearena.cluster.embedded.node.process import Process
from srearena.cluster.embedded.node.shell.regex import Match, Regex, RegexError, compile_regex
from srearena.cluster.embedded.node.shell.tools.inputs import LineReader, opened
from srearena.cluster.embedded.node.shell.tools.options import UsageError, parse
from srearena.cluster.embedded.node.shell.tools.registry import tool
from srearena.cluster.embedded.node.shell.tools.wording import complain

MAX_LOOPS = 10_000
"""Branches within one line; a script that takes more is going round in circles."""


class SedError(Exception):
    pass


@dataclass(slots=True)
class _Address:
    line: int | None = None
    last: bool = False
    regex: Regex | None = None
    step: int = 0
    plus: int | None = None


@dataclass(slots=True)
class _Command:
    name: str
    first: _Address | None = None
    second: _Address | None = None
    negated: bool = False
    regex: Regex | None = None
    replacement: str = ""
    text: str = ""
    everywhere: bool = False
    prints: bool = False
    number: int = 1
    target: int = -1
    """Where a branch or a block's end leads."""
    active: bool = False
    started: int = 0


@dataclass(slots=True)
class _Script:
    text: str
    extended: bool
    position: int = 0
    commands: list[_Command] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    blocks: list[int] = field(default_factory=list)
    last_regex: Regex | None = None

    def parse(self) -> list[_Command]:
        while True:
            self._skip(" \t\n;")
            if self.position >= len(self.text):
                break
            if self.text[self.position] == "#":
                self.position = self._line_end()
                continue
            self._command()
        if self.blocks:
            raise SedError("unmatched `{'")
        for command in self.commands:
            if command.name in "bt" and command.text:
                if command.text not in self.labels:
                    raise SedError(f"can't find label for jump to `{command.text}'")
                command.target = self.labels[command.text]
        return self.commands

    def _skip(self, characters: str) -> None:
        while self.position < len(self.text) and self.text[self.position] in characters:
            self.position += 1

    def _line_end(self) -> int:
        end = self.text.find("\n", self.position)
        return len(self.text) if end < 0 else end

    def _peek(self) -> str:
        return self.text[self.position] if self.position < len(self.text) else ""

    def _address(self) -> _Address | None:
        char = self._peek()
        if char.isdigit():
            found = re.compile(r"(\d{1,9})(?:~(\d{1,9}))?").match(self.text, self.position)
            assert found is not None
            self.position = found.end()
            return _Address(line=int(found.group(1)), step=int(found.group(2) or 0))
        if char == "$":
            self.position += 1
            return _Address(last=True)
        if char == "/" or char == "\\":
            if char == "\\":
                self.position += 1
            delimiter = self._peek()
            self.position += 1
            pattern = self._delimited(delimiter, regex=True)
            ignore = False
            if self._peek() == "I":
                ignore = True
                self.position += 1
            return _Address(regex=self._regex(pattern, ignore))
        return None

    def _regex(self, pattern: str, ignore: bool) -> Regex:
        if not pattern:
            if self.last_regex is None:
                raise SedError("no previous regular expression")
            return self.last_regex
        try:
            self.last_regex = compile_regex(pattern, extended=self.extended, ignore_case=ignore)
        except RegexError as error:
            raise SedError(str(error)) from None
        return self.last_regex

    def _delimited(self, delimiter: str, *, regex: bool) -> str:
        if not delimiter or delimiter == "\n":
            raise SedError("unterminated address regex")
        parts: list[str] = []
        in_set = False
        while self.position < len(self.text):
            char = self.text[self.position]
            self.position += 1
            if char == delimiter and not in_set:
                return "".join(parts)
            if char == "\\" and self.position < len(self.text):
                following = self.text[self.position]
                self.position += 1
                if following == delimiter and not in_set:
                    parts.append(following if following != "&" or regex else "\\&")
                elif following == "n":
                    parts.append("\n" if regex else "\\n")
                else:
                    parts.append(char + following)
                continue
            if regex and char == "[" and not in_set:
                in_set = True
                parts.append(char)
                for extra in ("^", "]"):
                    if self._peek() == extra:
                        parts.append(extra)
                        self.position += 1
                continue
            if in_set and char == "]":
                in_set = False
            parts.append(char)
        raise SedError("unterminated `s' command")

    def _command(self) -> None:
        command = _Command("")
        command.first = self._address()
        self._skip(" \t")
        if command.first is not None and self._peek() == ",":
            self.position += 1
            self._skip(" \t")
            if self._peek() == "+":
                found = re.compile(r"\+(\d{1,9})").match(self.text, self.position)
                if found is None:
                    raise SedError("expected newer version of sed")
                self.position = found.end()
                command.second = _Address(plus=int(found.group(1)))
            else:
                command.second = self._address()
            if command.second is None:
                raise SedError("unexpected `,'")
        self._skip(" \t")
        if self._peek() == "!":
            command.negated = True
            self.position += 1
            self._skip(" \t")
        command.name = self._peek()
        self.position += 1
        if not command.name:
            raise SedError("missing command")
        self._arguments(command)
        if command.name != ":":
            self.commands.append(command)

    def _arguments(self, command: _Command) -> None:
        name = command.name
        if name == "s":
            self._substitution(command)
        elif name == "y":
            delimiter = self._peek()
            self.position += 1
            command.text = self._delimited(delimiter, regex=False)
            command.replacement = self._delimited(delimiter, regex=False)
            if len(command.text) != len(command.replacement):
                raise SedError("strings for `y' command are different lengths")
        elif name in "aic":
            self._skip(" \t")
            if self._peek() == "\\":
                self.position += 1
                self._skip(" \t")
                if self._peek() == "\n":
                    self.position += 1
            end = self.position
            lines: list[str] = []
            while end < len(self.text):
                stop = self.text.find("\n", end)
                stop = len(self.text) if stop < 0 else stop
                line = self.text[end:stop]
                end = stop + 1
                lines.append(line.removesuffix("\\"))
                if not line.endswith("\\"):
                    break
            self.position = end
            command.text = "\n".join(lines) + "\n"
        elif name in ":btrw":
            end = min(
                self._line_end(),
                self.text.find(";", self.position) if ";" in self.text[self.position :] else len(self.text),
            )
            if name in "rw":
                end = self._line_end()
            command.text = (
                self.text[self.position : end].strip().rstrip("}").strip()
                if name in "bt"
                else self.text[self.position : end].strip()
            )
            self.position = end
            if name == ":":
                self.labels[command.text] = len(self.commands)
        elif name == "{":
            self.blocks.append(len(self.commands))
        elif name == "}":
            if not self.blocks:
                raise SedError("unexpected `}'")
            self.commands[self.blocks.pop()].target = len(self.commands)
        elif name in "qQ":
            self._skip(" \t")
            found = re.compile(r"\d{1,3}").match(self.text, self.position)
            if found is not None:
                command.number = int(found.group())
                self.position = found.end()
            else:
                command.number = 0
        elif name not in "dDgGhHxnNpPlz=":
            raise SedError(f"unknown command: `{name}'")
        if name not in "aic{}:btrw":
            self._skip(" \t")
            if self._peek() not in ("", ";", "\n", "}", "#"):
                raise SedError("extra characters after command")

    def _substitution(self, command: _Command) -> None:
        delimiter = self._peek()
        self.position += 1
        pattern = self._delimited(delimiter, regex=True)
        command.replacement = self._delimited(delimiter, regex=False)
        ignore = False
        while self._peek() and self._peek() in "gpiIm0123456789wMe":
            flag = self._peek()
            self.position += 1
            if flag == "g":
                command.everywhere = True
            elif flag == "p":
                command.prints = True
            elif flag in "iI":
                ignore = True
            elif flag.isdigit():
                command.number = int(flag)
        if self._peek() not in ("", ";", "\n", "}", " ", "\t", "#"):
            raise SedError("unknown option to `s'")
        command.regex = self._regex(pattern, ignore)


def _filled(template: str, text: str, found: Match) -> str:
    """A replacement with & and \\1 filled in, and \\U \\L \\E obeyed."""
    result: list[str] = []
    change = ""
    once = ""
    index = 0

    def add(piece: str) -> None:
        nonlocal once
        if change:
            piece = piece.upper() if change == "U" else piece.lower()
        if once and piece:
            piece = (piece[0].upper() if once == "u" else piece[0].lower()) + piece[1:]
            once = ""
        result.append(piece)

    while index < len(template):
        char = template[index]
        index += 1
        if char == "&":
            add(text[found.start : found.end])
        elif char == "\\" and index < len(template):
            following = template[index]
            index += 1
            if following.isdigit():
                span = (found.start, found.end) if following == "0" else None
                if following != "0" and int(following) <= len(found.groups):
                    span = found.groups[int(following) - 1]
                add("" if span is None else text[span[0] : span[1]])
            elif following in "ULE":
                change = "" if following == "E" else following
            elif following in "ul":
                once = following
            else:
                add({"n": "\n", "t": "\t", "r": "\r"}.get(following, following))
        else:
            add(char)
    return "".join(result)


def substituted(text: str, regex: Regex, template: str, *, everywhere: bool, number: int) -> tuple[str, int]:
    """The text with matches replaced, and how many were."""
    result: list[str] = []
    position = start = count = seen = 0
    while start <= len(text) and (found := regex.search(text, start)) is not None:
        if found.start == found.end and found.start < position:
            start = found.start + 1
            continue
        if found.start == found.end == position and seen and position > 0 and start == position:
            # An empty match right behind the last one does not count.
            if position >= len(text):
                break
            start = position + 1
            empty = regex.search(text, start)
            if empty is None:
                break
            found = empty
        seen += 1
        if seen >= number:
            result.append(text[position : found.start])
            result.append(_filled(template, text, found))
            position = found.end
            count += 1
            if not everywhere:
                break
        if found.end == found.start:
            start = found.end + 1
        else:
            start = found.end
    result.append(text[position:])
    return "".join(result), count


class _Editor:
    """One run of a script over the inputs."""

    def __init__(self, process: Process, commands: list[_Command], quiet: bool) -> None:
        self.process = process
        self.commands = commands
        self.quiet = quiet
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

    def _matches(self, address: _Address) -> bool:
        if address.regex is not None:
            return address.regex.search(self.pattern) is not None
        if address.last:
            return self.at_last
        if address.step:
            return self.number >= (address.line or 0) and (self.number - (address.line or 0)) % address.step == 0
        return self.number == address.line

    def _selected(self, command: _Command) -> bool:
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
            if loops > MAX_LOOPS:
                raise SedError("endless loop")
            if loops and loops % 100 == 0:
                await self.process.spend()
        await self._end_line(print_it=not self.quiet)
        return True

    def _simple(self, command: _Command) -> None:
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
        if len(self.output) > 256 or self.number % 64 == 0:
            await self.flush()


_LONG = {
    "quiet": "n",
    "silent": "n",
    "expression=": "e",
    "file=": "f",
    "regexp-extended": "E",
    "in-place?=": "i",
    "null-data": "z",
    "separate": "s",
}


@tool("sed")
async def sed(process: Process, args: list[str]) -> int:
    in_place = any(re.match(r"-[nErsz]*i", arg) for arg in args) or any(arg.startswith("--in-place") for arg in args)
    suffix = next((found.group(1) for arg in args if (found := re.match(r"-[nErsz]*i(.*)", arg))), "")
    words = [re.sub(r"^(-[nErsz]*)i.*$", r"\1", arg) if re.match(r"-[nErsz]*i", arg) else arg for arg in args]
    options = parse([word for word in words if word != "-"] if in_place else words, "nErsuz", "ef", long=_LONG)
    scripts = list(options.all("e"))
    for path in options.all("f"):
        try:
            scripts.append(process.files.read_text(path))
        except OSError as error:
            await process.error(f"sed: couldn't open file {path}: {error.strerror}\n")
            return 1
    if not scripts:
        if not options.operands:
            raise UsageError("no script specified")
        scripts.append(options.operands.pop(0))
    text = "\n".join(scripts)
    quiet = "n" in options or text.startswith("#n\n")
    extended = bool({"E", "r"} & options.flags)
    try:
        if in_place:
            return await _edit_in_place(process, text, extended, quiet, options.operands, suffix)
        editor = _Editor(process, _Script(text, extended).parse(), quiet)
        return await _edit(process, editor, options.operands or ["-"])
    except SedError as error:
        await process.error(f"sed: -e expression #1, char {max(1, len(text))}: {error}\n")
        return 1


async def _edit(process: Process, editor: _Editor, paths: list[str]) -> int:
    status = 0
    files = []
    try:
        for path in paths:
            file = await opened(process, "sed", path)
            if file is None:
                status = 2 if process.container.program.family.dialect == "gnu" else 1
            else:
                files.append(file)
        await editor.start([LineReader(process, file) for file in files])
        while await editor.next_line():
            if not await editor.cycle():
                break
        await editor.flush()
    except IsADirectoryError:
        await process.error(f"sed: couldn't edit {paths[0]}: not a regular file\n")
        status = 4
    finally:
        for file in files:
            file.release()
    return status if editor.exit_status is None else editor.exit_status


async def _edit_in_place(
    process: Process, text: str, extended: bool, quiet: bool, paths: list[str], suffix: str
) -> int:
    status = 0
    for path in paths:
        editor = _Editor(process, _Script(text, extended).parse(), quiet)
        try:
            file = process.open(path, "r")
        except OSError as error:
            await complain(process, "sed", path, error)
            status = 1
            continue
        kept: list[str] = []
        try:
            await editor.start([LineReader(process, file)])
            while await editor.next_line():
                going = await editor.cycle()
                kept += editor.output
                editor.output = []
                if not going:
                    break
        finally:
            file.release()
        try:
            if suffix:
                process.files.write_bytes(path + suffix, process.files.read_bytes(path))
            process.files.write_bytes(path, "".join(kept).encode(errors="surrogateescape"))
        except OSError as error:
            await process.error(f"sed: couldn't open temporary file {path}: {error.strerror}\n")
            status = 4
    return status
