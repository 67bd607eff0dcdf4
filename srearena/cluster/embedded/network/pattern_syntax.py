"""The syntax of regular expressions as Go has it (RE2), read into a tree; errors are in Go's words."""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_REPEAT = 1000
MAX_DEPTH = 100

Ranges = tuple[tuple[str, str], ...]

_DIGIT: Ranges = (("0", "9"),)
_SPACE: Ranges = (("\t", "\n"), ("\f", "\r"), (" ", " "))
_WORD: Ranges = (("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z"))
_PERL = {"d": _DIGIT, "s": _SPACE, "w": _WORD}
_POSIX: dict[str, Ranges] = {
    "alnum": (("0", "9"), ("A", "Z"), ("a", "z")),
    "alpha": (("A", "Z"), ("a", "z")),
    "ascii": (("\0", "\x7f"),),
    "blank": (("\t", "\t"), (" ", " ")),
    "cntrl": (("\0", "\x1f"), ("\x7f", "\x7f")),
    "digit": _DIGIT,
    "graph": (("!", "~"),),
    "lower": (("a", "z"),),
    "print": ((" ", "~"),),
    "punct": (("!", "/"), (":", "@"), ("[", "`"), ("{", "~")),
    "space": (("\t", "\r"), (" ", " ")),
    "upper": (("A", "Z"),),
    "word": _WORD,
    "xdigit": (("0", "9"), ("A", "F"), ("a", "f")),
}
_ESCAPES = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}


class PatternError(ValueError):
    """The text is no regular expression; the message is Go's."""

    def __init__(self, kind: str, where: str) -> None:
        super().__init__(f"error parsing regexp: {kind}: `{where}`")


@dataclass(frozen=True, slots=True)
class Set:
    ranges: Ranges
    negated: bool = False
    folded: bool = False

    def holds(self, char: str) -> bool:
        found = any(low <= char <= high for low, high in self.ranges)
        if not found and self.folded:
            found = any(low <= c <= high for c in (char.lower(), char.upper()) for low, high in self.ranges)
        return found != self.negated


@dataclass(frozen=True, slots=True)
class Anchor:
    kind: str


@dataclass(frozen=True, slots=True)
class Group:
    inner: Node
    index: int


@dataclass(frozen=True, slots=True)
class Repeat:
    inner: Node
    least: int
    most: int | None
    greedy: bool


@dataclass(frozen=True, slots=True)
class Sequence:
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    parts: tuple[Node, ...]


Node = Set | Anchor | Group | Repeat | Sequence | Choice


class Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.groups = 0
        self.names: dict[str, int] = {}
        self.folded = False
        self.multiline = False
        self.dot_all = False
        self.lazy = False
        self._depth = 0

    def parse(self) -> Node:
        node = self._choice()
        if self.at < len(self.text):
            raise PatternError("unexpected )", self.text)
        return node

    def _more(self) -> bool:
        return self.at < len(self.text)

    def _peek(self, ahead: int = 0) -> str:
        return self.text[self.at + ahead : self.at + ahead + 1]

    def _choice(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise PatternError("expression nests too deeply", self.text)
        flags = (self.folded, self.multiline, self.dot_all, self.lazy)
        parts = [self._sequence()]
        while self._peek() == "|":
            self.at += 1
            parts.append(self._sequence())
        self.folded, self.multiline, self.dot_all, self.lazy = flags
        self._depth -= 1
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while self._more() and self._peek() not in "|)":
            start = self.at
            atom = self._atom()
            if atom is not None:
                parts.append(self._repeated(atom, start))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _repeated(self, atom: Node, start: int) -> Node:
        del start
        last = -1
        while self._more():
            begin = self.at
            bounds = self._bounds()
            if bounds is None:
                break
            if last >= 0:
                raise PatternError("invalid nested repetition operator", self.text[last : self.at])
            last = begin
            greedy = not self.lazy
            if self._peek() == "?":
                self.at += 1
                greedy = not greedy
            least, most = bounds
            if max(least, most or 0) > MAX_REPEAT or (most is not None and most < least):
                raise PatternError("invalid repeat count", self.text[begin : self.at])
            atom = Repeat(atom, least, most, greedy)
        return atom

    def _bounds(self) -> tuple[int, int | None] | None:
        simple: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        char = self._peek()
        if char in simple:
            self.at += 1
            return simple[char]
        found = re.compile(r"\{(\d+)(,(\d*))?\}").match(self.text, self.at) if char == "{" else None
        if found is None:
            return None
        self.at = found.end()
        least = int(found[1][:6])
        if found[2] is None:
            return least, least
        return least, int(found[3][:6]) if found[3] else None

    def _atom(self) -> Node | None:
        char = self._peek()
        self.at += 1
        if char == "(":
            return self._group()
        if char == "[":
            return self._bracket()
        if char == ".":
            return Set((), True) if self.dot_all else Set((("\n", "\n"),), True)
        if char == "^":
            return Anchor("line begin" if self.multiline else "begin")
        if char == "$":
            return Anchor("line end" if self.multiline else "end")
        if char == "\\":
            return self._escape()
        if char in "*+?":
            raise PatternError("missing argument to repetition operator", char)
        return self._literal(char)

    def _literal(self, char: str) -> Set:
        return Set(((char, char),), folded=self.folded)

    def _group(self) -> Node | None:
        begin = self.at - 1
        index = 0
        flags = (self.folded, self.multiline, self.dot_all, self.lazy)
        if self._peek() == "?":
            named = re.compile(r"\?P?<(\w*)>").match(self.text, self.at)
            options = re.compile(r"\?([imsU]*)(-[imsU]+)?([:)])").match(self.text, self.at)
            if named is not None:
                if not named[1] or named[1] in self.names:
                    kind = "duplicate capture group name" if named[1] else "invalid named capture"
                    raise PatternError(kind, named[1] or self.text[begin : named.end()])
                self.at = named.end()
                self.groups += 1
                index = self.names[named[1]] = self.groups
            elif options is not None:
                self.at = options.end()
                for letters, value in ((options[1], True), ((options[2] or "-")[1:], False)):
                    self._set_flags(letters, value)
                if options[3] == ")":
                    return None
            else:
                raise PatternError("invalid or unsupported Perl syntax", self.text[begin : begin + 3])
        else:
            self.groups += 1
            index = self.groups
        inner = self._choice()
        if self._peek() != ")":
            raise PatternError("missing closing )", self.text)
        self.at += 1
        self.folded, self.multiline, self.dot_all, self.lazy = flags
        return Group(inner, index)

    def _set_flags(self, letters: str, value: bool) -> None:
        for letter in letters:
            setattr(self, {"i": "folded", "m": "multiline", "s": "dot_all", "U": "lazy"}[letter], value)

    def _escape(self) -> Node:
        char = self._peek()
        if not char:
            raise PatternError("trailing backslash at end of expression", "")
        self.at += 1
        anchors = {"A": "begin", "z": "end", "b": "word", "B": "no word"}
        if char in anchors:
            return Anchor(anchors[char])
        if char.lower() in _PERL:
            return Set(_PERL[char.lower()], char.isupper())
        if char == "Q":
            end = self.text.find("\\E", self.at)
            quoted, self.at = (self.text[self.at :], len(self.text)) if end < 0 else (self.text[self.at : end], end + 2)
            return Sequence(tuple(self._literal(c) for c in quoted))
        return self._literal(self._escaped(char))

    def _escaped(self, char: str) -> str:
        """The character an escape stands for; `at` is behind the letter."""
        if char in _ESCAPES:
            return _ESCAPES[char]
        if char == "x":
            found = re.compile(r"([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]{1,6})\}").match(self.text, self.at)
            if found is not None and int(found[1] or found[2], 16) <= 0x10FFFF:
                self.at = found.end()
                return chr(int(found[1] or found[2], 16))
        if char.isalnum() and char.isascii():
            raise PatternError("invalid escape sequence", f"\\{char}")
        return char

    def _bracket(self) -> Node:
        begin = self.at - 1
        negated = self._peek() == "^"
        if negated:
            self.at += 1
        ranges: list[tuple[str, str]] = []
        first = True
        while first or self._peek() != "]":
            first = False
            if not self._more():
                raise PatternError("missing closing ]", self.text[begin:])
            posix = re.compile(r"\[:(\^?)(\w+):\]").match(self.text, self.at)
            if posix is not None:
                if posix[2] not in _POSIX:
                    raise PatternError("invalid character class range", posix[0])
                self.at = posix.end()
                ranges += _complement(_POSIX[posix[2]]) if posix[1] else _POSIX[posix[2]]
                continue
            low = self._class_char()
            if isinstance(low, tuple):
                ranges += low
                continue
            high: str | Ranges = low
            if self._peek() == "-" and self._peek(1) not in ("]", ""):
                self.at += 1
                high = self._class_char()
            if isinstance(high, tuple) or high < low:
                raise PatternError("invalid character class range", self.text[begin : self.at])
            ranges.append((low, high))
        self.at += 1
        return Set(tuple(ranges), negated, self.folded)

    def _class_char(self) -> str | Ranges:
        char = self._peek()
        self.at += 1
        if char != "\\":
            return char
        char = self._peek()
        if not char:
            raise PatternError("trailing backslash at end of expression", "")
        self.at += 1
        if char.lower() in _PERL:
            ranges = _PERL[char.lower()]
            return _complement(ranges) if char.isupper() else ranges
        return self._escaped(char)


def _complement(ranges: Ranges) -> Ranges:
    found: list[tuple[str, str]] = []
    position = 0
    for low, high in sorted(ranges):
        if ord(low) > position:
            found.append((chr(position), chr(ord(low) - 1)))
        position = max(position, ord(high) + 1)
    found.append((chr(position), chr(0x10FFFF)))
    return tuple(found)
