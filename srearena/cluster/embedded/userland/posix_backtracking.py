"""A backtracking matcher for the POSIX expressions RE2 cannot run, with a limit on steps.

Those are expressions with back-references, with `\\<` and `\\>` in places where RE2's `\\b` does not mean the same, and
with counts beyond RE2's limits. The match is the leftmost, and of those the longest.
"""

from __future__ import annotations

from collections.abc import Callable

from srearena.cluster.embedded.userland.posix_syntax import (
    AnyChar,
    Assert,
    BackReference,
    Char,
    Concat,
    Either,
    Group,
    RegexError,
    Repeat,
    Set,
    Tree,
)

MAX_PROGRAM = 20_000
MAX_STEPS = 300_000
"""Instructions per search: less than a second. The C library gives up as well, out of memory."""
_STEPS_PER_CHARACTER = 20
"""Further instructions on a long line: enough to try a short expression at every position."""

_Test = Callable[[str], bool]
_Instruction = tuple[str, int, int, _Test | None]
Spans = tuple[tuple[int, int] | None, ...]


class Backtracker:
    """A program of tests, splits and marks."""

    def __init__(self, tree: Tree, groups: int, *, ignore_case: bool, has_back_references: bool) -> None:
        self._code: list[_Instruction] = []
        self._ignore_case = ignore_case
        self._has_back_references = has_back_references
        self._spans = 2 * (groups + 1)
        self._slots = self._spans
        self._compile(Group(0, tree))
        self._emit("match")

    def _emit(self, kind: str, first: int = 0, second: int = 0, test: _Test | None = None) -> int:
        if len(self._code) >= MAX_PROGRAM:
            raise RegexError("Regular expression too big")
        self._code.append((kind, first, second, test))
        return len(self._code) - 1

    def _compile(self, tree: Tree) -> None:
        if isinstance(tree, Char | AnyChar | Set):
            self._emit("test", test=self._test(tree))
        elif isinstance(tree, Assert):
            self._emit(f"assert{tree.kind}")
        elif isinstance(tree, BackReference):
            self._emit("back", tree.number)
        elif isinstance(tree, Group):
            self._emit("save", 2 * tree.number)
            self._compile(tree.body)
            self._emit("save", 2 * tree.number + 1)
        elif isinstance(tree, Concat):
            for item in tree.items:
                self._compile(item)
        elif isinstance(tree, Either):
            self._compile_either(tree)
        else:
            self._compile_repeat(tree)

    def _test(self, tree: Char | AnyChar | Set) -> _Test:
        if isinstance(tree, AnyChar):
            return lambda char: True
        if isinstance(tree, Set):
            characters = tree.characters
            if self._ignore_case:
                return lambda char: characters(char.lower()) or characters(char.upper())
            return characters
        wanted = tree.text
        if self._ignore_case:
            return lambda char: char.lower() == wanted.lower()
        return lambda char: char == wanted

    def _compile_either(self, tree: Either) -> None:
        jumps: list[int] = []
        for item in tree.items[:-1]:
            split = self._emit("split")
            self._compile(item)
            jumps.append(self._emit("jump"))
            self._code[split] = ("split", split + 1, len(self._code), None)
        self._compile(tree.items[-1])
        for jump in jumps:
            self._code[jump] = ("jump", len(self._code), 0, None)

    def _compile_repeat(self, tree: Repeat) -> None:
        for _ in range(tree.least):
            self._compile(tree.body)
        if tree.most is None:
            # A slot holds where the iteration began: one that consumes nothing must not be followed by another.
            slot, self._slots = self._slots, self._slots + 1
            split = self._emit("split")
            self._emit("save", slot)
            self._compile(tree.body)
            self._emit("advanced", slot)
            self._emit("jump", split)
            self._code[split] = ("split", split + 1, len(self._code), None)
            return
        splits = []
        for _ in range(tree.most - tree.least):
            splits.append(self._emit("split"))
            self._compile(tree.body)
        for split in splits:
            self._code[split] = ("split", split + 1, len(self._code), None)

    def search(self, text: str, start: int) -> Spans | None:
        """The spans of the match and of its groups; RegexError where that takes too many steps."""
        steps = MAX_STEPS + _STEPS_PER_CHARACTER * len(text)
        for begin in range(start, len(text) + 1):
            best: tuple[int, ...] | None = None
            visited: set[tuple[int, int]] = set()
            todo = [(0, begin, (-1,) * self._slots)]
            while todo:
                steps -= 1
                if steps < 0:
                    raise RegexError("Memory exhausted")
                address, position, slots = todo.pop()
                if not self._has_back_references:
                    if (address, position) in visited:
                        continue
                    visited.add((address, position))
                kind, first, second, test = self._code[address]
                if kind == "match":
                    if best is None or position > best[1]:
                        best = slots
                    if position == len(text):
                        break
                elif kind == "test":
                    if test is not None and position < len(text) and test(text[position]):
                        todo.append((address + 1, position + 1, slots))
                elif kind == "split":
                    todo.append((second, position, slots))
                    todo.append((first, position, slots))
                elif kind == "jump":
                    todo.append((first, position, slots))
                elif kind == "save":
                    todo.append((address + 1, position, (*slots[:first], position, *slots[first + 1 :])))
                elif kind == "advanced":
                    if slots[first] < position or not self._has_back_references:
                        todo.append((address + 1, position, slots))
                elif kind == "back":
                    end = self._after_back_reference(text, position, slots[2 * first], slots[2 * first + 1])
                    if end is not None:
                        todo.append((address + 1, end, slots))
                elif _holds(kind[6:], text, position):
                    todo.append((address + 1, position, slots))
            if best is not None:
                return tuple(
                    (best[slot], best[slot + 1]) if best[slot] >= 0 and best[slot + 1] >= 0 else None
                    for slot in range(0, self._spans, 2)
                )
        return None

    def _after_back_reference(self, text: str, position: int, start: int, end: int) -> int | None:
        if start < 0 or end < 0:
            return None
        captured, following = text[start:end], text[position : position + end - start]
        equal = captured.lower() == following.lower() if self._ignore_case else captured == following
        return position + end - start if equal else None


def _holds(kind: str, text: str, position: int) -> bool:
    if kind == "^":
        return position == 0
    if kind == "$":
        return position == len(text)
    before = position > 0 and (text[position - 1].isalnum() or text[position - 1] == "_")
    after = position < len(text) and (text[position].isalnum() or text[position] == "_")
    return {"b": before != after, "B": before == after, "<": after and not before, ">": before and not after}[kind]
