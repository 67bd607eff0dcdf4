"""What kubectl prints of a server's answers: tables, and JSONPath templates."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from srearena import jsonpath

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
"""The media type of tables that the server makes."""
Obj = dict[str, Any]
TextOf = Callable[[Any], str]
_GAP = "   "
_NARROWEST = 3
"""Characters of a column: kubectl's tab writer has six, with the gap."""
_PIECE = re.compile(r"\{((?:\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|[^{}\"'])*)\}")
_ESCAPES = {"\\n": "\n", "\\t": "\t", '\\"': '"', "\\\\": "\\"}


class TemplateError(ValueError):
    """A template that cannot be filled; the text is kubectl's."""


def plain_text(value: Any) -> str:
    """A found value; floats as Python prints them."""
    if isinstance(value, str):
        return value
    return "<no value>" if value is None else json.dumps(value, separators=(",", ":"), sort_keys=True)


def table_text(
    tables: Sequence[Obj], *, headers: bool, wide: bool, namespaces: bool, kind: str = "", text_of: TextOf = plain_text
) -> str:
    """Server-side tables of one resource as columns; `kind` goes before names where several are shown."""
    rows: list[list[str]] = []
    for table in tables:
        columns = table["columnDefinitions"]
        shown = [index for index, column in enumerate(columns) if wide or not column.get("priority")]
        if not rows and headers:
            rows.append([*(["NAMESPACE"] if namespaces else []), *(columns[i]["name"].upper() for i in shown)])
        for row in table.get("rows") or ():
            where = [row["object"]["metadata"].get("namespace", "")] if namespaces else []
            cells = ["<none>" if row["cells"][i] is None else text_of(row["cells"][i]) for i in shown]
            rows.append([*where, f"{kind}/{cells[0]}" if kind else cells[0], *cells[1:]])
    if not rows:
        return ""
    widths = [max(_NARROWEST, *(len(row[index]) for row in rows)) for index in range(len(rows[0]))]
    lines = [_GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(lines) + "\n"


def template_text(template: str, obj: Any, text_of: TextOf = plain_text) -> str:
    """A JSONPath template: text, `{.path}`, `{"\\n"}` and `{range .path}...{end}`."""
    if "{" not in template:
        template = f"{{{template if template.startswith(('.', '$', '[')) else '.' + template}}}"
    pieces = _split(template)
    if any("{" in text for braced, text in pieces if not braced):
        raise TemplateError(f"error: error parsing jsonpath {template}, unclosed action")
    text, position = _render(pieces, 0, obj, text_of)
    if position != len(pieces):
        raise TemplateError("error: error parsing jsonpath " + template + ", not in range, nothing to end")
    return text


def _split(template: str) -> list[tuple[bool, str]]:
    """Pieces in order: whether it was in braces, and its text."""
    pieces: list[tuple[bool, str]] = []
    last = 0
    for match in _PIECE.finditer(template):
        if match.start() > last:
            pieces.append((False, template[last : match.start()]))
        pieces.append((True, match.group(1).strip()))
        last = match.end()
    if last < len(template):
        pieces.append((False, template[last:]))
    return pieces


def _render(pieces: Sequence[tuple[bool, str]], position: int, value: Any, text_of: TextOf) -> tuple[str, int]:
    out: list[str] = []
    while position < len(pieces):
        braced, text = pieces[position]
        position += 1
        if not braced:
            out.append(text)
        elif text == "end":
            return "".join(out), position - 1
        elif text.startswith("range "):
            items = _find(text[6:].strip(), value)
            end = _skip(pieces, position)
            out += [_render(pieces, position, item, text_of)[0] for item in items]
            position = end
        elif text[:1] in "\"'":
            out.append(re.sub(r"\\.", lambda m: _ESCAPES.get(m.group(), m.group()), text[1:-1]))
        else:
            out.append(" ".join(text_of(found) for found in _find(text, value)))
    return "".join(out), position


def _skip(pieces: Sequence[tuple[bool, str]], position: int) -> int:
    depth = 1
    while position < len(pieces):
        braced, text = pieces[position]
        position += 1
        if braced and text.startswith("range "):
            depth += 1
        elif braced and text == "end":
            depth -= 1
            if not depth:
                return position
    raise TemplateError("error: error parsing jsonpath, unclosed range")


def _find(path: str, value: Any) -> list[Any]:
    try:
        return jsonpath.parse(path).find(value)
    except jsonpath.JSONPathError as problem:
        raise TemplateError(f"error: error executing jsonpath {path!r}: {problem}") from None
