"""The syntax of POSIX regular expressions, basic and extended, parsed into a tree."""

from __future__ import annotations

import re
from dataclasses import dataclass

from srearena.cluster.embedded.userland.glob_patterns import CharacterSet, parse_set

MAX_NESTING = 60
MAX_REPEAT = 32767


class RegexError(Exception):
    """The expression is malformed; the message is that of the C library."""


@dataclass(frozen=True, slots=True)
class Char:
    text: str


@dataclass(frozen=True, slots=True)
class AnyChar:
    pass


@dataclass(frozen=True, slots=True)
class Set:
    characters: CharacterSet


@dataclass(frozen=True, slots=True)
class Assert:
    kind: str
    """^ $ b B < >"""


@dataclass(frozen=True, slots=True)
class BackReference:
    number: int


@dataclass(frozen=True, slots=True)
class Group:
    number: int
    body: Tree


@dataclass(frozen=True, slots=True)
class Concat:
    items: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Either:
    items: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    body: Tree
    least: int
    most: int | None


Tree = Char | AnyChar | Set | Assert | BackReference | Group | Concat | Either | Repeat


class Parser:
    def __init__(self, text: str, extended: bool) -> None:
        self.text = text
        self.extended = extended
        self.position = 0
        self.groups = 0
        self.depth = 0
        self.has_back_references = False

    def parse(self) -> Tree:
        tree = self._either()
        if self.position < len(self.text):
            raise RegexError("Unmatched ) or \\)")
        return tree

    def _starts(self, text: str) -> bool:
        return self.text.startswith(text, self.position)

    def _is(self, plain: str) -> bool:
        """Whether a special character comes next, in the spelling of this syntax."""
        return self._starts(plain if self.extended else "\\" + plain)

    def _skip(self) -> None:
        self.position += 1 if self.extended else 2

    def _either(self) -> Tree:
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise RegexError("Regular expression too big")
        choices = [self._concat()]
        while self._is("|"):
            self._skip()
            choices.append(self._concat())
        self.depth -= 1
        return choices[0] if len(choices) == 1 else Either(tuple(choices))

    def _concat(self) -> Tree:
        items: list[Tree] = []
        while self.position < len(self.text) and not self._is("|"):
            if self._is(")") and (self.depth > 1 or not self.extended):
                break
            items.append(self._repeated(first=not items))
        return items[0] if len(items) == 1 else Concat(tuple(items))

    def _repeated(self, first: bool) -> Tree:
        atom = self._atom(first)
        if not self.extended and isinstance(atom, Assert) and atom.kind == "^":
            # In a basic expression a star after the anchor is an ordinary character.
            return atom
        while self.position < len(self.text):
            if self._starts("*"):
                self.position += 1
                atom = Repeat(atom, 0, None)
            elif self._is("+"):
                self._skip()
                atom = Repeat(atom, 1, None)
            elif self._is("?"):
                self._skip()
                atom = Repeat(atom, 0, 1)
            elif self._is("{") and (bounds := self._bounds()) is not None:
                atom = Repeat(atom, *bounds)
            else:
                break
        return atom

    def _bounds(self) -> tuple[int, int | None] | None:
        close = "}" if self.extended else "\\}"
        start = self.position + (1 if self.extended else 2)
        end = self.text.find(close, start)
        found = re.fullmatch(r"(\d{0,5})(,?)(\d{0,5})", self.text[start:end]) if end >= 0 else None
        if found is None or found.group(0) in ("", ","):
            if self.extended:
                return None
            raise RegexError("Unmatched \\{" if end < 0 else "Invalid content of \\{\\}")
        least = int(found.group(1) or 0)
        most = least if not found.group(2) else int(found.group(3)) if found.group(3) else None
        if least > MAX_REPEAT or (most is not None and (most > MAX_REPEAT or most < least)):
            raise RegexError("Invalid content of \\{\\}")
        self.position = end + len(close)
        return least, most

    def _atom(self, first: bool) -> Tree:
        char = self.text[self.position]
        if self._is("("):
            self._skip()
            self.groups += 1
            number = self.groups
            body = self._either()
            if not self._is(")"):
                raise RegexError("Unmatched ( or \\(")
            self._skip()
            return Group(number, body)
        if char == "\\":
            return self._escape()
        self.position += 1
        if char == "[":
            found = parse_set(self.text, self.position, negation="^")
            if found is None:
                raise RegexError("Unmatched [, [^, [:, [., or [=")
            self.position = found[1]
            return Set(found[0])
        if char == ".":
            return AnyChar()
        if char == "^" and (self.extended or first):
            return Assert("^")
        if char == "$" and (self.extended or self.position == len(self.text) or self._is(")") or self._is("|")):
            return Assert("$")
        if char in "+?{" and self.extended and first and char != "{":
            raise RegexError("Invalid preceding regular expression")
        return Char(char)

    def _escape(self) -> Tree:
        if self.position + 1 >= len(self.text):
            raise RegexError("Trailing backslash")
        char = self.text[self.position + 1]
        self.position += 2
        if char in "bB<>":
            return Assert(char)
        if char in _CLASSES:
            return Set(_CLASSES[char])
        if char.isdigit() and char != "0":
            if int(char) > self.groups:
                raise RegexError("Invalid back reference")
            self.has_back_references = True
            return BackReference(int(char))
        return Char({"n": "\n", "t": "\t"}.get(char, char))


def _class(name: str, extra: str = "", *, negated: bool = False) -> CharacterSet:
    characters = CharacterSet(negated)
    characters.classes.append(name)
    characters.ranges.extend((char, char) for char in extra)
    return characters


_CLASSES = {
    "w": _class("alnum", "_"),
    "W": _class("alnum", "_", negated=True),
    "s": _class("space"),
    "S": _class("space", negated=True),
    "d": _class("digit"),
    "D": _class("digit", negated=True),
}
