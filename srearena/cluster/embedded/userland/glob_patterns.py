"""Shell patterns: `*`, `?` and `[...]`, matched in time proportional to text times pattern, whatever the pattern.

A pattern is written as text in which a backslash takes the special meaning from the next character; that is how the
expander marks what was quoted.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

_CLASSES: dict[str, Callable[[str], bool]] = {
    "alpha": str.isalpha,
    "digit": lambda c: c in "0123456789",
    "alnum": str.isalnum,
    "upper": str.isupper,
    "lower": str.islower,
    "space": str.isspace,
    "blank": lambda c: c in " \t",
    "punct": lambda c: c.isprintable() and not c.isalnum() and not c.isspace(),
    "print": str.isprintable,
    "graph": lambda c: c.isprintable() and not c.isspace(),
    "cntrl": lambda c: ord(c) < 32 or ord(c) == 127,
    "xdigit": lambda c: c in "0123456789abcdefABCDEF",
}


class CharacterSet:
    """The inside of `[...]`, of patterns and of regular expressions."""

    __slots__ = ("classes", "negated", "ranges")

    def __init__(self, negated: bool) -> None:
        self.negated = negated
        self.ranges: list[tuple[str, str]] = []
        self.classes: list[str] = []

    def __call__(self, char: str) -> bool:
        found = any(low <= char <= high for low, high in self.ranges)
        found = found or any(_CLASSES[name](char) for name in self.classes)
        return found is not self.negated


def parse_set(text: str, start: int, *, negation: str = "!^") -> tuple[CharacterSet, int] | None:
    """Parse `[...]` at `start` (which is behind the bracket); None where it is never closed."""
    index = start
    negated = index < len(text) and text[index] in negation
    if negated:
        index += 1
    result = CharacterSet(negated)
    first = True
    while index < len(text) and (text[index] != "]" or first):
        first = False
        if text.startswith("[:", index):
            end = text.find(":]", index)
            name = text[index + 2 : end] if end > 0 else ""
            if name in _CLASSES:
                result.classes.append(name)
                index = end + 2
                continue
        char, index = _set_character(text, index)
        if text.startswith("-", index) and index + 1 < len(text) and text[index + 1] != "]":
            high, index = _set_character(text, index + 1)
            result.ranges.append((char, high))
        else:
            result.ranges.append((char, char))
    if index >= len(text):
        return None
    return result, index + 1


def _set_character(text: str, index: int) -> tuple[str, int]:
    if text[index] == "\\" and index + 1 < len(text):
        return text[index + 1], index + 2
    return text[index], index + 1


STAR = None
Matcher = str | CharacterSet | Callable[[str], bool] | None


def _any(char: str) -> bool:
    return True


class Pattern:
    __slots__ = ("_tokens", "literal")

    def __init__(self, text: str) -> None:
        self._tokens: list[Matcher] = []
        index = 0
        while index < len(text):
            char = text[index]
            index += 1
            if char == "\\" and index < len(text):
                self._tokens.append(text[index])
                index += 1
            elif char == "*":
                if not self._tokens or self._tokens[-1] is not STAR:
                    self._tokens.append(STAR)
            elif char == "?":
                self._tokens.append(_any)
            elif char == "[" and (found := parse_set(text, index)) is not None:
                self._tokens.append(found[0])
                index = found[1]
            else:
                self._tokens.append(char)
        plain = [token for token in self._tokens if isinstance(token, str)]
        self.literal: str | None = "".join(plain) if len(plain) == len(self._tokens) else None
        """The one text it matches, where there is nothing special in it."""

    def matches(self, text: str) -> bool:
        """Whether the whole text matches."""
        if self.literal is not None:
            return text == self.literal
        tokens = self._tokens
        position = token = 0
        star = -1
        resume = 0
        while position < len(text):
            if token < len(tokens) and tokens[token] is STAR:
                star, resume = token, position
                token += 1
            elif token < len(tokens) and _fits(tokens[token], text[position]):
                position += 1
                token += 1
            elif star >= 0:
                resume += 1
                position, token = resume, star + 1
            else:
                return False
        while token < len(tokens) and tokens[token] is STAR:
            token += 1
        return token == len(tokens)

    def prefix(self, text: str, *, longest: bool) -> int | None:
        """The length of the shortest or longest prefix that matches."""
        return _prefix(self._tokens, text, longest)

    def suffix(self, text: str, *, longest: bool) -> int | None:
        """The length of the shortest or longest suffix that matches."""
        return _prefix(self._tokens[::-1], text[::-1], longest)


def _fits(token: Matcher, char: str) -> bool:
    if isinstance(token, str):
        return token == char
    return token is not None and token(char)


def _prefix(tokens: list[Matcher], text: str, longest: bool) -> int | None:
    """Walk the text once, keeping the set of places in the pattern one could be at."""
    end = len(tokens)
    states = _closure({0}, tokens)
    found = 0 if end in states else None
    if found is not None and not longest:
        return found
    for index, char in enumerate(text):
        following = set()
        for state in states:
            if state < end:
                if tokens[state] is STAR:
                    following.add(state)
                elif _fits(tokens[state], char):
                    following.add(state + 1)
        states = _closure(following, tokens)
        if not states:
            break
        if end in states:
            found = index + 1
            if not longest:
                return found
    return found


def _closure(states: set[int], tokens: list[Matcher]) -> set[int]:
    result = set(states)
    for state in states:
        while state < len(tokens) and tokens[state] is STAR:
            state += 1
            result.add(state)
    return result


@lru_cache(maxsize=2048)
def compiled(text: str) -> Pattern:
    return Pattern(text)


_SPECIAL = re.compile(r"([*?\[\]\\!^-])")
_MAGIC = re.compile(r"(?:[^\\*?\[]|\\.)*[*?\[]", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def escaped(text: str) -> str:
    """The pattern that matches exactly this text."""
    return _SPECIAL.sub(r"\\\1", text)


def has_magic(text: str) -> bool:
    """Whether an escaped pattern has something to expand."""
    if "*" not in text and "?" not in text and "[" not in text:
        return False
    return _MAGIC.match(text) is not None


def unescaped(text: str) -> str:
    return _ESCAPED.sub(r"\1", text) if "\\" in text else text
