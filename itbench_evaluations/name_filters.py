"""Name filters of ground-truth files: regular expressions that must match a whole name, in bounded time.

A filter comes from a file we did not write: Python's syntax as a rule, but it may be no regular expression at all
(`*.*`), or one that keeps a backtracking engine busy for ever (`(a+)+$`). What is not a regular expression is read as
a glob and says so. The others are parsed by Python and run on RE2; those with lookaheads, which RE2 does not have,
are evaluated over sets of positions, with a limit on steps.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from srearena.regular_expressions import PatternError, literal, pattern

MAX_NAME = 300  # characters; longer names denote no Kubernetes object and match nothing
MAX_SIZE = 4000  # atoms after counted repeats are written out; a larger filter is read as a glob
MAX_NESTING = 50  # parentheses within parentheses; the parser is recursive
MAX_STEPS = 100_000  # evaluations of one node of a filter with lookaheads: a tenth of a second

_parse: Callable[[str], Any] = importlib.import_module("re._parser").parse
"""Python's own parser of expressions: its result is a sequence of (operation, argument)."""

_Sequence = Any
_ASSERTIONS = {
    "AT_BEGINNING": r"\A",
    "AT_BEGINNING_STRING": r"\A",
    "AT_END": r"\z",
    "AT_END_STRING": r"\z",
    "AT_BOUNDARY": r"\b",
    "AT_NON_BOUNDARY": r"\B",
}
_CLASSES = {
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_WORD": r"\W",
    "CATEGORY_SPACE": r"\t-\r ",
    "CATEGORY_NOT_SPACE": r"\S",
}
_ATOM = re.compile(
    r"""
    (?P<open>\((?:\?(?:P<\w+>|[:=!]))?) | (?P<close>\)) | [.^$*+?|] | \{(?:\d+(?:,\d*)?|,\d*)\}
    | \[(?P<negation>\^?)(?P<members>\]?(?:\\.|[^]\\])*)\] | \\(?P<escape>.) | (?P<literal>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_TAIL = re.compile(r"(?:-?\.[*+]|-\\d[*+]|-\[[^\]]*\](?:[*+]|\{[\d,]+\})|\\b|\$)+$")
_LITERAL = re.compile(r"(?:[A-Za-z0-9_-]|\\[-._/])+")


class _NotARegex(Exception):
    """The text is no regular expression that can be run; the reason is for the user."""


class _TooManySteps(Exception):
    """A filter with lookaheads exceeds its steps."""


@dataclass(frozen=True, slots=True)
class NamePattern:
    """One filter, compiled."""

    text: str
    stem: str | None
    problem: str | None
    explosive: bool
    literals: int
    example: str
    _accept: Callable[[str], bool]

    def matches(self, name: str) -> bool:
        return len(name) <= MAX_NAME and _cached_match(self.text, name)


@lru_cache(maxsize=1024)
def compile_pattern(text: str) -> NamePattern:
    """Read a filter; never fails: what is not a regular expression is a glob, and `problem` says why."""
    try:
        literals = _literals(text)
        tree = _parsed(text)
        accept = _acceptor(tree)
    except _NotARegex as problem:
        return _glob(text, str(problem))
    return NamePattern(text, _literal_stem(text), None, _explosive(tree), literals, _example(tree), accept)


@lru_cache(maxsize=262144)
def _cached_match(text: str, name: str) -> bool:
    return compile_pattern(text)._accept(name)


# --- reading -------------------------------------------------------------------------------------------------


def _literals(text: str) -> int:
    """The number of characters the filter spells out: how specific it is."""
    count = depth = 0
    for atom in _ATOM.finditer(text):
        depth += bool(atom["open"]) - bool(atom["close"])
        if depth > MAX_NESTING:
            raise _NotARegex("nested too deeply")
        if atom["members"]:
            count += not atom["negation"] and len(atom["members"]) == 1
        else:
            count += bool(atom["literal"]) or bool(atom["escape"] and atom["escape"] not in "dDwWsSbBAZ")
    return count


def _parsed(text: str) -> _Sequence:
    try:
        tree = _parse(text)
    except (re.error, OverflowError, ValueError) as problem:
        raise _NotARegex(str(problem)) from None
    if tree.state.flags & ~re.UNICODE:
        raise _NotARegex("flags are not supported")
    for operation, argument in _walk(tree):
        scoped_flags = operation == "SUBPATTERN" and (argument[1] or argument[2])
        lookbehind = operation in ("ASSERT", "ASSERT_NOT") and argument[0] < 0
        if scoped_flags or lookbehind or operation.startswith(("GROUPREF", "ATOMIC", "POSSESSIVE")):
            raise _NotARegex(f"unsupported: {operation.lower().replace('_', ' ')}")
    if _size(tree) > MAX_SIZE:
        raise _NotARegex("the pattern is too large")
    return tree


def _parts(operation: str, argument: Any) -> list[_Sequence]:
    """The sequences inside a node."""
    if operation == "BRANCH":
        return list(argument[1])
    return [argument[-1]] if operation in ("SUBPATTERN", "MAX_REPEAT", "MIN_REPEAT", "ASSERT", "ASSERT_NOT") else []


def _walk(sequence: _Sequence) -> Iterator[tuple[str, Any]]:
    for operation, argument in sequence:
        yield str(operation), argument
        for part in _parts(str(operation), argument):
            yield from _walk(part)


def _bounds(argument: Any) -> tuple[int, int | None]:
    """How often a repeat's body may stand there."""
    least, most, _ = argument
    return int(least), None if str(most) == "MAXREPEAT" else int(most)


def _repeats(sequence: _Sequence) -> list[Any]:
    return [argument for operation, argument in _walk(sequence) if operation in ("MAX_REPEAT", "MIN_REPEAT")]


def _size(sequence: _Sequence) -> int:
    total = 0
    for name, argument in sequence:
        operation = str(name)
        size = 1 + sum(_size(part) for part in _parts(operation, argument))
        if operation in ("MAX_REPEAT", "MIN_REPEAT"):
            least, most = _bounds(argument)
            size *= max(1, least + 1 if most is None else most)
        total += size
    return total


def _explosive(sequence: _Sequence) -> bool:
    """A repeat within a repeat: the shape on which backtracking engines take exponential time."""
    return any(
        _bounds(inner)[1] != 1
        for outer in _repeats(sequence)
        if _bounds(outer)[1] not in (0, 1)
        for inner in _repeats(outer[-1])
    )


def _literal_stem(text: str) -> str | None:
    """`checkout` out of `checkout-.*`, `checkout\\b`, `^checkout$`: the literal name a filter is built around."""
    body = _TAIL.sub("", text.removeprefix("^").removeprefix("(?:").removesuffix(")"))
    return body.replace("\\", "") if _LITERAL.fullmatch(body) else None


def _example(sequence: _Sequence) -> str:
    """A text that the filter, apart from assertions, accepts."""
    return "".join(_example_of(str(operation), argument) for operation, argument in sequence)


def _example_of(operation: str, argument: Any) -> str:
    parts = _parts(operation, argument)
    if parts:
        count = _bounds(argument)[0] if operation.endswith("REPEAT") else not operation.startswith("ASSERT")
        return _example(parts[0]) * count
    if operation == "AT":
        return ""
    kind, value = argument[0] if operation == "IN" else (operation, argument)
    if str(kind) in ("LITERAL", "RANGE"):
        return chr(value if str(kind) == "LITERAL" else value[0])
    if str(value) in ("CATEGORY_DIGIT", "CATEGORY_WORD", "CATEGORY_SPACE"):
        return "\t" if str(value) == "CATEGORY_SPACE" else "0"
    members = pattern(_written_node(operation, argument))
    return next((character for character in "x2-_/ " if members.matches(character)), "")


# --- matching ------------------------------------------------------------------------------------------------


def _acceptor(tree: _Sequence) -> Callable[[str], bool]:
    if any(operation.startswith("ASSERT") for operation, _ in _walk(tree)):
        return partial(_accepts, tree)
    try:
        return pattern(rf"\A(?:{_written(tree)})\z").matches
    except PatternError:
        raise _NotARegex("the pattern is too large") from None


def _written(sequence: _Sequence) -> str:
    """A parsed filter without lookaheads in RE2's syntax."""
    return "".join(_written_node(str(operation), argument) for operation, argument in sequence)


def _written_node(operation: str, argument: Any) -> str:
    parts = [_written(part) for part in _parts(operation, argument)]
    if parts:
        body = f"(?:{'|'.join(parts)})"
        if not operation.endswith("REPEAT"):
            return body
        least, most = _bounds(argument)
        return f"{body}{{{least},{'' if most is None else most}}}"
    if operation == "AT":
        return _ASSERTIONS[str(argument)]
    if operation == "ANY":
        return r"[^\n]"
    members = argument if operation == "IN" else [(operation, argument)]
    return f"[{''.join(_written_member(str(kind), value) for kind, value in members)}]"


def _written_member(kind: str, value: Any) -> str:
    match kind:
        case "NEGATE":
            return "^"
        case "LITERAL":
            return literal(chr(value))
        case "NOT_LITERAL":
            return "^" + literal(chr(value))
        case "RANGE":
            return f"{literal(chr(value[0]))}-{literal(chr(value[1]))}"
        case _:
            return _CLASSES[str(value)]


def _accepts(tree: _Sequence, name: str) -> bool:
    """Whether a filter with lookaheads matches the whole name; not if that takes too many steps."""
    try:
        return bool(_Positions(name).after(tree, 1) >> len(name) & 1)
    except _TooManySteps:
        return False


class _Positions:
    """Evaluation of an expression over sets of positions in one name; bit i of a number is position i."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._steps = 0
        self._fits: dict[str, int] = {}

    def after(self, sequence: _Sequence, starts: int) -> int:
        """Where a match of the sequence can end that starts at one of the positions."""
        for operation, argument in sequence:
            if not starts:
                break
            starts = self._after_node(str(operation), argument, starts)
        return starts

    def _after_node(self, operation: str, argument: Any, starts: int) -> int:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise _TooManySteps
        match operation:
            case "BRANCH":
                ends = 0
                for part in argument[1]:
                    ends |= self.after(part, starts)
                return ends
            case "SUBPATTERN":
                return self.after(argument[-1], starts)
            case "MAX_REPEAT" | "MIN_REPEAT":
                return self._after_repeat(argument[-1], *_bounds(argument), starts)
            case "ASSERT" | "ASSERT_NOT":
                wanted = operation == "ASSERT"
                bits = (1 << position for position in range(starts.bit_length()) if starts >> position & 1)
                return sum(bit for bit in bits if bool(self.after(argument[1], bit)) is wanted)
        fits = starts & self._fitting(_written_node(operation, argument))
        return fits if operation == "AT" else fits << 1

    def _after_repeat(self, body: _Sequence, least: int, most: int | None, starts: int) -> int:
        for _ in range(least):
            following = self.after(body, starts)
            if following == starts:
                break
            starts = following
        ends, count = starts, least
        while starts and (most is None or count < most):
            starts = self.after(body, starts) & ~ends
            ends |= starts
            count += 1
        return ends

    def _fitting(self, atom: str) -> int:
        """The positions at which an atom of one character, or an assertion, matches."""
        if atom not in self._fits:
            self._fits[atom] = sum(1 << match.start for match in pattern(atom).find_all(self._name))
        return self._fits[atom]


# --- globs ---------------------------------------------------------------------------------------------------


def _glob(text: str, problem: str) -> NamePattern:
    glob = text.replace(".*", "*").replace("\\b", "").replace("\\", "").removeprefix("^").removesuffix("$")
    stem = glob.rstrip("*").removesuffix("-")
    return NamePattern(
        text,
        stem if stem and not set(stem) & set("*?[](){}|+") else None,
        f"not a regular expression we can run ({problem}); read as the glob {glob!r}",
        False,
        sum(character not in "*?" for character in glob),
        glob.replace("*", "").replace("?", "x"),
        _glob_acceptor(glob),
    )


def _glob_acceptor(glob: str) -> Callable[[str], bool]:
    if len(glob.replace("*", "")) > MAX_NAME:
        return lambda name: False
    wildcards = {"*": "(?s:.*)", "?": "(?s:.)"}
    parts = (wildcards.get(character) or literal(character) for character in re.sub(r"\*+", "*", glob))
    return pattern(rf"\A{''.join(parts)}\z").matches
