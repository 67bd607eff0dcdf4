"""How large values of a schema can be, for the estimates of rules: limits of the schema, or of a request's size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from srearena.cluster.embedded.cel.estimates import Size
from srearena.cluster.embedded.registry.schema_fields import field_name, with_metadata
from srearena.cluster.embedded.registry.structural import Structural

MAX_REQUEST: Final = 3 * 1024 * 1024
"""Bytes of the largest request that a server accepts; an estimate takes it whatever a server is configured for."""
_QUOTED: Final = 2
_FORMATS: Final = {"duration": (3, 32), "date": (12, 12), "date-time": (21, 32)}
"""Bytes of the shortest and of the longest JSON text of a format."""
_PLAIN: Final = {"boolean": 4, "number": 1, "integer": 1}


@dataclass(frozen=True, slots=True)
class Declared:
    """A declared type: how many elements or characters it may have, and how short its JSON may be."""

    most: int = 0
    shortest: int = 2
    fields: Mapping[str, Declared] = field(default_factory=dict)
    items: Declared | None = None
    keys: Declared | None = None

    def size(self, path: tuple[str, ...]) -> Size | None:
        """The size of what a path leads to from here; its first part is the variable."""
        here: Declared | None = self
        for name in path[1:]:
            if here is None:
                return None
            if name in ("@items", "@values"):
                here = here.items
            else:
                here = here.keys if name == "@keys" else here.fields.get(name)
        return Size(0, here.most) if here is not None else None

    @property
    def repetitions(self) -> int:
        """How often a value can be in a request, with a comma between two."""
        return MAX_REQUEST // (self.shortest + 1)


_KEY: Final = Declared()


def declared(schema: Structural) -> Declared | None:
    """The declaration of a schema's values; None for those that expressions cannot see."""
    if schema.get("x-kubernetes-int-or-string"):
        return Declared(_text_length(schema), 1)
    kind = schema.get("type") or ""
    if kind == "array":
        items = declared(schema.get("items") or {})
        if items is None:
            return None
        return Declared(_limit(schema, "maxItems", (MAX_REQUEST - 2) // (items.shortest + 1)), items=items)
    if kind == "string":
        shortest, _ = _FORMATS.get(schema.get("format") or "", (_QUOTED, 0))
        return Declared(_text_length(schema), shortest)
    if kind != "object":
        return Declared(0, _PLAIN[kind]) if kind in _PLAIN else None
    extra = schema.get("additionalProperties")
    if isinstance(extra, dict):
        values = declared(extra)
        if values is None:
            return None
        # A key of no characters with its quotes, a colon, a comma, and two more.
        entries = (MAX_REQUEST - 2) // (values.shortest + 6)
        return Declared(_limit(schema, "maxProperties", entries), items=values, keys=_KEY)
    if schema.get("x-kubernetes-embedded-resource"):
        schema = with_metadata(schema)
    fields: dict[str, Declared] = {}
    shortest, required = 2, frozenset(schema.get("required") or ())
    for name, below in (schema.get("properties") or {}).items():
        found = declared(below)
        if found is None:
            continue
        escaped = field_name(name)
        if escaped is not None:
            fields[escaped] = found
        if name in required and below.get("default") is None:
            shortest += len(name.encode()) + found.shortest + 4
    return Declared(0, shortest, fields)


def _limit(schema: Structural, name: str, otherwise: int) -> int:
    limit = schema.get(name)
    return otherwise if limit is None else max(int(limit), 0)


def _text_length(schema: Structural) -> int:
    """The most bytes of a text: four for each character of a limit."""
    limit, format = schema.get("maxLength"), schema.get("format") or ""
    if format in _FORMATS and not schema.get("x-kubernetes-int-or-string"):
        return _FORMATS[format][1]
    if limit is not None:
        return max(int(limit), 0) * (1 if format == "byte" else 4)
    if schema.get("enum") and not schema.get("x-kubernetes-int-or-string") and format != "byte":
        return max(len(value.encode()) for value in schema["enum"] if isinstance(value, str))
    return MAX_REQUEST - 2


def most_elements(schema: Structural) -> int | None:
    """How often a value of a schema has its parts at most; None without a limit."""
    kind = schema.get("type")
    if kind == "array" or (kind == "object" and schema.get("additionalProperties") is not None):
        limit = schema.get("maxItems" if kind == "array" else "maxProperties")
        return None if limit is None else max(int(limit), 0)
    return 1
