"""Replies that fit an agent's context: a size budget, the most relevant rows first, a cursor for the remaining ones.

Every tool replies with the same envelope. Rows are added while they fit; the others are counted, and `next_cursor`
continues after the last row. A cursor is valid only for the tool and arguments that returned it.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson

from sre_tools.errors import ToolError

DEFAULT_TOKENS = 8000
MIN_TOKENS, MAX_TOKENS = 500, 100_000
_CHARS_PER_TOKEN = 3.5  # of JSON with names and numbers; a low estimate
_MAX_SAFE_INTEGER = 2**53  # larger integers lose precision in JSON parsers
_TEXT_LIMITS = (4000, 1000, 300, 100, 40)

Row = dict[str, Any]


@dataclass(slots=True)
class Answer:
    """The result of a tool: rows, the most relevant first. `start` is the offset of the first row."""

    rows: list[Row]
    summary: Row = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    total: int | None = None
    start: int = 0


@dataclass(frozen=True, slots=True)
class Window:
    """The requested part of the rows."""

    offset: int = 0
    limit: int | None = None

    @property
    def max_rows(self) -> int:
        """Maximum number of rows in a reply, as LIMIT of queries."""
        return min(self.limit or 5000, 5000)


def iso_time(value: datetime | None) -> str | None:
    """A time as ISO 8601 in UTC, with milliseconds only if there are any."""
    if value is None:
        return None
    text = value.astimezone(UTC).isoformat(timespec="milliseconds" if value.microsecond else "seconds")
    return text.replace("+00:00", "Z")


def _key(tool: str, arguments: Row) -> str:
    plain = json.dumps([tool, arguments], sort_keys=True, default=str)
    return hashlib.blake2b(plain.encode(), digest_size=6).hexdigest()


def make_cursor(tool: str, arguments: Row, offset: int) -> str:
    return base64.urlsafe_b64encode(f"{_key(tool, arguments)}:{offset}".encode()).decode()


def read_cursor(cursor: str, tool: str, arguments: Row) -> int:
    try:
        key, offset = base64.urlsafe_b64decode(cursor.encode()).decode().split(":")
        position = int(offset)
    except ValueError as problem:
        raise ToolError("that is no cursor of ours; call again without `cursor` to start at the first row") from problem
    if key != _key(tool, arguments) or position < 0:
        raise ToolError("the cursor belongs to another call: repeat the arguments of that call unchanged, or drop it")
    return position


def _size(value: object) -> int:
    return len(orjson.dumps(value, default=str).decode())


def _clip(value: Any, limit: int) -> Any:
    """The value as JSON data, with texts cut to `limit` characters."""
    if isinstance(value, str):
        # Text from a recording may contain lone surrogates, which cannot be encoded.
        text = value if value.isascii() else value.encode("utf-8", "replace").decode()
        return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit} more characters)"
    if isinstance(value, dict):
        return {_clip(str(key), limit): _clip(item, limit) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [_clip(item, limit) for item in value]
    if isinstance(value, datetime):
        return iso_time(value)
    if isinstance(value, int) and not -_MAX_SAFE_INTEGER <= value <= _MAX_SAFE_INTEGER:
        return float(value) if abs(value) < 1e300 else str(value)[:limit]
    return value if isinstance(value, int | float | None) else str(value)[:limit]


def _shorten(value: Any, items: int) -> Any:
    if isinstance(value, dict):
        head = {key: _shorten(value[key], items) for key in list(value)[: items * 4]}
        return head if len(value) <= items * 4 else {**head, "…": f"{len(value) - items * 4} more keys"}
    if isinstance(value, list):
        first = [_shorten(item, items) for item in value[:items]]
        return first if len(value) <= items else [*first, f"… {len(value) - items} more"]
    return value


def fit(value: Any, budget: int) -> Any:
    """The value, with texts and lists shortened as little as necessary to fit `budget` characters."""
    for limit in _TEXT_LIMITS:
        clipped = _clip(value, limit)
        if _size(clipped) <= budget:
            return clipped
    for items in (20, 10, 5, 2, 1):
        shortened = _shorten(_clip(value, 100), items)
        if _size(shortened) <= budget:
            return shortened
    cut = f"{orjson.dumps(_clip(value, 40), default=str).decode()[: max(0, budget // 2)]}… (too long)"
    return {"truncated": cut} if isinstance(value, dict) else cut


def envelope(
    tool: str, snapshot: str, arguments: Row, answer: Answer, window: Window, max_tokens: int = DEFAULT_TOKENS
) -> Row:
    """The reply within its budget."""
    budget = int(max_tokens * _CHARS_PER_TOKEN) - 400  # for the other fields of the envelope
    total = answer.total if answer.total is not None else len(answer.rows)
    summary = fit(answer.summary, budget // 2)
    notes = fit(answer.notes[:8], budget // 6)
    left = budget - _size(summary) - _size(notes)
    rows = answer.rows[window.offset - answer.start :] if window.offset > answer.start else answer.rows
    if window.limit is not None:
        rows = rows[: window.limit]
    data: list[Row] = []
    for row in rows:
        # The first row is always included, shortened if necessary; later ones may go to the next page.
        shown = fit(row, left if not data else max(left, 2000))
        size = _size(shown) + 1
        if data and size > left:
            break
        data.append(shown)
        left -= size
    following = window.offset + len(data)
    return {
        "tool": tool,
        "snapshot": snapshot,
        "time_zone": "UTC",
        "total_count": total,
        "offset": window.offset,
        "limit": window.limit if window.limit is not None else "all",
        "returned_count": len(data),
        "left_out": max(0, total - following),
        "next_cursor": make_cursor(tool, arguments, following) if following < total and data else None,
        "summary": summary,
        "notes": notes,
        "data": data,
    }


def reply_schema(fields: dict[str, str]) -> Row:
    """The JSON Schema of a tool's reply; `fields` describes the fields of a row in `data`."""
    text, number, nothing = {"type": "string"}, {"type": "integer"}, {"type": "null"}
    properties: Row = {
        "tool": text,
        "snapshot": {**text, "description": "name of the snapshot's directory"},
        "time_zone": {**text, "description": "of every time in this reply"},
        "total_count": {**number, "description": "rows there are"},
        "offset": {**number, "description": "rows before the first one shown"},
        "limit": {"anyOf": [number, text]},
        "returned_count": {**number, "description": "rows shown"},
        "left_out": {**number, "description": "rows after the last one shown"},
        "next_cursor": {"anyOf": [text, nothing], "description": "pass as `cursor` with the same arguments for more"},
        "summary": {"type": "object"},
        "notes": {"type": "array", "items": text},
        "data": {
            "type": "array",
            "items": {"type": "object", "properties": {n: {"description": d} for n, d in fields.items()}},
        },
    }
    return {"type": "object", "properties": properties, "required": list(properties)}
