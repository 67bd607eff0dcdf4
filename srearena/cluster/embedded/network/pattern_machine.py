"""A machine for regular expressions that keeps all its possible states at once.

Its time is the length of the text times the size of the program, whatever the pattern.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from srearena.cluster.embedded.network.pattern_syntax import (
    Anchor,
    Choice,
    Group,
    Node,
    PatternError,
    Repeat,
    Sequence,
    Set,
)

MAX_PROGRAM = 20_000

Spans = tuple[tuple[int, int], ...]
"""Begin and end of the whole match and of every group; -1 for a group that took no part."""


@dataclass(slots=True)
class Machine:
    tree: Node
    count: int
    code: list[tuple[str, object, int]] = field(default_factory=list)
    """Instructions: (name, argument, target)."""

    def __post_init__(self) -> None:
        self._emit(Group(self.tree, 0))
        self.code.append(("match", None, 0))

    def _add(self, name: str, argument: object = None, target: int = 0) -> int:
        if len(self.code) >= MAX_PROGRAM:
            raise PatternError("expression too large", "")
        self.code.append((name, argument, target))
        return len(self.code) - 1

    def _aim(self, at: int, target: int) -> None:
        name, argument, _ = self.code[at]
        self.code[at] = (name, argument, target)

    def _emit(self, node: Node) -> None:
        if isinstance(node, Set):
            self._add("char", node)
        elif isinstance(node, Anchor):
            self._add("anchor", node.kind)
        elif isinstance(node, Sequence):
            for part in node.parts:
                self._emit(part)
        elif isinstance(node, Group):
            captures = node.index or node.inner is self.tree
            if captures:
                self._add("save", 2 * node.index)
            self._emit(node.inner)
            if captures:
                self._add("save", 2 * node.index + 1)
        elif isinstance(node, Choice):
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

    def _emit_repeat(self, node: Repeat) -> None:
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

    def search(self, text: str) -> Spans | None:
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
                if char and isinstance(argument, Set) and argument.holds(char):
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
