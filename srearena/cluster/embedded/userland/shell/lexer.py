"""Splits shell text into tokens: words with their parts, operators, newlines.

The lexer reads on demand, one token ahead at most, because what a character means depends on where the parser is.
It always moves forward and nests only so deep, so it ends on every input, with tokens or with a `ShellSyntaxError`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from srearena.cluster.embedded.userland.shell.dialect import Dialect
from srearena.cluster.embedded.userland.shell.syntax import (
    Arithmetic,
    DoubleQuoted,
    Literal,
    Node,
    Parameter,
    Part,
    ProcessSubstitution,
    Redirect,
    Substitution,
    Word,
)
from srearena.cluster.embedded.userland.shell.tokens import Kind, ShellSyntaxError, Token

MAX_NESTING = 40
BAD_SUBSTITUTION = "bad"


_OPERATORS = ("&&", "||", ";;", "<<-", "<<", ">>", "<&", ">&", "<>", ">|", "<", ">", "|", "&", ";", "(", ")")
_EXTENDED_OPERATORS = ("&>>", "&>", "<<<", ";&", *_OPERATORS)
_OPERATOR_STARTS = frozenset("&|;<>()")
_METACHARACTERS = frozenset(" \t\n|&;()<>")
_PLAIN = re.compile(r"""[^ \t\n|&;()<>\\'"$`]+""")
"""Characters of a word that stand for themselves."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DIGITS = re.compile(r"\d+")
_DESCRIPTOR = re.compile(r"\d{1,3}(?=[<>])")
_CODE = re.compile(r"x([0-9a-fA-F]{1,2})|([0-7]{1,3})")
_NOTHING_LEFT = re.compile(r"(?:\s|#[^\n]*(?:\n|\Z))*\Z")
_SPECIAL_PARAMETERS = "@*#?-$!0123456789"
_ANSI_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b", "E": "\x1b"}
_PARAMETER_OPERATORS = (":-", ":=", ":?", ":+", "-", "=", "?", "+", "%%", "%", "##", "#")
_EXTENDED_PARAMETER_OPERATORS = (*_PARAMETER_OPERATORS, "//", "/#", "/%", "/", "^^", "^", ",,", ",", ":")


class Lexer:
    def __init__(
        self,
        text: str,
        dialect: Dialect,
        parse_nested: Callable[[Lexer], Node],
        *,
        line: int = 1,
        depth: int = 0,
    ) -> None:
        self.text = text
        self.dialect = dialect
        self.position = 0
        self.line = line
        self.depth = depth
        self._parse_nested = parse_nested
        """Parses commands from this lexer up to a closing parenthesis."""
        self._operators = _EXTENDED_OPERATORS if dialect.extended else _OPERATORS
        self._peeked: Token | None = None
        self._documents: list[tuple[Redirect, str, bool, bool]] = []
        self.awaits_document = False
        """The text ended inside a here-document."""

    # --- tokens ----------------------------------------------------------------------------------------------

    def peek(self) -> Token:
        if self._peeked is None:
            self._peeked = self._read_token()
        return self._peeked

    def take(self) -> Token:
        token = self.peek()
        self._peeked = None
        return token

    @property
    def at_end(self) -> bool:
        """Only blanks, comments and newlines are left."""
        if self._peeked is not None:
            return self._peeked.kind is Kind.END
        return _NOTHING_LEFT.match(self.text, self.position) is not None

    def _at(self, offset: int = 0) -> str:
        index = self.position + offset
        return self.text[index] if index < len(self.text) else ""

    def _starts(self, text: str) -> bool:
        return self.text.startswith(text, self.position)

    def _advance(self, count: int = 1) -> str:
        taken = self.text[self.position : self.position + count]
        self.line += taken.count("\n")
        self.position += count
        return taken

    def error(self, message: str, *, incomplete: bool = False) -> ShellSyntaxError:
        return ShellSyntaxError(message, self.line, incomplete=incomplete)

    def _unterminated(self, what: str) -> ShellSyntaxError:
        text = self.dialect.unterminated if what in ("'", '"') else self.dialect.missing_end
        return self.error(text.format(what), incomplete=True)

    def skip_blanks(self) -> None:
        while True:
            if self._at() in (" ", "\t"):
                self._advance()
            elif self._starts("\\\n"):
                self._advance(2)
            elif self._at() == "#":
                while self._at() not in ("", "\n"):
                    self._advance()
            else:
                return

    def _read_token(self) -> Token:
        self.skip_blanks()
        line = self.line
        char = self._at()
        if not char:
            if self._documents:
                self._read_documents()
            return Token(Kind.END, "", line)
        if char == "\n":
            self._advance()
            self._read_documents()
            return Token(Kind.NEWLINE, "\n", line)
        digits = _DESCRIPTOR.match(self.text, self.position)
        if digits is not None:
            self._advance(len(digits.group()))
            return Token(Kind.DESCRIPTOR, digits.group(), line)
        if self.dialect.braces and self.text[self.position : self.position + 2] in ("<(", ">("):
            reading = self._advance(2) == "<("
            return Token(Kind.WORD, "<(...)", line, Word((ProcessSubstitution(self._nested_commands(), reading),)))
        for operator in self._operators if char in _OPERATOR_STARTS else ():
            if self._starts(operator):
                self._advance(len(operator))
                return Token(Kind.OPERATOR, operator, line)
        start = self.position
        word = self.read_word(_METACHARACTERS)
        return Token(Kind.WORD, self.text[start : self.position], line, word)

    # --- here-documents --------------------------------------------------------------------------------------

    def expect_document(self, redirect: Redirect, delimiter: str, *, strip_tabs: bool, quoted: bool) -> None:
        """The body of this here-document begins after the next newline."""
        self._documents.append((redirect, delimiter, strip_tabs, quoted))

    def _read_documents(self) -> None:
        documents, self._documents = self._documents, []
        for redirect, delimiter, strip_tabs, quoted in documents:
            lines: list[str] = []
            while True:
                if not self._at():
                    self.awaits_document = True
                    break
                end = self.text.find("\n", self.position)
                end = len(self.text) if end < 0 else end
                line = self._advance(end - self.position)
                if self._at() == "\n":
                    self._advance()
                if strip_tabs:
                    line = line.lstrip("\t")
                if line == delimiter:
                    break
                lines.append(line + "\n")
            text = "".join(lines)
            if quoted:
                redirect.document = Word((Literal(text, True),))
            else:
                inner = Lexer(text, self.dialect, self._parse_nested, line=self.line, depth=self.depth + 1)
                redirect.document = Word((DoubleQuoted(inner._read_quoted("")),))

    # --- words -----------------------------------------------------------------------------------------------

    def read_word(self, stop: frozenset[str]) -> Word:
        """Everything up to an unquoted character of `stop`."""
        self._check_depth()
        parts: list[Part] = []
        plain: list[str] = []

        def flush() -> None:
            if plain:
                parts.append(Literal("".join(plain)))
                plain.clear()

        while True:
            char = self._at()
            if not char or char in stop:
                break
            if char == "\\":
                if self._starts("\\\n"):
                    self._advance(2)
                    continue
                flush()
                self._advance()
                escaped = self._advance()
                parts.append(Literal(escaped or "\\", True))
            elif char == "'":
                flush()
                parts.append(Literal(self._single_quoted(), True))
            elif char == '"':
                flush()
                self._advance()
                parts.append(DoubleQuoted(self._read_quoted('"')))
            elif self.dialect.extended and self._starts("$'"):
                flush()
                self._advance()
                parts.append(Literal(self._ansi_quoted(), True))
            elif char in "$`":
                flush()
                part = self._expansion()
                if part is None:
                    plain.append(self._advance())
                else:
                    parts.append(part)
            else:
                run = _PLAIN.match(self.text, self.position) if stop == _METACHARACTERS else None
                plain.append(self._advance(len(run.group()) if run is not None else 1))
        flush()
        return Word(tuple(parts))

    def _check_depth(self) -> None:
        if self.depth > MAX_NESTING:
            raise self.error("syntax error: nested too deeply")

    def _single_quoted(self) -> str:
        self._advance()
        end = self.text.find("'", self.position)
        if end < 0:
            raise self._unterminated("'")
        text = self._advance(end - self.position)
        self._advance()
        return text

    def _ansi_quoted(self) -> str:
        self._advance()
        text: list[str] = []
        while True:
            char = self._advance()
            if not char:
                raise self._unterminated("'")
            if char == "'":
                return "".join(text)
            if char != "\\":
                text.append(char)
                continue
            code = _CODE.match(self.text, self.position)
            if code is not None:
                self._advance(len(code.group()))
                text.append(chr(int(code.group(1), 16) if code.group(1) else int(code.group(2), 8) & 0xFF))
            else:
                escaped = self._advance()
                text.append(_ANSI_ESCAPES.get(escaped, escaped if escaped in "\\'\"?" else "\\" + escaped))

    def _read_quoted(self, close: str) -> tuple[Part, ...]:
        """The inside of double quotes (or of a here-document, with no closing quote)."""
        self._check_depth()
        parts: list[Part] = []
        plain: list[str] = []

        def flush() -> None:
            if plain:
                parts.append(Literal("".join(plain), True))
                plain.clear()

        while True:
            char = self._at()
            if not char:
                if close:
                    raise self._unterminated(close)
                break
            if char == close:
                self._advance()
                break
            if char == "\\":
                following = self._at(1)
                if following == "\n":
                    self._advance(2)
                elif following and following in ('$`"\\' if close else "$`\\"):
                    self._advance()
                    plain.append(self._advance())
                else:
                    plain.append(self._advance())
            elif char in "$`":
                part = self._expansion(quoted=True)
                if part is None:
                    plain.append(self._advance())
                else:
                    flush()
                    parts.append(part)
            else:
                plain.append(self._advance())
        flush()
        return tuple(parts)

    # --- expansions ------------------------------------------------------------------------------------------

    def _expansion(self, *, quoted: bool = False) -> Part | None:
        """What a `$` or a backquote starts; None where it is an ordinary character."""
        if self._at() == "`":
            return self._backquoted(quoted)
        if self._starts("$(("):
            found = self._arithmetic()
            if found is not None:
                return found
        if self._starts("$("):
            self._advance(2)
            return Substitution(self._nested_commands())
        if self._starts("${"):
            return self._braced(quoted)
        following = self._at(1)
        if following and following in _SPECIAL_PARAMETERS:
            self._advance(2)
            return Parameter(following)
        name = _NAME.match(self.text, self.position + 1)
        if name is None:
            return None
        self._advance(1 + len(name.group()))
        return Parameter(name.group())

    def _took_expansion(self, parts: list[Part], plain: list[str]) -> bool:
        """Add to the parts what a `$` or a backquote starts, after the plain text before it, if it starts something."""
        part = self._expansion(quoted=True)
        if part is None:
            return False
        parts += (Literal("".join(plain), True), part)
        plain.clear()
        return True

    def _nested_commands(self) -> Node:
        self._check_depth()
        peeked, self._peeked = self._peeked, None
        self.depth += 1
        try:
            return self._parse_nested(self)
        finally:
            self.depth -= 1
            self._peeked = peeked

    def _backquoted(self, quoted: bool) -> Substitution:
        self._advance()
        text: list[str] = []
        line = self.line
        while True:
            char = self._advance()
            if not char:
                raise self._unterminated("`")
            if char == "`":
                break
            if char == "\\" and self._at() in (("`", "\\", "$", '"') if quoted else ("`", "\\", "$")):
                char = self._advance()
            text.append(char)
        inner = Lexer("".join(text) + ")", self.dialect, self._parse_nested, line=line, depth=self.depth + 1)
        self._check_depth()
        return Substitution(inner._parse_nested(inner))

    def _arithmetic(self) -> Arithmetic | None:
        """`$((...))`, or None where it turns out to be `$( (...) )`."""
        start, line = self.position, self.line
        self._advance(3)
        word = self.read_arithmetic()
        if word is None:
            self.position, self.line = start, line
            return None
        return Arithmetic(word)

    def read_arithmetic(self) -> Word | None:
        """Up to the closing `))`; None where there is none."""
        self._check_depth()
        parts: list[Part] = []
        plain: list[str] = []
        depth = 0
        self.depth += 1
        try:
            while True:
                char = self._at()
                if not char:
                    return None
                if char == ")" and depth == 0:
                    if self._at(1) != ")":
                        return None
                    self._advance(2)
                    break
                if char in "$`" and self._took_expansion(parts, plain):
                    continue
                if char in ('"', "'"):
                    self._advance()
                    continue
                depth += (char == "(") - (char == ")")
                plain.append(self._advance())
        finally:
            self.depth -= 1
        parts.append(Literal("".join(plain), True))
        return Word(tuple(parts))

    def _braced(self, quoted: bool) -> Parameter:
        self._advance(2)
        length = False
        if self._at() == "#" and self._at(1) not in ("}", "", "-", "?", "+", "=", ":", "%", "#"):
            length = True
            self._advance()
        match = _NAME.match(self.text, self.position) or _DIGITS.match(self.text, self.position)
        if match is not None:
            name = self._advance(len(match.group()))
        elif self._at() and self._at() in "@*#?-$!":
            name = self._advance()
        else:
            return self._bad_substitution(quoted)
        if length:
            if self._at() != "}":
                return self._bad_substitution(quoted)
            self._advance()
            return Parameter(name, length=True)
        if self._at() == "}":
            self._advance()
            return Parameter(name)
        if not self._at():
            raise self._unterminated("}")
        operators = _EXTENDED_PARAMETER_OPERATORS if self.dialect.extended else _PARAMETER_OPERATORS
        operator = next((o for o in operators if self._starts(o)), None)
        if operator is None:
            return self._bad_substitution(quoted)
        self._advance(len(operator))
        return self._parameter_argument(name, operator, quoted)

    def _parameter_argument(self, name: str, operator: str, quoted: bool) -> Parameter:
        second: Word | None = None
        stop = {"/": "/}", "//": "/}", "/#": "/}", "/%": "/}", ":": ":}"}.get(operator, "}")
        self.depth += 1
        try:
            argument = self._read_argument(stop, quoted, operator)
            if self._at() in ("/", ":") and self._at() in stop:
                self._advance()
                second = self._read_argument("}", quoted, operator)
        finally:
            self.depth -= 1
        if self._advance() != "}":
            raise self._unterminated("}")
        return Parameter(name, operator, argument, second)

    def _read_argument(self, stop: str, quoted: bool, operator: str) -> Word:
        # Inside double quotes single quotes are ordinary, except in the patterns of # and %.
        if not quoted or operator[0] in "#%/":
            return self.read_word(frozenset(stop))
        parts: list[Part] = []
        self._check_depth()
        plain: list[str] = []
        while self._at() and self._at() not in stop:
            char = self._at()
            if char == '"':
                self._advance()
                parts.append(Literal("".join(plain), True))
                plain.clear()
                parts.append(DoubleQuoted(self._read_quoted('"')))
                continue
            if char == "\\" and self._at(1) and self._at(1) in '$`"\\}':
                self._advance()
                plain.append(self._advance())
                continue
            if char in "$`" and self._took_expansion(parts, plain):
                continue
            plain.append(self._advance())
        parts.append(Literal("".join(plain), True))
        return Word(tuple(parts))

    def _bad_substitution(self, quoted: bool) -> Parameter:
        """No parameter expansion at all: an error, but only when (and if) it is expanded."""
        self._read_argument("}", quoted, "-")
        if self._advance() != "}":
            raise self._unterminated("}")
        return Parameter("", BAD_SUBSTITUTION)
