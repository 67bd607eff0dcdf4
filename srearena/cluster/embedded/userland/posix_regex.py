"""POSIX regular expressions, basic and extended, matched in bounded time: leftmost, and of those the longest.

An expression is parsed into a tree and written in RE2's syntax. The few that RE2 does not have run on a backtracking
matcher with a limit on steps (`posix_backtracking`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from srearena.cluster.embedded.userland.glob_patterns import CharacterSet
from srearena.cluster.embedded.userland.posix_backtracking import Backtracker
from srearena.cluster.embedded.userland.posix_syntax import (
    AnyChar,
    Assert,
    BackReference,
    Char,
    Concat,
    Either,
    Group,
    Parser,
    RegexError,
    Repeat,
    Set,
    Tree,
)
from srearena.regular_expressions import Pattern, PatternError, Text, literal

__all__ = ["Match", "Regex", "RegexError", "compile_regex"]

_MAX_COUNT = 1000
"""The largest count RE2 takes."""
_CLASSES = {
    "alpha": r"\p{L}\p{Nl}\p{No}",
    "digit": "0-9",
    "alnum": r"\p{L}\p{N}",
    "upper": "A-Z",
    "lower": "a-z",
    "space": r"\t-\r\x1c-\x1f \x{85}\p{Z}",
    "blank": r" \t",
    "punct": r"!-/:-@\[-`{-~",
    "print": " -~",
    "graph": "!-~",
    "cntrl": r"\x00-\x1f\x7f",
    "xdigit": "0-9A-Fa-f",
}
_ASSERTIONS = {"^": r"\A", "$": r"\z", "b": r"\b", "B": r"\B"}
_WORD_RANGES = (("0", "9"), ("A", "Z"), ("a", "z"), ("_", "_"))
_WORD_CLASSES = frozenset({"alpha", "digit", "alnum", "upper", "lower", "xdigit"})


@dataclass(frozen=True, slots=True)
class Match:
    start: int
    end: int
    groups: tuple[tuple[int, int] | None, ...]
    """Spans of the parenthesised groups, from the first."""


class _NotInRe2(Exception):
    """RE2 has no equivalent."""


class Regex:
    """A compiled expression."""

    def __init__(self, pattern: str, *, extended: bool, ignore_case: bool) -> None:
        parser = Parser(pattern, extended)
        self._tree = parser.parse()
        self.groups = parser.groups
        self._ignore_case = ignore_case
        self._has_back_references = parser.has_back_references
        self._text = Text("")
        self._program: Pattern | None = None
        self._tests_words = False
        try:
            written = _written(self._tree)
            self._program = Pattern(("(?i)" if ignore_case else "") + written, longest=True)
            self._tests_words = r"\b" in written or r"\B" in written
        except (_NotInRe2, PatternError):
            _ = self._backtracker

    @cached_property
    def _backtracker(self) -> Backtracker:
        return Backtracker(
            self._tree, self.groups, ignore_case=self._ignore_case, has_back_references=self._has_back_references
        )

    def search(self, text: str, start: int = 0) -> Match | None:
        """The leftmost match at or after `start`; RegexError where the search takes too many steps."""
        # To RE2 only ASCII letters are part of a word.
        if self._program is None or (self._tests_words and not text.isascii()):
            spans = self._backtracker.search(text, start)
        else:
            if self._text.text is not text:
                self._text = Text(text)
            found = self._program.spans(self._text, start)
            spans = None if found is None else tuple(span if span[0] >= 0 else None for span in found)
        if spans is None or spans[0] is None:
            return None
        return Match(*spans[0], spans[1:])


@lru_cache(maxsize=256)
def compile_regex(pattern: str, *, extended: bool = False, ignore_case: bool = False) -> Regex:
    return Regex(pattern, extended=extended, ignore_case=ignore_case)


def _written(tree: Tree) -> str:
    """The tree in RE2's syntax."""
    if isinstance(tree, Char):
        return literal(tree.text)
    if isinstance(tree, AnyChar):
        return "(?s:.)"
    if isinstance(tree, Set):
        return _written_set(tree.characters)
    if isinstance(tree, Group):
        return f"({_written(tree.body)})"
    if isinstance(tree, Concat):
        return _written_concat(tree.items)
    if isinstance(tree, Either):
        return "(?:" + "|".join(_written(item) for item in tree.items) + ")"
    if isinstance(tree, Repeat):
        return _written_repeat(tree)
    if isinstance(tree, Assert) and tree.kind in _ASSERTIONS:
        return _ASSERTIONS[tree.kind]
    raise _NotInRe2


def _written_concat(items: Sequence[Tree]) -> str:
    parts = []
    for index, item in enumerate(items):
        if isinstance(item, Assert) and item.kind in "<>":
            # Next to a character of a word, the begin or end of a word is any boundary of one.
            beside = items[index + 1 :] if item.kind == "<" else items[index - 1 :: -1] if index else ()
            if not _begins_in_word(beside, forwards=item.kind == "<"):
                raise _NotInRe2
            parts.append(r"\b")
        else:
            parts.append(_written(item))
    return "".join(parts)


def _begins_in_word(items: Sequence[Tree], *, forwards: bool) -> bool:
    """Whether the first character (the last one, backwards) of what the items match is always one of a word."""
    for item in items:
        if isinstance(item, Assert):
            continue
        if not _only_words(item, forwards=forwards):
            return False
        if not _can_be_empty(item):
            return True
    return False


def _only_words(tree: Tree, *, forwards: bool) -> bool:
    if isinstance(tree, Char):
        return tree.text.isalnum() or tree.text == "_"
    if isinstance(tree, Set):
        characters = tree.characters
        ranges_in_words = all(any(a <= low <= high <= b for a, b in _WORD_RANGES) for low, high in characters.ranges)
        return not characters.negated and ranges_in_words and _WORD_CLASSES.issuperset(characters.classes)
    if isinstance(tree, Group | Repeat):
        return _only_words(tree.body, forwards=forwards)
    if isinstance(tree, Either):
        return all(_only_words(item, forwards=forwards) for item in tree.items)
    if isinstance(tree, Concat):
        return _begins_in_word(tree.items if forwards else tree.items[::-1], forwards=forwards)
    return False


def _can_be_empty(tree: Tree) -> bool:
    if isinstance(tree, Group):
        return _can_be_empty(tree.body)
    if isinstance(tree, Repeat):
        return tree.least == 0 or _can_be_empty(tree.body)
    if isinstance(tree, Concat):
        return all(_can_be_empty(item) for item in tree.items)
    if isinstance(tree, Either):
        return any(_can_be_empty(item) for item in tree.items)
    return isinstance(tree, Assert | BackReference)


def _written_repeat(tree: Repeat) -> str:
    body = f"(?:{_written(tree.body)})"
    counts: list[tuple[int, int | None]] = [(tree.least, tree.most)]
    if max(tree.least, tree.most or 0) > _MAX_COUNT and "(" not in body.replace("(?", ""):
        # Large counts are written as several repeats one after the other.
        full, least = divmod(tree.least, _MAX_COUNT)
        counts = [*[(_MAX_COUNT, _MAX_COUNT)] * full, (least, least)]
        if tree.most is None:
            counts.append((0, None))
        else:
            full, most = divmod(tree.most - tree.least, _MAX_COUNT)
            counts += [(0, _MAX_COUNT)] * full + [(0, most)]
    return "".join(f"{body}{{{least},{'' if most is None else most}}}" for least, most in counts)


def _written_set(characters: CharacterSet) -> str:
    members = "".join(_CLASSES[name] for name in characters.classes) + "".join(
        f"{literal(low)}-{literal(high)}" for low, high in characters.ranges if low <= high
    )
    if members:
        return f"[{'^' if characters.negated else ''}{members}]"
    return "(?s:.)" if characters.negated else r"[^\x00-\x{10FFFF}]"
