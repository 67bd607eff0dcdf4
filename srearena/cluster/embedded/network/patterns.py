"""Regular expressions in Go's syntax (RE2) that cannot be made to run forever.

Patterns come from whoever may edit a Corefile or an Ingress, so matching must take time in proportion to the text.
A pattern that Python's backtracking engine handles safely runs there; any other runs on a small machine that keeps
all its possible states at once, as RE2 does. Both give the leftmost match that Perl would choose.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

MAX_REPEAT = 1000
MAX_PROGRAM = 20_000
MAX_PATTERN = 4096
MAX_DEPTH = 100
_FREE_REPEATS = 2
"""Unbounded repetitions, none inside another, that backtracking handles in at most quadratic time."""

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
class _Set:
    ranges: Ranges
    negated: bool = False
    folded: bool = False

    def holds(self, char: str) -> bool:
        found = any(low <= char <= high for low, high in self.ranges)
        if not found and self.folded:
            found = any(low <= c <= high for c in (char.lower(), char.upper()) for low, high in self.ranges)
        return found != self.negated


@dataclass(frozen=True, slots=True)
class _Anchor:
    kind: str


@dataclass(frozen=True, slots=True)
class _Group:
    inner: _Node
    index: int


@dataclass(frozen=True, slots=True)
class _Repeat:
    inner: _Node
    least: int
    most: int | None
    greedy: bool


@dataclass(frozen=True, slots=True)
class _Sequence:
    parts: tuple[_Node, ...]


@dataclass(frozen=True, slots=True)
class _Choice:
    parts: tuple[_Node, ...]


_Node = _Set | _Anchor | _Group | _Repeat | _Sequence | _Choice


@dataclass(frozen=True, slots=True)
class Match:
    groups: tuple[str, ...]
    """The whole match, then every group; a group that took no part is empty."""
    names: Mapping[str, str]
    start: int
    end: int


class Pattern:
    """A compiled expression."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_PATTERN:
            raise PatternError("expression too large", text[:32])
        parser = _Parser(text)
        tree = parser.parse()
        self.text = text
        self.names = parser.names
        self._count = parser.groups + 1
        self._search = _backtracking(tree) if _is_tame(tree) else _Machine(tree, self._count).search

    def search(self, text: str) -> Match | None:
        """The leftmost match anywhere in the text."""
        spans = self._search(text)
        if spans is None:
            return None
        groups = tuple(text[low:high] if low >= 0 else "" for low, high in spans)
        names = {name: groups[index] for name, index in self.names.items()}
        return Match(groups, names, *spans[0])


@lru_cache(maxsize=1024)
def pattern(text: str) -> Pattern:
    return Pattern(text)


class _Parser:
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

    def parse(self) -> _Node:
        node = self._choice()
        if self.at < len(self.text):
            raise PatternError("unexpected )", self.text)
        return node

    def _more(self) -> bool:
        return self.at < len(self.text)

    def _peek(self, ahead: int = 0) -> str:
        return self.text[self.at + ahead : self.at + ahead + 1]

    def _choice(self) -> _Node:
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
        return parts[0] if len(parts) == 1 else _Choice(tuple(parts))

    def _sequence(self) -> _Node:
        parts: list[_Node] = []
        while self._more() and self._peek() not in "|)":
            start = self.at
            atom = self._atom()
            if atom is not None:
                parts.append(self._repeated(atom, start))
        return parts[0] if len(parts) == 1 else _Sequence(tuple(parts))

    def _repeated(self, atom: _Node, start: int) -> _Node:
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
            atom = _Repeat(atom, least, most, greedy)
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

    def _atom(self) -> _Node | None:
        char = self._peek()
        self.at += 1
        if char == "(":
            return self._group()
        if char == "[":
            return self._bracket()
        if char == ".":
            return _Set((), True) if self.dot_all else _Set((("\n", "\n"),), True)
        if char == "^":
            return _Anchor("line begin" if self.multiline else "begin")
        if char == "$":
            return _Anchor("line end" if self.multiline else "end")
        if char == "\\":
            return self._escape()
        if char in "*+?":
            raise PatternError("missing argument to repetition operator", char)
        return self._literal(char)

    def _literal(self, char: str) -> _Set:
        return _Set(((char, char),), folded=self.folded)

    def _group(self) -> _Node | None:
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
        return _Group(inner, index)

    def _set_flags(self, letters: str, value: bool) -> None:
        for letter in letters:
            setattr(self, {"i": "folded", "m": "multiline", "s": "dot_all", "U": "lazy"}[letter], value)

    def _escape(self) -> _Node:
        char = self._peek()
        if not char:
            raise PatternError("trailing backslash at end of expression", "")
        self.at += 1
        anchors = {"A": "begin", "z": "end", "b": "word", "B": "no word"}
        if char in anchors:
            return _Anchor(anchors[char])
        if char.lower() in _PERL:
            return _Set(_PERL[char.lower()], char.isupper())
        if char == "Q":
            end = self.text.find("\\E", self.at)
            quoted, self.at = (self.text[self.at :], len(self.text)) if end < 0 else (self.text[self.at : end], end + 2)
            return _Sequence(tuple(self._literal(c) for c in quoted))
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

    def _bracket(self) -> _Node:
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
        return _Set(tuple(ranges), negated, self.folded)

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


# Python's engine, for what it does well


def _is_tame(tree: _Node) -> bool:
    """Whether backtracking cannot run away: few unbounded repetitions, and none inside a repetition."""
    free = 0

    def walk(node: _Node, repeated: bool) -> bool:
        nonlocal free
        if isinstance(node, _Repeat):
            if node.most is None:
                free += 1
            many = node.most is None or node.most > 1
            return not (repeated and many) and free <= _FREE_REPEATS and walk(node.inner, repeated or many)
        if isinstance(node, _Sequence | _Choice):
            return all(walk(part, repeated) for part in node.parts)
        return not isinstance(node, _Group) or walk(node.inner, repeated)

    return walk(tree, False)


_Spans = tuple[tuple[int, int], ...]
_ANCHORS = {
    "begin": r"\A",
    "end": r"\Z",
    "word": r"\b",
    "no word": r"\B",
    "line begin": "(?m:^)",
    "line end": "(?m:$)",
}


def _backtracking(tree: _Node) -> Callable[[str], _Spans | None]:
    compiled = re.compile(_written(tree), re.ASCII)

    def search(text: str) -> _Spans | None:
        found = compiled.search(text)
        return found.regs if found is not None else None

    return search


def _written(node: _Node) -> str:
    """The tree in Python's syntax."""
    if isinstance(node, _Set):
        if not node.ranges:
            return r"[\s\S]"
        inner = "".join(f"{_literally(low)}-{_literally(high)}" for low, high in node.ranges)
        text = f"[{'^' if node.negated else ''}{inner}]"
        return f"(?i:{text})" if node.folded else text
    if isinstance(node, _Anchor):
        return _ANCHORS[node.kind]
    if isinstance(node, _Group):
        return f"({'' if node.index else '?:'}{_written(node.inner)})"
    if isinstance(node, _Repeat):
        most = "" if node.most is None else str(node.most)
        return f"(?:{_written(node.inner)}){{{node.least},{most}}}{'' if node.greedy else '?'}"
    if isinstance(node, _Sequence):
        return "".join(_written(part) for part in node.parts)
    return "(?:" + "|".join(_written(part) for part in node.parts) + ")"


def _literally(char: str) -> str:
    return f"\\U{ord(char):08x}"


# The machine that keeps all states at once


@dataclass(slots=True)
class _Machine:
    tree: _Node
    count: int
    code: list[tuple[str, object, int]] = field(default_factory=list)
    """Instructions: (name, argument, target)."""

    def __post_init__(self) -> None:
        self._emit(_Group(self.tree, 0))
        self.code.append(("match", None, 0))

    def _add(self, name: str, argument: object = None, target: int = 0) -> int:
        if len(self.code) >= MAX_PROGRAM:
            raise PatternError("expression too large", "")
        self.code.append((name, argument, target))
        return len(self.code) - 1

    def _aim(self, at: int, target: int) -> None:
        name, argument, _ = self.code[at]
        self.code[at] = (name, argument, target)

    def _emit(self, node: _Node) -> None:
        if isinstance(node, _Set):
            self._add("char", node)
        elif isinstance(node, _Anchor):
            self._add("anchor", node.kind)
        elif isinstance(node, _Sequence):
            for part in node.parts:
                self._emit(part)
        elif isinstance(node, _Group):
            captures = node.index or node.inner is self.tree
            if captures:
                self._add("save", 2 * node.index)
            self._emit(node.inner)
            if captures:
                self._add("save", 2 * node.index + 1)
        elif isinstance(node, _Choice):
            ends = []
            for part in node.parts[:-1]:
                split = self._add("split", True)
                self._emit(part)
                ends.append(self._add("jump"))
                self._aim(split, len(self.code))
            self._emit(node.parts[-1])
            for end in ends:
                self._aim(end, len(self.code))
        else:
            self._emit_repeat(node)

    def _emit_repeat(self, node: _Repeat) -> None:
        for _ in range(node.least):
            self._emit(node.inner)
        if node.most is None:
            split = self._add("split", node.greedy)
            self._emit(node.inner)
            self._add("jump", None, split)
            self._aim(split, len(self.code))
            return
        splits = []
        for _ in range(node.most - node.least):
            splits.append(self._add("split", node.greedy))
            self._emit(node.inner)
        for split in splits:
            self._aim(split, len(self.code))

    def search(self, text: str) -> _Spans | None:
        best: tuple[int, ...] | None = None
        threads: list[tuple[int, tuple[int, ...]]] = []
        empty = (-1,) * (2 * self.count)
        for at in range(len(text) + 1):
            seen: set[int] = set()
            current: list[tuple[int, tuple[int, ...]]] = []
            for pc, saved in threads:
                self._follow(pc, saved, text, at, seen, current)
            if best is None:
                self._follow(0, empty, text, at, seen, current)
            if not current:
                break
            threads = []
            char = text[at : at + 1]
            for pc, saved in current:
                name, argument, _ = self.code[pc]
                if name == "match":
                    best = saved
                    break
                if char and isinstance(argument, _Set) and argument.holds(char):
                    threads.append((pc + 1, saved))
        if best is None:
            return None
        return tuple((best[2 * index], best[2 * index + 1]) for index in range(self.count))

    def _follow(
        self,
        start: int,
        saved: tuple[int, ...],
        text: str,
        at: int,
        seen: set[int],
        found: list[tuple[int, tuple[int, ...]]],
    ) -> None:
        """Collect the states reached from `start` without reading, best first."""
        stack = [(start, saved)]
        while stack:
            pc, saved = stack.pop()
            if pc in seen:
                continue
            seen.add(pc)
            name, argument, target = self.code[pc]
            if name == "jump":
                stack.append((target, saved))
            elif name == "split":
                greedy = bool(argument)
                stack.append((target if greedy else pc + 1, saved))
                stack.append((pc + 1 if greedy else target, saved))
            elif name == "save":
                slot = int(str(argument))
                stack.append((pc + 1, (*saved[:slot], at, *saved[slot + 1 :])))
            elif name == "anchor":
                if _holds_at(str(argument), text, at):
                    stack.append((pc + 1, saved))
            else:
                found.append((pc, saved))


def _holds_at(kind: str, text: str, at: int) -> bool:
    if kind == "begin":
        return at == 0
    if kind == "end":
        return at == len(text)
    if kind == "line begin":
        return at == 0 or text[at - 1] == "\n"
    if kind == "line end":
        return at == len(text) or text[at] == "\n"
    before = at > 0 and _is_word(text[at - 1])
    after = at < len(text) and _is_word(text[at])
    return (before != after) == (kind == "word")


def _is_word(char: str) -> bool:
    return char.isascii() and (char.isalnum() or char == "_")
