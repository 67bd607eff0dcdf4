"""Where models are served: address, wire format, and the *name* of the variable that holds the key.

Codex speaks only the responses format today. A provider with `wire_api = "chat"` is therefore reached through a LiteLLM
proxy, which speaks responses to Codex and chat to the provider.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from zero.errors import RequestError

BUILT_IN = Path(__file__).parent / "zero-config" / "providers.toml"
WIRES = ("responses", "chat", "messages", "gemini")


@dataclass(frozen=True, slots=True)
class Provider:
    name: str
    base_url: str
    key_variable: str = ""  # the name that holds the key; empty: none is needed
    wire_api: str = "responses"
    litellm_prefix: str = "openai"  # how LiteLLM calls this kind of provider
    query: tuple[tuple[str, str], ...] = ()


def _first_set(names: list[str], environment: Mapping[str, str]) -> str:
    return next((name for name in names if environment.get(name)), names[0] if names else "")


def load(name: str, environment: Mapping[str, str]) -> Provider:
    tables = tomllib.loads(BUILT_IN.read_text(encoding="utf-8"))
    table = tables.get(name)
    if table is None:
        raise RequestError(f"unknown provider {name}: one of {', '.join(sorted(tables))}, or give --base-url")
    base = str(table["base_url"])
    if base.startswith("env:"):
        variable = base.removeprefix("env:")
        base = environment.get(variable, "")
        if not base:
            raise RequestError(f"the provider {name} needs its address: set {variable} or give --base-url")
    variable = _first_set(list(table.get("key_variables", [])), environment)
    if table.get("key_optional") and not environment.get(variable):
        variable = ""
    return Provider(
        name,
        base,
        variable,
        str(table.get("wire_api", "responses")),
        str(table.get("litellm_prefix", "openai")),
        tuple((str(key), str(value)) for key, value in table.get("query", {}).items()),
    )


def choose(
    name: str,
    environment: Mapping[str, str],
    *,
    base_url: str = "",
    key_variable: str = "",
    wire_api: str = "",
    key_needed: bool = True,
) -> Provider:
    """The provider by name, with what the user said otherwise. A key that is named must be in the environment."""
    if base_url:
        known = name in tomllib.loads(BUILT_IN.read_text(encoding="utf-8"))
        given = {**environment, "AZURE_OPENAI_BASE_URL": base_url}
        found = (
            replace(load(name, given), base_url=base_url.rstrip("/")) if known else Provider(name, base_url.rstrip("/"))
        )
    else:
        found = load(name, environment)
    if wire_api:
        if wire_api not in WIRES:
            raise RequestError(f"unknown wire format {wire_api!r}: one of {', '.join(WIRES)}")
        found = replace(found, wire_api=wire_api)
    if key_variable:
        found = replace(found, key_variable=key_variable)
    if key_needed and found.key_variable and not environment.get(found.key_variable):
        raise RequestError(
            f"the key of provider {found.name} is not in the environment: export {found.key_variable}=... "
            "or name another variable with --api-key-env"
        )
    return found
