"""Regular expressions in Go's syntax (RE2) that cannot be made to run forever.

Patterns come from whoever may edit a Corefile or an Ingress, so matching must take time in proportion to the text.
A pattern that Python's backtracking engine handles safely runs there; any other runs on a small machine that keeps
all its possible states at once, as RE2 does. Both give the leftmost match that Perl would choose.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from srearena.cluster.embedded.network.pattern_machine import Machine, Spans
from srearena.cluster.embedded.network.pattern_syntax import (
    Anchor,
    Choice,
    Group,
    Node,
    Parser,
    PatternError,
    Repeat,
    Sequence,
    Set,
)

__all__ = ["Match", "Pattern", "PatternError", "pattern"]

MAX_PATTERN = 4096
_WIDE_CHOICES, _NARROW_CHOICES, _NARROW = 2, 2, 8
"""How many places with many, and with few, ways to go on backtracking may meet: then its time is quadratic at most."""


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
        parser = Parser(text)
        tree = parser.parse()
        self.text = text
        self.names = parser.names
        self._count = parser.groups + 1
        self._search = _backtracking(tree) if _is_tame(tree) else Machine(tree, self._count).search

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


def _is_tame(tree: Node) -> bool:
    """Whether backtracking cannot run away: few places where it has a choice, and none inside a repetition."""
    wide = narrow = 0

    def walk(node: Node, repeated: bool) -> bool:
        nonlocal wide, narrow
        if isinstance(node, Repeat):
            choices = None if node.most is None else node.most - node.least
            wide += choices is None or choices >= _NARROW
            narrow += choices is not None and 0 < choices < _NARROW
            if repeated and (node.least, node.most) != (1, 1):
                return False
            return walk(node.inner, True)
        if isinstance(node, Choice):
            narrow += 1
            wide += len(node.parts) > _NARROW
            return not repeated and all(walk(part, repeated) for part in node.parts)
        if isinstance(node, Sequence):
            return all(walk(part, repeated) for part in node.parts)
        return not isinstance(node, Group) or walk(node.inner, repeated)

    return walk(tree, False) and wide <= _WIDE_CHOICES and narrow <= _NARROW_CHOICES


_ANCHORS = {
    "begin": r"\A",
    "end": r"\Z",
    "word": r"\b",
    "no word": r"\B",
    "line begin": "(?m:^)",
    "line end": "(?m:$)",
}


def _backtracking(tree: Node) -> Callable[[str], Spans | None]:
    compiled = re.compile(_written(tree), re.ASCII)

    def search(text: str) -> Spans | None:
        found = compiled.search(text)
        return found.regs if found is not None else None

    return search


def _written(node: Node) -> str:
    """The tree in Python's syntax."""
    if isinstance(node, Set):
        if not node.ranges:
            return r"[\s\S]"
        inner = "".join(f"{_literally(low)}-{_literally(high)}" for low, high in node.ranges)
        text = f"[{'^' if node.negated else ''}{inner}]"
        return f"(?i:{text})" if node.folded else text
    if isinstance(node, Anchor):
        return _ANCHORS[node.kind]
    if isinstance(node, Group):
        return f"({'' if node.index else '?:'}{_written(node.inner)})"
    if isinstance(node, Repeat):
        most = "" if node.most is None else str(node.most)
        return f"(?:{_written(node.inner)}){{{node.least},{most}}}{'' if node.greedy else '?'}"
    if isinstance(node, Sequence):
        return "".join(_written(part) for part in node.parts)
    return "(?:" + "|".join(_written(part) for part in node.parts) + ")"


def _literally(char: str) -> str:
    return f"\\U{ord(char):08x}"
