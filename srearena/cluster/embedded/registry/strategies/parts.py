"""Parts of an object that defaulting fills in: what is there stays, what is missing is put there.

A field that is null counts as missing, as it does to a server that decodes into structures.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from srearena.cluster.embedded.objects import Obj


def part(holder: Obj, key: str) -> Obj:
    """The object at `key`, put there empty where it is missing."""
    found = holder.get(key)
    if found is None:
        found = holder[key] = {}
    return cast(Obj, found)


def fill(holder: Obj, defaults: Mapping[str, Any]) -> None:
    """Put in what is missing. Values must be immutable, since they are shared by all objects they end up in."""
    for key, value in defaults.items():
        if holder.get(key) is None:
            holder[key] = value


def fill_empty(holder: Obj, defaults: Mapping[str, Any]) -> None:
    """As `fill`, for fields whose zero value means that nothing was said."""
    for key, value in defaults.items():
        if not holder.get(key):
            holder[key] = value


def items(holder: Mapping[str, Any] | None, key: str) -> list[Any]:
    """The list at `key`, empty where it is missing."""
    return cast("list[Any]", (holder or {}).get(key) or [])
