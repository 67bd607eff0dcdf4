"""Name filters of ground-truth files: regular expressions that always answer, and soon.

A filter comes from a file we did not write. It may be no regular expression at all (`*.*`), or one that keeps a
backtracking engine busy for ever (`(a+)+$`). Here a pattern is parsed by us first; what is not a regular expression
is read as a glob and says so. A pattern without risk goes to Python's `re`; any other runs on a set-of-states
machine whose work is bounded by pattern size times name length. Both mean the same: the *whole* name must match.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Literal

MAX_PROGRAM = 4000  # instructions; a larger pattern is read as a glob
MAX_NAME = 300  # longer names denote no Kubernetes object and match nothing
_UNBOUNDED = -1


class _NotARegex(Exception):
    """The text is no regular expression we can run; the reason is for the user."""


@dataclass(frozen=True, slots=True)
class _Chars:
    """One character out of (or, negated, outside) some ranges."""

    ranges: tuple[tuple[str, str], ...]
    negated: bool = False

    def __contains__(self, character: str) -> bool:
        return any(low <= character <= high for low, high in self.ranges) != self.negated


@dataclass(frozen=True, slots=True)
class _Assert:
    kind: Literal["start", "end", "word", "not-word"]


@dataclass(frozen=True, slots=True)
class _Look:
    body: _Node
    negated: bool


@dataclass(frozen=True, slots=True)
class _Sequence:
    parts: tuple[_Node, ...]


@dataclass(frozen=True, slots=True)
class _Choice:
    options: tuple[_Node, ...]


@dataclass(frozen=True, slots=True)
class _Repeat:
    body: _Node
    least: int
    most: int


_Node = _Chars | _Assert | _Look | _Sequence | _Choice | _Repeat

_DIGIT = (("0", "9"),)
_WORD = (("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z"))
_SPACE = (("\t", "\r"), (" ", " "))
_CLASSES: dict[str, _Chars] = {
    "d": _Chars(_DIGIT),
    "D": _Chars(_DIGIT, negated=True),
    "w": _Chars(_WORD),
    "W": _Chars(_WORD, negated=True),
    "s": _Chars(_SPACE),
    "S": _Chars(_SPACE, negated=True),
}
_ASSERTIONS: dict[str, _Assert] = {
    "b": _Assert("word"),
    "B": _Assert("not-word"),
    "A": _Assert("start"),
    "Z": _Assert("end"),
}
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "0": "\0"}
_ANY = _Chars((("\n", "\n"),), negated=True)


class _Parser:
    """Recursive descent over the part of Python's syntax that denotes regular languages, and lookaheads."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    def parse(self) -> _Node:
        node = self._choice()
        if self.at < len(self.text):
            raise _NotARegex(f"unbalanced parenthesis at {self.at}")
        return node

    def _peek(self) -> str:
        return self.text[self.at] if self.at < len(self.text) else ""

    def _choice(self) -> _Node:
        self.depth += 1
        if self.depth > 50:
            raise _NotARegex("nested too deeply")
        options = [self._sequence()]
        while self._peek() == "|":
            self.at += 1
            options.append(self._sequence())
        self.depth -= 1
        return options[0] if len(options) == 1 else _Choice(tuple(options))

    def _sequence(self) -> _Node:
        parts: list[_Node] = []
        while self._peek() not in ("", "|", ")"):
            parts.append(self._quantified())
        return parts[0] if len(parts) == 1 else _Sequence(tuple(parts))

    def _quantified(self) -> _Node:
        atom = self._atom()
        bounds = self._quantifier()
        if bounds is None:
            return atom
        if self._peek() == "+":
            raise _NotARegex("possessive repeats are not supported")
        if self._peek() == "?":
            self.at += 1  # lazy or greedy is the same question when the whole name must match
        if self._quantifier() is not None:
            raise _NotARegex(f"multiple repeat at {self.at}")
        return _Repeat(atom, *bounds)

    def _quantifier(self) -> tuple[int, int] | None:
        simple = {"*": (0, _UNBOUNDED), "+": (1, _UNBOUNDED), "?": (0, 1)}.get(self._peek())
        if simple:
            self.at += 1
            return simple
        counted = re.compile(r"\{(\d*)(,?)(\d*)\}").match(self.text, self.at)
        if counted is None or (not counted[1] and not counted[2]):
            return None
        self.at = counted.end()
        least = int(counted[1] or 0)
        most = least if not counted[2] else int(counted[3]) if counted[3] else _UNBOUNDED
        if most != _UNBOUNDED and least > most:
            raise _NotARegex("repeat bounds are the wrong way round")
        if max(least, most) > MAX_PROGRAM:
            raise _NotARegex("the counted repeat is too large")
        return least, most

    def _atom(self) -> _Node:
        character = self._peek()
        self.at += 1
        if character in "*+?":
            raise _NotARegex(f"nothing to repeat at {self.at - 1}")
        if character == ".":
            return _ANY
        if character == "^":
            return _Assert("start")
        if character == "$":
            return _Assert("end")
        if character == "(":
            return self._group()
        if character == "[":
            return self._char_class()
        if character == "\\":
            return self._escape()
        return _Chars(((character, character),))

    def _group(self) -> _Node:
        look: bool | None = None
        if self._peek() == "?":
            named = re.compile(r"\?P<[A-Za-z_]\w*>").match(self.text, self.at)
            if named:
                self.at = named.end()
            elif self.text.startswith("?:", self.at):
                self.at += 2
            elif self.text.startswith(("?=", "?!"), self.at):
                look = self.text[self.at + 1] == "!"
                self.at += 2
            else:
                raise _NotARegex(f"unsupported group at {self.at - 1}")
        body = self._choice()
        if self._peek() != ")":
            raise _NotARegex("missing closing parenthesis")
        self.at += 1
        return body if look is None else _Look(body, look)

    def _escape(self) -> _Node:
        character = self._peek()
        if not character:
            raise _NotARegex("the pattern ends in a backslash")
        self.at += 1
        if character in _CLASSES:
            return _CLASSES[character]
        if character in _ASSERTIONS:
            return _ASSERTIONS[character]
        literal = _CONTROLS.get(character, character)
        if literal == character and character.isalnum():
            raise _NotARegex(f"unsupported escape \\{character}")
        return _Chars(((literal, literal),))

    def _class_member(self) -> _Chars:
        character = self._peek()
        self.at += 1
        if character != "\\":
            return _Chars(((character, character),))
        node = self._escape()
        if not isinstance(node, _Chars):
            raise _NotARegex("a boundary cannot stand in a character class")
        return node

    def _char_class(self) -> _Chars:
        negated = self._peek() == "^"
        self.at += negated
        ranges: list[tuple[str, str]] = []
        first = True
        while first or self._peek() != "]":
            if not self._peek():
                raise _NotARegex("unterminated character class")
            first = False
            member = self._class_member()
            if member.negated:
                raise _NotARegex("a negated class within a class is not supported")
            if (
                self._peek() == "-"
                and self.text[self.at + 1 : self.at + 2] not in ("]", "")
                and len(member.ranges) == 1
            ):
                self.at += 1
                upper = self._class_member()
                low, high = member.ranges[0][0], upper.ranges[0][0]
                if low > high:
                    raise _NotARegex("bad character range")
                ranges.append((low, high))
            else:
                ranges.extend(member.ranges)
        self.at += 1
        return _Chars(tuple(ranges), negated)


# The machine: a program is a list of instructions, a run keeps the set of positions in it that are alive.
_Instruction = (
    tuple[Literal["char"], _Chars]
    | tuple[Literal["split"], int, int]
    | tuple[Literal["jump"], int]
    | tuple[Literal["assert"], _Assert]
    | tuple[Literal["look"], "_Program", bool]
    | tuple[Literal["match"]]
)
_Program = list[_Instruction]


def _compile(node: _Node) -> _Program:
    program: _Program = []

    def emit(instruction: _Instruction) -> int:
        if len(program) >= MAX_PROGRAM:
            raise _NotARegex("the pattern is too large")
        program.append(instruction)
        return len(program) - 1

    def add(part: _Node) -> None:
        match part:
            case _Chars():
                emit(("char", part))
            case _Assert():
                emit(("assert", part))
            case _Look(body, negated):
                emit(("look", _compile(body), negated))
            case _Sequence(parts):
                for each in parts:
                    add(each)
            case _Choice(options):
                ends: list[int] = []
                for option in options[:-1]:
                    fork = emit(("split", 0, 0))
                    add(option)
                    ends.append(emit(("jump", 0)))
                    program[fork] = ("split", fork + 1, len(program))
                add(options[-1])
                for end in ends:
                    program[end] = ("jump", len(program))
            case _Repeat(body, least, most):
                for _ in range(least):
                    add(body)
                if most == _UNBOUNDED:
                    fork = emit(("split", 0, 0))
                    add(body)
                    emit(("jump", fork))
                    program[fork] = ("split", fork + 1, len(program))
                else:
                    forks = []
                    for _ in range(most - least):
                        forks.append(emit(("split", 0, 0)))
                        add(body)
                    for fork in forks:
                        program[fork] = ("split", fork + 1, len(program))

    add(node)
    emit(("match",))
    return program


def _is_word(character: str) -> bool:
    return character in _CLASSES["w"]


def _holds(assertion: _Assert, text: str, at: int) -> bool:
    if assertion.kind == "start":
        return at == 0
    if assertion.kind == "end":
        return at == len(text)
    boundary = (at > 0 and _is_word(text[at - 1])) != (at < len(text) and _is_word(text[at]))
    return boundary == (assertion.kind == "word")


def _follow(program: _Program, starts: list[int], text: str, at: int) -> list[int]:
    """Every instruction reachable without consuming a character."""
    seen: set[int] = set()
    stack = list(reversed(starts))
    alive: list[int] = []
    while stack:
        position = stack.pop()
        if position in seen:
            continue
        seen.add(position)
        match program[position]:
            case ("split", left, right):
                stack += [right, left]
            case ("jump", target):
                stack.append(target)
            case ("assert", assertion):
                if _holds(assertion, text, at):
                    stack.append(position + 1)
            case ("look", body, negated):
                if _accepts(body, text, at, whole=False) != negated:
                    stack.append(position + 1)
            case _:
                alive.append(position)
    return alive


def _accepts(program: _Program, text: str, start: int = 0, *, whole: bool = True) -> bool:
    alive = _follow(program, [0], text, start)
    for at in range(start, len(text) + 1):
        if not alive:
            return False
        if any(program[position][0] == "match" for position in alive) and (not whole or at == len(text)):
            return True
        if at == len(text):
            return False
        following: list[int] = []
        for position in alive:
            match program[position]:
                case ("char", chars):
                    if text[at] in chars:
                        following.append(position + 1)
                case _:
                    pass
        alive = _follow(program, following, text, at + 1)
    return False


def _walk(node: _Node) -> Iterator[_Node]:
    yield node
    match node:
        case _Look(body, _) | _Repeat(body, _, _):
            yield from _walk(body)
        case _Sequence(parts) | _Choice(parts):
            for part in parts:
                yield from _walk(part)
        case _:
            pass


def _repeats(node: _Node) -> list[_Repeat]:
    return [each for each in _walk(node) if isinstance(each, _Repeat)]


def _explosive(node: _Node) -> bool:
    """A repeat within a repeat: the shape on which backtracking engines take exponential time."""
    return any(
        inner.most != 1
        for outer in _repeats(node)
        if outer.most == _UNBOUNDED or outer.most > 1
        for inner in _repeats(outer.body)
    )


def _cheap(node: _Node) -> bool:
    """Safe to hand to a backtracking engine: few repeats, each of a single character, no large counts."""
    repeats = _repeats(node)
    small = all(each.most <= 20 and isinstance(each.body, _Chars) for each in repeats)
    return len(repeats) <= 2 and small and not any(isinstance(each, _Look) for each in _walk(node))


_TAIL = re.compile(r"(?:-?\.[*+]|-\\d[*+]|-\[[^\]]*\](?:[*+]|\{[\d,]+\})|\\b|\$)+$")
_LITERAL = re.compile(r"(?:[A-Za-z0-9_-]|\\[-._/])+")


def _literal_stem(text: str) -> str | None:
    """`checkout` out of `checkout-.*`, `checkout\\b`, `^checkout$`: the literal name a filter is built around."""
    body = _TAIL.sub("", text.removeprefix("^").removeprefix("(?:").removesuffix(")"))
    return body.replace("\\", "") if _LITERAL.fullmatch(body) else None


def _glob_accepts(glob: str, text: str) -> bool:
    """`*` is any run and `?` any one character; two cursors and one restart point, so never more than n·m steps."""
    at = star = -1
    position = cursor = 0
    while position < len(text):
        if cursor < len(glob) and glob[cursor] == "*":
            star, at = cursor, position
            cursor += 1
        elif cursor < len(glob) and glob[cursor] in ("?", text[position]):
            cursor += 1
            position += 1
        elif star >= 0:
            at += 1
            position, cursor = at, star + 1
        else:
            return False
    return all(character == "*" for character in glob[cursor:])


def _example(node: _Node) -> str:
    match node:
        case _Chars(ranges, negated):
            if not negated:
                return ranges[0][0]
            return next(character for character in "x2-_/ " if character in node)
        case _Sequence(parts):
            return "".join(_example(part) for part in parts)
        case _Choice(options):
            return _example(options[0])
        case _Repeat(body, least, _):
            return _example(body) * least
        case _:
            return ""


@dataclass(frozen=True, slots=True)
class NamePattern:
    """One filter, ready to be asked."""

    text: str
    stem: str | None
    problem: str | None
    explosive: bool
    literals: int
    example: str
    _accept: Callable[[str], bool]

    def matches(self, name: str) -> bool:
        return len(name) <= MAX_NAME and _cached_match(self.text, name)


def _quick(text: str) -> Callable[[str], bool] | None:
    """Python's own engine on the pattern, where it takes the pattern at all."""
    try:
        compiled = re.compile(text)
    except re.error:
        return None
    return lambda name: compiled.fullmatch(name) is not None


@lru_cache(maxsize=4096)
def compile_pattern(text: str) -> NamePattern:
    """Read a filter; never fails: what is not a regular expression is a glob, and `problem` says why."""
    try:
        node = _Parser(text).parse()
        program = _compile(node)
    except _NotARegex as problem:
        glob = text.replace(".*", "*").replace("\\b", "").replace("\\", "").removeprefix("^").removesuffix("$")
        example = glob.replace("*", "").replace("?", "x")
        stem = glob.rstrip("*").removesuffix("-")
        return NamePattern(
            text,
            stem if stem and not set(stem) & set("*?[](){}|+") else None,
            f"not a regular expression we can run ({problem}); read as the glob {glob!r}",
            False,
            sum(character not in "*?" for character in glob),
            example,
            lambda name: _glob_accepts(glob, name),
        )
    quick = _quick(text) if _cheap(node) else None
    accept = quick or partial(_accepts, program)
    literals = sum(1 for each in _walk(node) if isinstance(each, _Chars) and not each.negated and _single(each))
    return NamePattern(text, _literal_stem(text), None, _explosive(node), literals, _example(node), accept)


def _single(chars: _Chars) -> bool:
    return len(chars.ranges) == 1 and chars.ranges[0][0] == chars.ranges[0][1]


@lru_cache(maxsize=262144)
def _cached_match(text: str, name: str) -> bool:
    return compile_pattern(text)._accept(name)
