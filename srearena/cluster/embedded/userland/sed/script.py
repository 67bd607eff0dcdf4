"""Reads sed scripts: addresses, commands and their arguments."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from srearena.cluster.embedded.userland.posix_regex import Regex, RegexError, compile_regex


class SedError(Exception):
    pass


@dataclass(slots=True)
class Address:
    line: int | None = None
    last: bool = False
    regex: Regex | None = None
    step: int = 0
    plus: int | None = None


@dataclass(slots=True)
class Command:
    name: str
    first: Address | None = None
    second: Address | None = None
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
class Script:
    text: str
    extended: bool
    position: int = 0
    commands: list[Command] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    blocks: list[int] = field(default_factory=list)
    last_regex: Regex | None = None

    def parse(self) -> list[Command]:
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

    def _address(self) -> Address | None:
        char = self._peek()
        if char.isdigit():
            found = re.compile(r"(\d{1,9})(?:~(\d{1,9}))?").match(self.text, self.position)
            assert found is not None
            self.position = found.end()
            return Address(line=int(found.group(1)), step=int(found.group(2) or 0))
        if char == "$":
            self.position += 1
            return Address(last=True)
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
            return Address(regex=self._regex(pattern, ignore))
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
        command = Command("")
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
                command.second = Address(plus=int(found.group(1)))
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

    def _arguments(self, command: Command) -> None:
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

    def _substitution(self, command: Command) -> None:
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
