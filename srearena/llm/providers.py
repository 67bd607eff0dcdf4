"""Find the endpoint that serves a model by the model's name: `claude-...`, `openrouter/maker/model`, `local/name`.

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

from srearena.llm.errors import ModelRefused
from srearena.llm.wires import WIRES


@dataclass(frozen=True, slots=True)
class Route:
    """Where a model is served and in which wire format; `wire` is `litellm` if none of ours reaches it."""

    model: str
    wire: str
    base_url: str = ""
    key: str = ""
    key_header: str = ""

    def __repr__(self) -> str:
        return f"Route(model={self.model!r}, wire={self.wire!r}, base_url={self.base_url!r})"


@cache
def _table() -> dict[str, dict[str, Any]]:
    return tomllib.loads((Path(__file__).parent / "providers.toml").read_text(encoding="utf-8"))


def find_route(
    model: str, environment: Mapping[str, str], *, wire: str = "", base_url: str = "", key: str = ""
) -> Route:
    """The route to a model; raises `ModelRefused` with what is missing."""
    if not model:
        raise ModelRefused("which model? Give --model, or set SREARENA_MODEL in the environment or in .env")
    if wire and wire not in (*WIRES, "litellm"):
        raise ModelRefused(f"there is no wire {wire!r}: choose from {', '.join((*WIRES, 'litellm'))}")
    if base_url:
        # Only a key for this very address: no provider's key is sent to an address that the user chose.
        return Route(model, wire or "chat", base_url, key or environment.get("SREARENA_MODEL_KEY", ""))
    provider, name = _split(model)
    if provider is None or wire == "litellm":
        return Route(model, "litellm", key=key)
    table = _table()[provider]
    address = _first(table.get("addresses", ()), environment) or table.get("base_url", "")
    if not address:
        raise ModelRefused(f"{provider} needs an address: set {table['addresses'][0]} in the environment or in .env")
    if "path" in table and urlsplit(address).path in ("", "/"):
        address = address.rstrip("/") + table["path"]
    key = key or _first(table["keys"], environment)
    if not key and not table.get("key_optional"):
        raise ModelRefused(f"{provider} needs a key: set {table['keys'][0]} in the environment or in .env")
    wire = wire or ("responses" if _matches(name, table.get("responses", ())) else table["wire"])
    return Route(name, wire, address, key, table.get("key_header", ""))


def _split(model: str) -> tuple[str | None, str]:
    """The provider's name, and the model's name at that provider."""
    provider, slash, name = model.partition("/")
    if slash:
        return (provider, name) if provider in _table() else (None, model)
    for name, table in _table().items():
        if _matches(model, table.get("names", ())):
            return name, model
    return None, model


def _matches(name: str, patterns: Any) -> bool:
    return any(fnmatchcase(name.lower(), pattern) for pattern in patterns)


def _first(names: Any, environment: Mapping[str, str]) -> str:
    return next((environment[name] for name in names if environment.get(name)), "")
