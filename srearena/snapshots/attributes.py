"""Attribute columns in the three spellings recorders use: JSON, a Python dict's repr, Go's `map[k:v]`.

Parsing never executes anything and never raises: text that is none of the three comes back as an empty mapping, and
`parse_value` gives it back as it stands. Go's spelling is ambiguous where values hold spaces; a word without a colon
is taken to continue the value before it.
"""

from __future__ import annotations

import ast
from typing import Any

import orjson

MAX_TEXT = 4_000_000  # longer attribute text is no attribute text
_MAX_DEPTH = 50


def parse_attributes(text: str | None) -> dict[str, Any]:
    """A mapping, whatever its spelling; empty where the text is none."""
    value = parse_value(text)
    return {str(key): item for key, item in value.items()} if isinstance(value, dict) else {}


def parse_value(text: str | None) -> Any:
    """The value that JSON, Python or Go text stands for; text that is none of these stands for itself."""
    if not text or len(text) > MAX_TEXT:
        return text
    stripped = text.strip()
    opening = stripped[:1]
    if stripped.startswith("map["):
        value, end = _go_map(stripped, 4, 0)
        return value if end == len(stripped) else text
    if opening not in ("{", "["):
        return text
    try:
        return orjson.loads(stripped)
    except orjson.JSONDecodeError:
        pass
    try:
        return ast.literal_eval(stripped)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return _go_list(stripped) if opening == "[" else text


def _go_list(text: str) -> Any:
    if not text.endswith("]"):
        return text
    inner = text[1:-1]
    if "map[" not in inner:
        return inner.split()
    items: list[Any] = []
    position = 0
    while (start := inner.find("map[", position)) >= 0:
        value, position = _go_map(inner, start + 4, 0)
        items.append(value)
    return items


def _go_map(text: str, position: int, depth: int) -> tuple[dict[str, Any], int]:
    """Read `k:v k:v]` from `position`; gives the mapping and where it ended."""
    result: dict[str, Any] = {}
    key: str | None = None
    while position < len(text):
        if text[position] == "]":
            return result, position + 1
        if text[position] == " ":
            position += 1
            continue
        end = position
        while end < len(text) and text[end] not in " ]":
            if text[end] == ":" and text.startswith("map[", end + 1) and depth < _MAX_DEPTH:
                break
            end += 1
        word = text[position:end]
        if end < len(text) and text[end] == ":":
            result[word], position = _go_map(text, end + 5, depth + 1)
            key = None
            continue
        name, colon, value = word.partition(":")
        if colon and name:
            result[name] = value
            key = name
        elif key is not None:
            result[key] = f"{result[key]} {word}"
        position = end
    return result, len(text) + 1
