"""Escape agents' text for pages and terminals.

Control characters, terminal escapes and characters that reorder or hide text become visible code points; then the
escaping of the output format applies.
"""

from __future__ import annotations

import html
import re
import unicodedata

_HIDDEN = re.compile("[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def visible(text: object, limit: int = 600) -> str:
    """Printable text: hidden characters as code points, whitespace folded, cut at `limit` characters."""
    raw = str(text)
    folded = " ".join(_HIDDEN.sub(lambda c: f"⟨U+{ord(c[0]):04X}⟩", raw.replace("\t", " ").replace("\n", " ")).split())
    clean = "".join(c if unicodedata.category(c) != "Cs" else "�" for c in folded[: limit + 1])
    return clean if len(clean) <= limit else clean[:limit] + "…"


def as_html(text: object, limit: int = 600) -> str:
    return html.escape(visible(text, limit), quote=True)


_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+!|<>~&$@-])")


def as_markdown(text: object, limit: int = 300) -> str:
    """Text that Markdown renders literally: special characters are escaped, angle brackets become entities."""
    escaped = _MARKDOWN.sub(r"\\\1", visible(text, limit))
    plain = escaped.replace("\\<", "&lt;").replace("\\>", "&gt;").replace("\\&", "&amp;")
    return re.sub(r"(?i)(https?|ftp|javascript|data):", r"\1&#58;", plain)  # prevent automatic links


def percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"
