"""Parser of attribute columns in the three formats recorders use: JSON, a Python dict's repr, Go's `map[k:v]`.

Parsing executes nothing and never raises. For text in none of the formats `parse_attributes` returns an empty mapping
and `parse_value` returns the text. Go's format is ambiguous where values contain spaces: a word without a colon
continues the value before it.
"""

from __future__ import annotations

import ast
import threading
from typing import Any

import orjson

MAX_TEXT = 4_000_000  # characters; chosen: longer text is not an attribute map
_MAX_DEPTH = 50  # nested maps; chosen: bounds the recursion


def parse_attributes(text: str | None) -> dict[str, Any]:
    """Parse a mapping in any of the formats; empty if the text is not a mapping."""
    value = parse_value(text)
    return {str(key): item for key, item in value.items()} if isinstance(value, dict) else {}


def python_to_json(text: str) -> str | None:
    """The JSON of a Python dict's repr; None if the text is not one."""
    value = parse_value(text)
    try:
        return orjson.dumps(value).decode() if isinstance(value, dict) else None
    except (TypeError, ValueError, RecursionError):
        return None


# Python 3.11 keeps the depth of a parsed tree for all threads: "AST constructor recursion depth mismatch".
_PARSING = threading.Lock()


def parse_value(text: str | None) -> Any:
    """Parse JSON, Python or Go text; other text is returned unchanged."""
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
        with _PARSING:
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
    """Parse `k:v k:v]` from `position`; returns the mapping and the position after it."""
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
