"""From a model's name to the endpoint that serves it: `claude-...`, `openrouter/maker/model`, `local/name`.

Keys come from the environment or from `.env` in the working directory, and appear in no error and no record.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from clients.llm.errors import ModelRefused
from clients.llm.wires import WIRES


@dataclass(frozen=True, slots=True)
class Served:
    """Where and how a model is asked; `wire` is `litellm` where none of our own reaches it."""

    model: str
    wire: str
    base_url: str = ""
    key: str = ""
    key_header: str = ""

    def __repr__(self) -> str:
        return f"Served(model={self.model!r}, wire={self.wire!r}, base_url={self.base_url!r})"


@cache
def _table() -> dict[str, dict[str, Any]]:
    return tomllib.loads((Path(__file__).parent / "providers.toml").read_text(encoding="utf-8"))


def served(model: str, environment: Mapping[str, str], *, wire: str = "", base_url: str = "", key: str = "") -> Served:
    """Who serves a model; ModelRefused says what is missing."""
    if not model:
        raise ModelRefused("which model? Give --model, or set SREARENA_MODEL in the environment or in .env")
    if wire and wire not in (*WIRES, "litellm"):
        raise ModelRefused(f"there is no wire {wire!r}: choose from {', '.join((*WIRES, 'litellm'))}")
    if base_url:
        # Only a key that was given for it: nobody else's key goes to an address of the user's own.
        return Served(model, wire or "chat", base_url, key or environment.get("SREARENA_MODEL_KEY", ""))
    name, plain = _provider(model)
    if name is None or wire == "litellm":
        return Served(model, "litellm", key=key)
    table = _table()[name]
    address = _first(table.get("addresses", ()), environment) or table.get("base_url", "")
    if not address:
        raise ModelRefused(f"{name} needs an address: set {table['addresses'][0]} in the environment or in .env")
    if "path" in table and urlsplit(address).path in ("", "/"):
        address = address.rstrip("/") + table["path"]
    found = key or _first(table["keys"], environment)
    if not found and not table.get("key_optional"):
        raise ModelRefused(f"{name} needs a key: set {table['keys'][0]} in the environment or in .env")
    chosen = wire or ("responses" if _matches(plain, table.get("responses", ())) else table["wire"])
    return Served(plain, chosen, address, found, table.get("key_header", ""))


def _provider(model: str) -> tuple[str | None, str]:
    """The provider's name, and the model's name there."""
    first, slash, rest = model.partition("/")
    if slash:
        return (first, rest) if first in _table() else (None, model)
    for name, table in _table().items():
        if _matches(model, table.get("names", ())):
            return name, model
    return None, model


def _matches(name: str, patterns: Any) -> bool:
    return any(fnmatchcase(name.lower(), pattern) for pattern in patterns)


def _first(names: Any, environment: Mapping[str, str]) -> str:
    return next((environment[name] for name in names if environment.get(name)), "")
