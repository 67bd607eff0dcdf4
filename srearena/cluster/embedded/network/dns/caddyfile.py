"""The syntax of a Corefile: tokens, server blocks and directives, and parse errors.

Only syntax is handled here; `corefile` interprets the directives. Errors have the words and the line
of the real parser, because they are what an operator finds in the log of a crashing CoreDNS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

Reader = Callable[[str], "str | None"]
"""Returns the text of a file, None where it does not exist."""

MAX_TOKENS = 100_000


class CorefileError(Exception):
    """The Corefile cannot be used; the text is what CoreDNS prints before it exits."""


@dataclass(frozen=True, slots=True)
class Token:
    text: str
    line: int
    file: str


@dataclass(slots=True)
class ServerBlock:
    keys: list[str] = field(default_factory=list)
    directives: dict[str, list[Token]] = field(default_factory=dict)
    """Tokens by directive; a directive that occurs twice has the tokens of both, in order."""


def tokens_of(text: str, file: str) -> list[Token]:
    """Words, quoted words and braces; `#` at the start of a word begins a comment."""
    found: list[Token] = []
    line = 1
    at, end = 0, len(text)
    if text.startswith("\ufeff"):
        at = 1
    while at < end and len(found) < MAX_TOKENS:
        char = text[at]
        if char.isspace():
            line += char == "\n"
            at += 1
        elif char == "#":
            newline = text.find("\n", at)
            at = end if newline < 0 else newline
        elif char == '"':
            start = line
            word: list[str] = []
            at += 1
            while at < end and text[at] != '"':
                if text[at] == "\\" and text[at + 1 : at + 2] == '"':
                    at += 1
                elif text[at] == "\n":
                    line += 1
                word.append(text[at])
                at += 1
            at += 1
            found.append(Token("".join(word), start, file))
        else:
            start_at = at
            while at < end and not text[at].isspace():
                at += 1
            found.append(Token(text[start_at:at], line, file))
    return found


class Cursor:
    """Walks over tokens the way the plugins' setup functions do."""

    def __init__(self, tokens: list[Token], file: str) -> None:
        self.tokens = tokens
        self.file = file
        self.at = -1
        self._nesting = 0

    def next(self) -> bool:
        if self.at < len(self.tokens) - 1:
            self.at += 1
            return True
        return False

    def next_arg(self) -> bool:
        """Move to the next token if it is on the same line."""
        if self.at < 0:
            return self.next()
        if self.at < len(self.tokens) - 1 and self._same_line(self.at):
            self.at += 1
            return True
        return False

    def next_block(self) -> bool:
        """Enter the block that follows or move on in it; False at its end and where there is none."""
        if self._nesting:
            self.next()
            if self.value == "}":
                self._nesting -= 1
                return False
            return True
        if not self.next_arg():
            return False
        if self.value != "{":
            self.at -= 1
            return False
        self.next()
        if self.value == "}":
            return False
        self._nesting += 1
        return True

    def remaining(self) -> list[str]:
        """The remaining tokens of the line, up to an opening brace."""
        found: list[str] = []
        while self.next_arg():
            if self.value == "{":
                self.at -= 1
                break
            found.append(self.value)
        return found

    def starts_line(self) -> bool:
        return self.at < 1 or not self._same_line(self.at - 1)

    def _same_line(self, at: int) -> bool:
        current, following = self.tokens[at], self.tokens[at + 1]
        return current.file == following.file and current.line + current.text.count("\n") == following.line

    @property
    def value(self) -> str:
        return self.tokens[self.at].text if 0 <= self.at < len(self.tokens) else ""

    @property
    def line(self) -> int:
        return self.tokens[self.at].line if 0 <= self.at < len(self.tokens) else 0

    def error(self, message: str) -> CorefileError:
        return CorefileError(f"{self.file}:{self.line} - Error during parsing: {message}")

    def argument_error(self) -> CorefileError:
        if self.value == "{":
            return self.error("Unexpected token '{', expecting argument")
        return self.error(f"Wrong argument count or unexpected line ending after '{self.value}'")

    def syntax_error(self, expected: str) -> CorefileError:
        what = f"Syntax error: Unexpected token '{self.value}', expecting '{expected}'"
        return CorefileError(f"{self.file}:{self.line} - {what}")

    def end_error(self) -> CorefileError:
        return self.error("Unexpected EOF")


class _Parser(Cursor):
    def __init__(self, tokens: list[Token], file: str, valid: frozenset[str] | None, read: Reader) -> None:
        super().__init__(tokens, file)
        self._valid = valid
        self._read = read
        self._snippets: dict[str, list[Token]] = {}
        self._imports = 0
        self.ended = False

    def parse(self) -> list[ServerBlock]:
        blocks: list[ServerBlock] = []
        while self.next():
            block = ServerBlock()
            self._addresses(block)
            if self.ended:
                if block.keys:
                    blocks.append(block)
                break
            if len(block.keys) == 1 and block.keys[0].startswith("(") and block.keys[0].endswith(")"):
                self._snippet(block.keys[0][1:-1])
                continue
            self._contents(block)
            if block.keys:
                blocks.append(block)
        return blocks

    def _addresses(self, block: ServerBlock) -> None:
        expecting_another = False
        while True:
            word = self.value
            if word == "import" and self.starts_line():
                self._import()
                if not self.next():
                    self.ended = True
                    return
                continue
            if word == "{":
                if expecting_another:
                    raise self.error(f"Expected another address but had '{word}' - check for extra comma")
                return
            if word:
                expecting_another = word.endswith(",")
                block.keys.append(word[:-1] if expecting_another else word)
            has_next = self.next()
            if expecting_another and not has_next:
                raise self.end_error()
            if not has_next:
                self.ended = True
                return
            if not expecting_another and self.starts_line():
                return

    def _contents(self, block: ServerBlock) -> None:
        opened = self.value == "{"
        if not opened:
            self.at -= 1
        self._directives(block)
        if opened and self.value != "}":
            raise self.syntax_error("}")

    def _directives(self, block: ServerBlock) -> None:
        while self.next():
            if self.value == "}":
                return
            if self.value == "import":
                self._import()
                self.at -= 1
                continue
            self._directive(block)

    def _directive(self, block: ServerBlock) -> None:
        name = self.value
        if self._valid is not None and name not in self._valid:
            raise self.error(f"Unknown directive '{name}'")
        tokens = block.directives.setdefault(name, [])
        tokens.append(self.tokens[self.at])
        nesting = 0
        while self.next():
            if self.value == "{":
                nesting += 1
            elif self.starts_line() and nesting == 0:
                self.at -= 1
                break
            elif self.value == "}" and nesting > 0:
                nesting -= 1
            elif self.value == "}":
                raise self.error("Unexpected '}' because no matching opening brace")
            tokens.append(self.tokens[self.at])
        if nesting > 0:
            raise self.end_error()

    def _snippet(self, name: str) -> None:
        if name in self._snippets:
            raise self.error(f"redeclaration of previously declared snippet {name}")
        if self.value != "{":
            raise self.syntax_error("{")
        count, tokens = 1, []
        while self.next():
            count += (self.value == "{") - (self.value == "}")
            if count == 0:
                break
            tokens.append(self.tokens[self.at])
        if count:
            raise self.syntax_error("}")
        self._snippets[name] = tokens

    def _import(self) -> None:
        """Replace the import by the imported tokens; the cursor ends on the first of them."""
        start = self.at
        if not self.next_arg():
            raise self.argument_error()
        imported_name = self.value
        if self.next_arg():
            raise self.error("Import takes only one argument (glob pattern or file)")
        self._imports += 1
        if self._imports > 100:
            raise self.error("Import nests too deeply")
        if imported_name in self._snippets:
            imported = self._snippets[imported_name]
        else:
            path = imported_name if imported_name.startswith("/") else f"{self.file.rpartition('/')[0]}/{imported_name}"
            text = self._read(path)
            if text is None and not any(char in imported_name for char in "*?["):
                raise self.error(f"File to import not found: {imported_name}")
            imported = tokens_of(text, path) if text is not None else []
        self.tokens[start : self.at + 1] = imported
        self.at = start


def parse(
    text: str, file: str, valid: frozenset[str] | None = None, read: Reader = lambda path: None
) -> list[ServerBlock]:
    """The server blocks of a Corefile; with `valid`, directives outside of it are an error."""
    return _Parser(tokens_of(text, file), file, valid, read).parse()
