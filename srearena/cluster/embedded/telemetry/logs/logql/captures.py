"""The expressions of the `pattern` parser and of pattern filters: literal text with `<captures>` between.

A capture takes everything up to the literal that follows it. `<_>` takes it and forgets it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

_CAPTURE = re.compile(r"<([^\W\d]\w*)>")


class CaptureError(ValueError):
    """The expression is not one; the text is Loki's."""


Part = tuple[bool, str]
"""(whether it is a capture, its name or the literal)."""


@lru_cache(maxsize=256)
def captures(text: str, *, is_filter: bool = False) -> tuple[Part, ...]:
    parts: list[Part] = []
    end = 0
    for found in _CAPTURE.finditer(text):
        if found.start() > end:
            parts.append((False, text[end : found.start()]))
        parts.append((True, found[1]))
        end = found.end()
    if end < len(text):
        parts.append((False, text[end:]))
    names = [name for is_capture, name in parts if is_capture]
    named = [name for name in names if name != "_"]
    if not is_filter and not named:
        raise CaptureError("at least one capture is required")
    if is_filter and named:
        raise CaptureError("named captures are not allowed")
    for (is_capture, left), (follows, right) in pairwise(parts):
        if is_capture and follows:
            raise CaptureError(f"found consecutive capture '<{left}><{right}>': invalid expression")
    for name in named:
        if named.count(name) > 1:
            raise CaptureError(f"duplicate capture name ({name}): invalid expression")
    return tuple(parts)


def capture(parts: tuple[Part, ...], text: str) -> list[tuple[str, str]]:
    """Return the captures of an expression; none where the text does not match its beginning."""
    if not text:
        return []
    found: list[tuple[str, str]] = []
    rest = list(parts)
    if not rest[0][0]:
        if not text.startswith(rest[0][1]):
            return []
        text = text[len(rest[0][1]) :]
        rest = rest[1:]
    while rest:
        name = rest[0][1]
        at = text.find(rest[1][1]) if len(rest) > 1 else -1
        if at < 0:
            if name != "_":
                found.append((name, text))
            return found
        if name != "_":
            found.append((name, text[:at]))
        text = text[at + len(rest[1][1]) :]
        rest = rest[2:]
    return found


def holds(parts: tuple[Part, ...], text: str) -> bool:
    """Return whether a pattern filter matches a line: its literals in order, anchored where there is no capture."""
    if not parts:
        return text == ""
    if not text:
        return len(parts) == 1 and parts[0][0]
    at = 0
    for index, (is_capture, literal) in enumerate(parts):
        if is_capture:
            continue
        where = text.find(literal, at)
        if where < 0 or (index == 0 and where != 0):
            return False
        at = where + len(literal)
    return parts[-1][0] or text.endswith(parts[-1][1])
