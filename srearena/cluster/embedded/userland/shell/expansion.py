"""From words to arguments: parameters, command substitution, arithmetic, field splitting, pathnames, quote removal.

The pieces of a word are collected with their quoting first; splitting and globbing look only at what was not quoted.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING

from srearena.cluster.embedded.userland import glob_patterns
from srearena.cluster.embedded.userland.shell.arithmetic import ArithmeticFailure, evaluate
from srearena.cluster.embedded.userland.shell.braces import expand_braces
from srearena.cluster.embedded.userland.shell.lexer import BAD_SUBSTITUTION
from srearena.cluster.embedded.userland.shell.limits import MAX_FIELDS, MAX_TEXT
from srearena.cluster.embedded.userland.shell.substitution import substitute, substitute_process
from srearena.cluster.embedded.userland.shell.syntax import (
    DoubleQuoted,
    Literal,
    Parameter,
    Part,
    ProcessSubstitution,
    Substitution,
    Word,
)

if TYPE_CHECKING:
    from srearena.cluster.embedded.userland.shell.interpreter import Shell


class ExpansionError(Exception):
    """An expansion failed; the shell gives up the command (and, unless interactive, itself)."""

    def __init__(self, message: str, status: int = 2) -> None:
        super().__init__(message)
        self.message = message
        self.status = status


@dataclass(slots=True)
class Piece:
    text: str
    quoted: bool
    splits: bool = False
    """The result of an unquoted expansion: field splitting applies."""
    breaks: bool = False
    """A new field starts here, whatever IFS says ("$@")."""


class Expander:
    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self.weight = 0
        """Characters processed since the CPU cost was last charged."""

    # --- what the interpreter asks for -----------------------------------------------------------------------

    async def fields(self, words: tuple[Word, ...]) -> list[str]:
        """All arguments that the words stand for."""
        arguments: list[str] = []
        for word in words:
            literal = word.literal
            if (
                literal is not None
                and not glob_patterns.has_magic(literal)
                and literal[:1] not in ("~", "")
                and "{" not in literal
            ):
                arguments.append(literal)
                continue
            alternatives = expand_braces(word) if self._shell.dialect.braces else [word]
            for alternative in alternatives:
                arguments.extend(await self._fields_of(alternative))
            if len(arguments) > MAX_FIELDS:
                raise ExpansionError("Argument list too long", 126)
        return arguments

    async def text(self, word: Word, *, assignment: bool = False) -> str:
        """One string, neither split nor globbed: assignments, redirections, case subjects."""
        literal = word.literal
        if literal is not None and "~" not in literal:
            return literal
        pieces = await self._pieces(self._with_tilde(word, everywhere=assignment), quoted=False)
        return self._joined(pieces)

    async def pattern(self, word: Word) -> str:
        """A pattern in which quoted characters are escaped."""
        pieces = await self._pieces(self._with_tilde(word), quoted=False)
        return "".join(
            (glob_patterns.escaped(piece.text) if piece.quoted else piece.text)
            if not piece.breaks
            else " " + piece.text
            for piece in pieces
        )

    async def arithmetic(self, word: Word) -> int:
        text = "".join(piece.text for piece in await self._pieces(word, quoted=True))
        shell = self._shell
        try:
            return evaluate(
                text, lambda name: shell.variables.get(name) or "", shell.assign, extended=shell.dialect.extended
            )
        except ArithmeticFailure as failure:
            raise ExpansionError(shell.dialect.arithmetic_complaint(text, failure)) from None

    @staticmethod
    def _joined(pieces: list[Piece]) -> str:
        return "".join(" " + piece.text if piece.breaks else piece.text for piece in pieces)

    # --- tilde -----------------------------------------------------------------------------------------------

    def _with_tilde(self, word: Word, *, everywhere: bool = False) -> Word:
        first = word.parts[0] if word.parts else None
        if not isinstance(first, Literal) or first.quoted or "~" not in first.text:
            return word
        chunks = first.text.split(":") if everywhere else [first.text]
        expanded = [
            self._tilde(chunk, last=index == len(chunks) - 1 and len(word.parts) > 1)
            for index, chunk in enumerate(chunks)
        ]
        if expanded == chunks:
            return word
        text = ":".join(expanded)
        # What a tilde expands to is not expanded further.
        return Word((Literal(text, True), *word.parts[1:])) if text else word

    def _tilde(self, text: str, *, last: bool) -> str:
        if not text.startswith("~"):
            return text
        user, slash, rest = text[1:].partition("/")
        if last and not slash:
            return text
        home = self._shell.home(user)
        return text if home is None else home + slash + rest

    # --- pieces ----------------------------------------------------------------------------------------------

    async def _pieces(self, word: Word, *, quoted: bool) -> list[Piece]:
        pieces: list[Piece] = []
        size = 0
        for part in word.parts:
            found = await self._part(part, quoted)
            pieces.extend(found)
            size += sum(len(piece.text) for piece in found)
        self.weight += size
        if size > MAX_TEXT:
            raise ExpansionError("Out of space" if self._shell.dialect.name == "dash" else "out of memory")
        return pieces

    async def _part(self, part: Part, quoted: bool) -> list[Piece]:
        if isinstance(part, Literal):
            return [Piece(part.text, quoted or part.quoted)]
        if isinstance(part, DoubleQuoted):
            return await self._double_quoted(part)
        if isinstance(part, Parameter):
            return await self._parameter(part, quoted)
        if isinstance(part, Substitution):
            return [Piece(await substitute(self._shell, part.body), quoted, splits=not quoted)]
        if isinstance(part, ProcessSubstitution):
            return [Piece(substitute_process(self._shell, part.body, reading=part.reading), True)]
        return [Piece(str(await self.arithmetic(part.expression)), quoted, splits=not quoted)]

    async def _double_quoted(self, part: DoubleQuoted) -> list[Piece]:
        pieces: list[Piece] = []
        for inner in part.parts:
            pieces.extend(await self._part(inner, True))
        if pieces or (len(part.parts) == 1 and isinstance(part.parts[0], Parameter) and part.parts[0].name == "@"):
            return pieces
        return [Piece("", True)]

    async def _parameter(self, part: Parameter, quoted: bool) -> list[Piece]:
        shell = self._shell
        if part.operator == BAD_SUBSTITUTION:
            raise ExpansionError(shell.dialect.bad_substitution)
        if part.name in ("@", "*") and not part.length and part.operator in ("", ":"):
            return await self._positional(part, quoted)
        value = shell.parameter(part.name)
        if part.length:
            if value is None:
                self._check_set(part.name)
            count = len(shell.arguments) if part.name in ("@", "*") else len(value or "")
            return [Piece(str(count), quoted, splits=not quoted)]
        if not part.operator:
            if value is None:
                self._check_set(part.name)
            return [Piece(value or "", quoted, splits=not quoted)]
        return await self._operated(part, value, quoted)

    def _check_set(self, name: str) -> None:
        if "u" in self._shell.options and name not in ("@", "*"):
            text = "unbound variable" if self._shell.dialect.name == "bash" else "parameter not set"
            raise ExpansionError(f"{name}: {text}", self._shell.dialect.expansion_status)

    async def _positional(self, part: Parameter, quoted: bool) -> list[Piece]:
        arguments = self._shell.arguments
        if part.operator == ":" and part.argument is not None:
            start = await self.arithmetic(part.argument)
            count = None if part.second is None else await self.arithmetic(part.second)
            whole = [self._shell.name, *arguments]
            arguments = whole[start:] if count is None else whole[start : start + max(0, count)]
        if quoted and part.name == "*":
            separator = self._shell.variables.get("IFS")
            return [Piece((" " if separator is None else separator[:1]).join(arguments), True)]
        return [
            Piece(argument, quoted, splits=not quoted, breaks=index > 0) for index, argument in enumerate(arguments)
        ]

    async def _operated(self, part: Parameter, value: str | None, quoted: bool) -> list[Piece]:
        operator = part.operator
        argument = part.argument if part.argument is not None else Word(())
        kind = operator.removeprefix(":")
        if kind in ("-", "=", "?", "+") and operator != ":":
            missing = value is None or (operator.startswith(":") and value == "")
            if kind == "+":
                return (
                    []
                    if missing and not quoted
                    else [Piece("", quoted)]
                    if missing
                    else await self._argument(argument, quoted)
                )
            if not missing:
                return [Piece(value or "", quoted, splits=not quoted)]
            if kind == "-":
                return await self._argument(argument, quoted)
            text = self._joined(await self._pieces(self._with_tilde(argument), quoted=quoted))
            if kind == "?":
                default = "parameter not set" if value is None else "parameter null or not set"
                raise ExpansionError(f"{part.name}: {text or default}", self._shell.dialect.expansion_status)
            self._shell.assign(part.name, text)
            return [Piece(text, quoted, splits=not quoted)]
        if value is None:
            self._check_set(part.name)
        return [Piece(await self._transformed(part, value or "", argument), quoted, splits=not quoted)]

    async def _argument(self, argument: Word, quoted: bool) -> list[Piece]:
        """The word of `${x:-word}`: where it is not quoted, what it expands to is split like any expansion."""
        pieces = await self._pieces(self._with_tilde(argument), quoted=quoted)
        if quoted:
            return pieces or [Piece("", True)]
        return [Piece(p.text, p.quoted, p.splits or not p.quoted, p.breaks) for p in pieces]

    async def _transformed(self, part: Parameter, value: str, argument: Word) -> str:
        operator = part.operator
        if operator == ":":
            return await self._substring(part, value, argument)
        pattern = glob_patterns.compiled(await self.pattern(argument))
        if operator[0] == "#":
            length = pattern.prefix(value, longest=operator == "##")
            return value if length is None else value[length:]
        if operator[0] == "%":
            length = pattern.suffix(value, longest=operator == "%%")
            return value if length is None else value[: len(value) - length]
        if operator[0] in "^,":
            change = str.upper if operator[0] == "^" else str.lower
            return change(value) if len(operator) == 2 else change(value[:1]) + value[1:]
        replacement = "" if part.second is None else await self.text(part.second)
        return _replaced(value, pattern, replacement, operator)

    async def _substring(self, part: Parameter, value: str, argument: Word) -> str:
        start = await self.arithmetic(argument)
        start = max(0, len(value) + start) if start < 0 else start
        if part.second is None:
            return value[start:]
        count = await self.arithmetic(part.second)
        end = len(value) + count if count < 0 else start + count
        return value[start : max(start, end)]

    # --- fields ----------------------------------------------------------------------------------------------

    async def _fields_of(self, word: Word) -> list[str]:
        pieces = await self._pieces(self._with_tilde(word), quoted=False)
        fields = self._split(pieces)
        if "f" in self._shell.options:
            return [glob_patterns.unescaped(field) for field in fields]
        results: list[str] = []
        for field in fields:
            if glob_patterns.has_magic(field):
                found = self.glob(field)
                results.extend(found if found else [glob_patterns.unescaped(field)])
            else:
                results.append(glob_patterns.unescaped(field))
        return results

    def _split(self, pieces: list[Piece]) -> list[str]:
        """Fields as escaped patterns."""
        separators = self._shell.variables.get("IFS")
        separators = " \t\n" if separators is None else separators
        white = "".join(char for char in separators if char in " \t\n")
        hard = "".join(char for char in separators if char not in " \t\n")
        fields: list[str] = []
        current: list[str] | None = None

        def end() -> None:
            nonlocal current
            if current is not None:
                fields.append("".join(current))
                current = None

        for piece in pieces:
            if piece.breaks:
                end()
            if piece.quoted:
                current = (current or []) + [glob_patterns.escaped(piece.text)]
                continue
            if not piece.splits or not separators:
                if piece.text:
                    current = (current or []) + [_marked(piece.text)]
                continue
            index = 0
            text = piece.text
            while index < len(text):
                char = text[index]
                if char in hard:
                    if current is None:
                        current = []
                    end()
                    index += 1
                    while index < len(text) and text[index] in white:
                        index += 1
                elif char in white:
                    end()
                    while index < len(text) and text[index] in white:
                        index += 1
                    if index < len(text) and text[index] in hard and fields:
                        # White space around a hard separator belongs to it.
                        index += 1
                        while index < len(text) and text[index] in white:
                            index += 1
                else:
                    start = index
                    while index < len(text) and text[index] not in separators:
                        index += 1
                    current = (current or []) + [_marked(text[start:index])]
        end()
        return fields

    # --- pathnames -------------------------------------------------------------------------------------------

    def glob(self, pattern: str) -> list[str]:
        """The existing paths that match, sorted; none where there are none."""
        files = self._shell.process.files
        absolute = pattern.startswith("/")
        candidates = ["/" if absolute else ""]
        components = pattern.split("/")
        for index, component in enumerate(components):
            last = index == len(components) - 1
            if not component:
                if last and index > 0:
                    candidates = [c.rstrip("/") + "/" for c in candidates if files.is_dir(c or ".")]
                continue
            following: list[str] = []
            for candidate in candidates:
                if not glob_patterns.has_magic(component):
                    path = posixpath.join(candidate, glob_patterns.unescaped(component))
                    if files.exists(path, follow=not last):
                        following.append(path)
                    continue
                following.extend(self._matching(candidate, component, last))
            candidates = following[:MAX_FIELDS]
        return sorted(candidates)

    def _matching(self, folder: str, component: str, last: bool) -> list[str]:
        files = self._shell.process.files
        matcher = glob_patterns.compiled(component)
        try:
            names = files.listdir(folder or ".")
        except OSError:
            return []
        if component.startswith("."):
            names = [".", "..", *names]
        found = (
            posixpath.join(folder, name)
            for name in names
            if (not name.startswith(".") or component.startswith(".")) and matcher.matches(name)
        )
        return [path for path in found if last or files.is_dir(path)]


def _marked(text: str) -> str:
    """Unquoted text as a pattern: a backslash that came out of an expansion is an ordinary character."""
    return text.replace("\\", "\\\\")


def _replaced(value: str, pattern: glob_patterns.Pattern, replacement: str, operator: str) -> str:
    if operator == "/#":
        length = pattern.prefix(value, longest=True)
        return value if length is None else replacement + value[length:]
    if operator == "/%":
        length = pattern.suffix(value, longest=True)
        return value if length is None else value[: len(value) - length] + replacement
    if pattern.literal is not None:
        return value.replace(pattern.literal, replacement, -1 if operator == "//" else 1) if pattern.literal else value
    result: list[str] = []
    index = 0
    while index < len(value):
        length = pattern.prefix(value[index:], longest=True)
        if not length:
            result.append(value[index])
            index += 1
            continue
        result.append(replacement)
        index += length
        if operator == "/":
            break
    result.append(value[index:])
    return "".join(result)
