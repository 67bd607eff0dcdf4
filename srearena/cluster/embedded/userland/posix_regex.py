"""POSIX regular expressions, basic and extended, that cannot run away.

An expression is parsed into a tree. Harmless ones are translated for Python's engine, which is fast; those whose
backtracking could explode on the text at hand run on a machine that visits each character once per state.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from srearena.cluster.embedded.userland.glob_patterns import CharacterSet, parse_set

MAX_PROGRAM = 20_000
MAX_BACKTRACKING = 2e7
MAX_NESTING = 60
MAX_REPEAT = 32767


class RegexError(Exception):
    """The expression is malformed; the message is that of the C library."""


@dataclass(frozen=True, slots=True)
class Match:
    start: int
    end: int
    groups: tuple[tuple[int, int] | None, ...]
    """Spans of the parenthesised groups, from the first."""


# --- the tree ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Char:
    text: str


@dataclass(frozen=True, slots=True)
class _Any:
    pass


@dataclass(frozen=True, slots=True)
class _Set:
    characters: CharacterSet


@dataclass(frozen=True, slots=True)
class _Assert:
    kind: str
    """^ $ b B < >"""


@dataclass(frozen=True, slots=True)
class _Back:
    number: int


@dataclass(frozen=True, slots=True)
class _Group:
    number: int
    body: _Tree


@dataclass(frozen=True, slots=True)
class _Concat:
    items: tuple[_Tree, ...]


@dataclass(frozen=True, slots=True)
class _Either:
    items: tuple[_Tree, ...]


@dataclass(frozen=True, slots=True)
class _Repeat:
    body: _Tree
    least: int
    most: int | None


_Tree = _Char | _Any | _Set | _Assert | _Back | _Group | _Concat | _Either | _Repeat


class _Parser:
    def __init__(self, text: str, extended: bool) -> None:
        self.text = text
        self.extended = extended
        self.position = 0
        self.groups = 0
        self.depth = 0

    def parse(self) -> _Tree:
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

    def _either(self) -> _Tree:
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise RegexError("Regular expression too big")
        choices = [self._concat()]
        while self._is("|"):
            self._skip()
            choices.append(self._concat())
        self.depth -= 1
        return choices[0] if len(choices) == 1 else _Either(tuple(choices))

    def _concat(self) -> _Tree:
        items: list[_Tree] = []
        while self.position < len(self.text) and not self._is("|"):
            if self._is(")") and (self.depth > 1 or not self.extended):
                break
            items.append(self._repeated(first=not items))
        return items[0] if len(items) == 1 else _Concat(tuple(items))

    def _repeated(self, first: bool) -> _Tree:
        atom = self._atom(first)
        if not self.extended and isinstance(atom, _Assert) and atom.kind == "^":
            # In a basic expression a star after the anchor is an ordinary character.
            return atom
        while self.position < len(self.text):
            if self._starts("*"):
                self.position += 1
                atom = _Repeat(atom, 0, None)
            elif self._is("+"):
                self._skip()
                atom = _Repeat(atom, 1, None)
            elif self._is("?"):
                self._skip()
                atom = _Repeat(atom, 0, 1)
            elif self._is("{") and (bounds := self._bounds()) is not None:
                atom = _Repeat(atom, *bounds)
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

    def _atom(self, first: bool) -> _Tree:
        char = self.text[self.position]
        if self._is("("):
            self._skip()
            self.groups += 1
            number = self.groups
            body = self._either()
            if not self._is(")"):
                raise RegexError("Unmatched ( or \\(")
            self._skip()
            return _Group(number, body)
        if char == "\\":
            return self._escape()
        self.position += 1
        if char == "[":
            found = parse_set(self.text, self.position, negation="^")
            if found is None:
                raise RegexError("Unmatched [, [^, [:, [., or [=")
            self.position = found[1]
            return _Set(found[0])
        if char == ".":
            return _Any()
        if char == "^" and (self.extended or first):
            return _Assert("^")
        if char == "$" and (self.extended or self.position == len(self.text) or self._is(")") or self._is("|")):
            return _Assert("$")
        if char in "+?{" and self.extended and first and char != "{":
            raise RegexError("Invalid preceding regular expression")
        return _Char(char)

    def _escape(self) -> _Tree:
        if self.position + 1 >= len(self.text):
            raise RegexError("Trailing backslash")
        char = self.text[self.position + 1]
        self.position += 2
        if char in "bB<>":
            return _Assert(char)
        if char in _CLASSES:
            return _Set(_CLASSES[char])
        if char.isdigit() and char != "0":
            if int(char) > self.groups:
                raise RegexError("Invalid back reference")
            return _Back(int(char))
        return _Char({"n": "\n", "t": "\t"}.get(char, char))


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
_PYTHON_CLASSES = {
    "alpha": "^\\W\\d_",
    "digit": "0-9",
    "alnum": "^\\W_",
    "upper": "A-Z",
    "lower": "a-z",
    "space": "\\s",
    "blank": " \\t",
    "punct": "!-/:-@\\[-`{-~",
    "print": " -~",
    "graph": "!-~",
    "cntrl": "\\x00-\\x1f\\x7f",
    "xdigit": "0-9A-Fa-f",
}
_PYTHON_ASSERTS = {"^": "^", "$": "$(?!\n)", "b": r"\b", "B": r"\B", "<": r"\b(?=\w)", ">": r"\b(?<=\w)"}


def _python(tree: _Tree) -> str:
    if isinstance(tree, _Char):
        return re.escape(tree.text)
    if isinstance(tree, _Any):
        return "."
    if isinstance(tree, _Set):
        return _python_set(tree.characters)
    if isinstance(tree, _Assert):
        return _PYTHON_ASSERTS[tree.kind]
    if isinstance(tree, _Back):
        return f"(?:\\{tree.number})"
    if isinstance(tree, _Group):
        return f"({_python(tree.body)})"
    if isinstance(tree, _Concat):
        return "".join(_python(item) for item in tree.items)
    if isinstance(tree, _Either):
        return "(?:" + "|".join(_python(item) for item in tree.items) + ")"
    most = "" if tree.most is None else str(tree.most)
    return f"(?:{_python(tree.body)}){{{tree.least},{most}}}"


def _python_set(characters: CharacterSet) -> str:
    choices = [f"[{_PYTHON_CLASSES[name]}]" for name in characters.classes] + [
        f"[{re.escape(low)}-{re.escape(high)}]" for low, high in characters.ranges if low <= high
    ]
    joined = "|".join(choices) if choices else "(?!)"
    return f"(?:(?!{joined}).)" if characters.negated else f"(?:{joined})"


def _unbounded(tree: _Tree, inside: bool = False) -> float:
    """How many open-ended repetitions can follow each other; infinite where they nest."""
    if isinstance(tree, _Group):
        return _unbounded(tree.body, inside)
    if isinstance(tree, _Concat | _Either):
        if inside and isinstance(tree, _Either):
            return math.inf
        return sum(_unbounded(item, inside) for item in tree.items)
    if isinstance(tree, _Repeat):
        if tree.most == 1 or (tree.most is not None and tree.most == tree.least and not inside):
            return _unbounded(tree.body, inside)
        if inside:
            return math.inf
        return 1 + _unbounded(tree.body, True)
    return 0


# --- the machine ---------------------------------------------------------------------------------------------

_Test = Callable[[str], bool]
_Instruction = tuple[str, int, int, _Test | None]


class _Machine:
    """A program of tests, splits and marks, run over the text with all alternatives side by side."""

    def __init__(self, tree: _Tree, groups: int, ignore_case: bool) -> None:
        self.code: list[_Instruction] = []
        self.ignore_case = ignore_case
        self.slots = 2 * (groups + 1)
        self._emit("save", 0)
        self._compile(tree)
        self._emit("save", 1)
        self._emit("match")

    def _emit(self, kind: str, first: int = 0, second: int = 0, test: _Test | None = None) -> int:
        if len(self.code) >= MAX_PROGRAM:
            raise RegexError("Regular expression too big")
        self.code.append((kind, first, second, test))
        return len(self.code) - 1

    def _compile(self, tree: _Tree) -> None:
        if isinstance(tree, _Char | _Any | _Set):
            self._emit("test", test=self._test(tree))
        elif isinstance(tree, _Assert):
            self._emit(f"assert{tree.kind}")
        elif isinstance(tree, _Group):
            self._emit("save", 2 * tree.number)
            self._compile(tree.body)
            self._emit("save", 2 * tree.number + 1)
        elif isinstance(tree, _Concat):
            for item in tree.items:
                self._compile(item)
        elif isinstance(tree, _Either):
            self._compile_either(tree)
        elif isinstance(tree, _Repeat):
            self._compile_repeat(tree)
        else:
            raise RegexError("Memory exhausted")

    def _test(self, tree: _Char | _Any | _Set) -> _Test:
        if isinstance(tree, _Any):
            return lambda char: True
        if isinstance(tree, _Set):
            characters = tree.characters
            if self.ignore_case:
                return lambda char: characters(char.lower()) or characters(char.upper())
            return characters
        wanted = tree.text
        if self.ignore_case:
            return lambda char: char.lower() == wanted.lower()
        return lambda char: char == wanted

    def _compile_either(self, tree: _Either) -> None:
        jumps: list[int] = []
        for index, item in enumerate(tree.items):
            if index < len(tree.items) - 1:
                split = self._emit("split")
                self._compile(item)
                jumps.append(self._emit("jump"))
                self.code[split] = ("split", split + 1, len(self.code), None)
            else:
                self._compile(item)
        for jump in jumps:
            self.code[jump] = ("jump", len(self.code), 0, None)

    def _compile_repeat(self, tree: _Repeat) -> None:
        for _ in range(tree.least):
            self._compile(tree.body)
        if tree.most is None:
            split = self._emit("split")
            self._compile(tree.body)
            self._emit("jump", split)
            self.code[split] = ("split", split + 1, len(self.code), None)
            return
        splits = []
        for _ in range(tree.most - tree.least):
            splits.append(self._emit("split"))
            self._compile(tree.body)
        for split in splits:
            self.code[split] = ("split", split + 1, len(self.code), None)

    def search(self, text: str, start: int) -> Match | None:
        threads: list[tuple[int, tuple[int, ...]]] = []
        found: tuple[int, ...] | None = None
        for position in range(start, len(text) + 1):
            seen: set[int] = set()
            ready: list[tuple[int, tuple[int, ...]]] = []
            if found is None:
                threads.append((0, (-1,) * self.slots))
            for address, slots in threads:
                self._follow(address, slots, text, position, seen, ready)
            threads = []
            char = text[position] if position < len(text) else None
            for address, slots in ready:
                kind, _, _, test = self.code[address]
                if kind == "match":
                    found = slots
                    break
                if char is not None and test is not None and test(char):
                    threads.append((address + 1, slots))
            if not threads and found is not None:
                break
        if found is None:
            return None
        spans = [
            (found[i], found[i + 1]) if found[i] >= 0 and found[i + 1] >= 0 else None for i in range(0, self.slots, 2)
        ]
        whole = spans[0]
        assert whole is not None
        return Match(whole[0], whole[1], tuple(spans[1:]))

    def _follow(
        self,
        address: int,
        slots: tuple[int, ...],
        text: str,
        position: int,
        seen: set[int],
        ready: list[tuple[int, tuple[int, ...]]],
    ) -> None:
        """Go through everything that consumes no character."""
        todo = [(address, slots)]
        while todo:
            address, slots = todo.pop()
            if address in seen:
                continue
            seen.add(address)
            kind, first, second, _ = self.code[address]
            if kind == "jump":
                todo.append((first, slots))
            elif kind == "split":
                todo.append((second, slots))
                todo.append((first, slots))
            elif kind == "save":
                todo.append((address + 1, (*slots[:first], position, *slots[first + 1 :])))
            elif kind.startswith("assert"):
                if _holds(kind[6:], text, position):
                    todo.append((address + 1, slots))
            else:
                ready.append((address, slots))


def _holds(kind: str, text: str, position: int) -> bool:
    if kind == "^":
        return position == 0
    if kind == "$":
        return position == len(text)
    before = position > 0 and (text[position - 1].isalnum() or text[position - 1] == "_")
    after = position < len(text) and (text[position].isalnum() or text[position] == "_")
    return {"b": before != after, "B": before == after, "<": after and not before, ">": before and not after}[kind]


class Regex:
    def __init__(self, pattern: str, *, extended: bool, ignore_case: bool) -> None:
        parser = _Parser(pattern, extended)
        self._tree = parser.parse()
        self.groups = parser.groups
        self._ignore_case = ignore_case
        self._open_ended = _unbounded(self._tree)
        self._machine: _Machine | None = None
        try:
            flags = re.DOTALL | (re.IGNORECASE if ignore_case else 0)
            self._fast: re.Pattern[str] | None = re.compile(_python(self._tree), flags)
        except (re.error, OverflowError, RecursionError):
            self._fast = None

    def search(self, text: str, start: int = 0) -> Match | None:
        """The leftmost match at or after `start`."""
        if self._fast is not None and self._is_harmless(len(text)):
            found = self._fast.search(text, start)
            if found is None:
                return None
            spans = tuple(None if found.start(i) < 0 else found.span(i) for i in range(1, self.groups + 1))
            return Match(found.start(), found.end(), spans)
        if self._machine is None:
            self._machine = _Machine(self._tree, self.groups, self._ignore_case)
        return self._machine.search(text, start)

    def _is_harmless(self, length: int) -> bool:
        if self._open_ended == math.inf:
            return False
        count = int(self._open_ended)
        return float(length + 1) ** min(count, 20) / math.factorial(min(count, 20)) <= MAX_BACKTRACKING


@lru_cache(maxsize=512)
def compile_regex(pattern: str, *, extended: bool = False, ignore_case: bool = False) -> Regex:
    return Regex(pattern, extended=extended, ignore_case=ignore_case)
