"""Regular expressions in Go's syntax (RE2) with matching time linear in the text.

Expressions come from agents, files and requests, so none may run away: RE2 never backtracks, its memory is bounded, and
so is the number of compiled expressions kept. Semantics and error messages are those of Go's `regexp` package, which
the simulated programs (CoreDNS, Prometheus, Loki, the API server) use. The C++ library differs from it in few places:
error messages have other words, and some expressions that Go refuses compile (see `_go_refusal`).
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import re2  # type: ignore[import-untyped]

__all__ = ["Match", "Pattern", "PatternError", "Text", "literal", "pattern"]

_MAX_MEMORY = 8 << 20
"""Bytes per expression, program and caches together: RE2's default. A larger program is refused."""
_MAX_COMPILED = 256
"""Compiled expressions kept: with `_MAX_MEMORY` this bounds the memory of all."""

_GO_WORDS = {
    "bad repetition operator": "invalid nested repetition operator",
    "invalid named capture group": "invalid named capture",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": "invalid repeat count",
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "pattern too large - compile failed": "expression too large",
    "pattern too large - reverse compile failed": "expression too large",
    "trailing \\": "trailing backslash at end of expression",
}
"""RE2's errors in the words of Go's `regexp/syntax`; those not listed have the same words in both."""
_GO_MAX_DEPTH = 1000

_TOKEN = re.compile(
    r"""
    \\Q.*?(?:\\E|\Z) | \\(?P<escape>.) | \[\^?\]?(?:\\.|\[:\^?\w+:\]|[^]\\])*\]
    | (?P<count>\{(?:0|[1-9]\d*)(?:,(?:0|[1-9]\d*)?)?\})
    | (?P<open>(?P<name>\(\?P?<[^>]*>)|\(\??) | (?P<close>\))
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_HUGE = re.compile("[0-9]{9}")
_REFERENCE = re.compile(r"\$(?:(\$)|(\w+)|\{(\w+)\})")
_GROUP_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")
_SURROGATE = re.compile("[\ud800-\udfff]")


class PatternError(ValueError):
    """The text is not a regular expression; the message is Go's."""

    def __init__(self, problem: str, where: str) -> None:
        super().__init__(f"error parsing regexp: {problem}: `{where}`")


@dataclass(frozen=True, slots=True)
class Match:
    """One match of an expression in a text."""

    groups: tuple[str, ...]
    """The whole match, then every group; a group that took no part is empty."""
    names: Mapping[str, str]
    start: int
    end: int

    def expand(self, template: str) -> str:
        """Go's `Regexp.Expand`: $1, ${1}, $name, ${name}; $$ is a dollar; a group that does not exist is empty."""

        def value(reference: re.Match[str]) -> str:
            if reference[1]:
                return "$"
            name = reference[2] or reference[3]
            if _GROUP_NUMBER.fullmatch(name):
                return self.groups[int(name)] if int(name) < len(self.groups) else ""
            return self.names.get(name, "")

        return _REFERENCE.sub(value, template)


class Text:
    """A text encoded for RE2, with positions counted in characters; to be kept where it is searched repeatedly."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.data = _encoded(text)

    @cached_property
    def _starts(self) -> array[int]:
        """The position in the data of every character, and of the end."""
        if len(self.data) == len(self.text):
            return array("q")
        starts = array("q", (position for position, byte in enumerate(self.data) if byte & 0xC0 != 0x80))
        starts.append(len(self.data))
        return starts

    def position(self, character: int) -> int:
        """The position in the data of a character."""
        return self._starts[character] if self._starts else character

    def character(self, position: int) -> int:
        """The number of the character at a position in the data."""
        return bisect_left(self._starts, position) if self._starts else position


class Pattern:
    """A compiled expression over text."""

    def __init__(self, text: str, *, longest: bool = False) -> None:
        """`longest` chooses the longest of the leftmost matches, as POSIX does; otherwise the one Perl would choose."""
        self.text = text
        self.program = _compiled(text, captures=True, longest=longest)
        """RE2's own object over bytes, with the interface of `re.Pattern`."""
        self.names: Mapping[str, int] = {name.decode(): number for name, number in self.program.groupindex.items()}
        self._groups = range(self.program.groups + 1)

    @cached_property
    def presence(self) -> Any:
        """As `program`, only to see whether there is a match: its groups capture nothing, which is faster."""
        return _compiled(self.text, captures=False)

    def matches(self, text: str) -> bool:
        """Whether there is a match anywhere in the text; faster than `search`."""
        if "\\B" in self.text and not text.isascii():
            return self.search(text) is not None
        return self.presence.search(_encoded(text)) is not None

    def spans(self, text: Text, start: int = 0) -> list[tuple[int, int]] | None:
        """Where the leftmost match from a character on, and its groups, begin and end; -1 for a group without part."""
        position = text.position(start)
        while (match := self.program.search(text.data, position)) is not None:
            spans: list[tuple[int, int]] = [match.span(number) for number in self._groups]
            if len(text.data) == len(text.text):
                return spans
            position = spans[0][0]
            if position == len(text.data) or text.data[position] & 0xC0 != 0x80:
                return [
                    (text.character(first), text.character(last)) if first >= 0 else (-1, -1) for first, last in spans
                ]
            # An assertion holds between the bytes of a character, where Go has no position.
            position += 1
        return None

    def search(self, text: str) -> Match | None:
        """The leftmost match anywhere in the text."""
        return next(self.find_all(text), None)

    def find_all(self, text: str) -> Iterator[Match]:
        """The matches from left to right, without empty ones directly behind another match."""
        encoded = Text(text)
        position, last = 0, -1
        while position <= len(text) and (spans := self.spans(encoded, position)) is not None:
            start, end = spans[0]
            position = end if end > position else position + 1
            if end > last:
                last = end
                groups = tuple(text[first:stop] if first >= 0 else "" for first, stop in spans)
                yield Match(groups, {name: groups[number] for name, number in self.names.items()}, start, end)

    def replace_all(self, text: str, replacement: Callable[[Match], str]) -> str:
        """The text with every match replaced, as Go's `ReplaceAllStringFunc` does."""
        parts: list[str] = []
        end = 0
        for match in self.find_all(text):
            parts += (text[end : match.start], replacement(match))
            end = match.end
        return "".join(parts) + text[end:]


@lru_cache(maxsize=_MAX_COMPILED)
def pattern(text: str) -> Pattern:
    """The expression compiled, or a PatternError."""
    return Pattern(text)


def literal(text: str) -> str:
    """The expression that matches exactly the text."""
    return "".join(
        character if character.isalnum() and character.isascii() else rf"\x{{{ord(character):x}}}"
        for character in _SURROGATE.sub(_substitute, text)
    )


def _compiled(text: str, *, captures: bool, longest: bool = False) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_MEMORY
    options.never_capture = not captures
    options.longest_match = longest
    try:
        program = re2.compile(_encoded(text), options)
    except re2.error as error:
        raise _go_error(error.args[0].decode()) from None
    refusal = _go_refusal(text)
    if refusal is not None:
        raise refusal
    return program


def _encoded(text: str) -> bytes:
    """The text in UTF-8, with private characters for surrogates (undecodable bytes), which have no such form."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub(_substitute, text).encode()


def _substitute(surrogate: re.Match[str]) -> str:
    return chr(ord(surrogate[0]) - 0xD800 + 0x10F800)


def _go_error(message: str) -> PatternError:
    problem, _, where = message.partition(": ")
    if problem == "invalid repetition size":
        where = where.removesuffix("?")
    return PatternError(_GO_WORDS.get(problem, problem), where)


def _go_refusal(text: str) -> PatternError | None:
    r"""What Go refuses in an expression that the C++ library takes.

    That is `\C` (a single byte), counts too large for an integer, group names beyond ASCII, and groups too deep.
    """
    depth = [0]
    for token in _TOKEN.finditer(text):
        if token["escape"] == "C":
            return PatternError("invalid escape sequence", r"\C")
        if token["count"] and _HUGE.search(token["count"]):
            return PatternError("invalid repeat count", token["count"])
        if token["name"] and not token["name"].isascii():
            return PatternError("invalid named capture", token["name"])
        if token["open"]:
            depth.append(depth[-1] + (token["open"] != "(?"))
        elif token["close"]:
            depth.pop()
        if depth[-1] >= _GO_MAX_DEPTH:
            return PatternError("expression nests too deeply", text)
    return None
