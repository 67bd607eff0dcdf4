"""Values that a JSONPath has found, as Go prints them."""

from __future__ import annotations

from typing import Any

from srearena.cluster.embedded.go_text import float_text, json_text


def text_of(value: Any) -> str:
    """A found value as a column of type string shows it."""
    if isinstance(value, str):
        return value
    if value is None:
        return "<no value>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, dict | list):
        return json_text(value, sort_keys=True)
    return str(value)
