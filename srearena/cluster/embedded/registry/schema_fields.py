"""The fields of a custom resource's schema as expressions name them, and those that every object has."""

from __future__ import annotations

import re
from typing import Final

from srearena.cluster.embedded.cel.syntax import RESERVED
from srearena.cluster.embedded.registry.structural import Structural

_IDENTIFIER: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_KEYWORDS: Final = RESERVED | {"true", "false", "null", "in"}
_ESCAPES: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_ESCAPED: Final = re.compile(r"__|[./-]")
_META: Final[Structural] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}},
}
_TEXT: Final[Structural] = {"type": "string"}


def field_name(name: str) -> str | None:
    """The name of a property in expressions; None where none can name it."""
    if name in _KEYWORDS:
        return f"__{name}__"
    escaped = _ESCAPED.sub(lambda found: _ESCAPES[found[0]], name)
    return escaped if _IDENTIFIER.fullmatch(escaped) else None


def with_metadata(schema: Structural) -> Structural:
    """The schema of an object with what every object has: its type, its name."""
    known = {"apiVersion": _TEXT, "kind": _TEXT, "metadata": _META}
    return {**schema, "properties": {**(schema.get("properties") or {}), **known}}
