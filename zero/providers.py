"""Model providers: URL, wire format, and the *name* of the variable with the key.

Codex supports only the responses format. A provider with `wire_api = "chat"` is therefore reached through a LiteLLM
proxy, which translates between the two.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from zero.errors import RequestError

BUILT_IN = Path(__file__).parent / "zero-config" / "providers.toml"
WIRE_FORMATS = ("responses", "chat", "messages", "gemini")


@dataclass(frozen=True, slots=True)
class Provider:
    name: str
    base_url: str
    key_variable: str = ""  # name of the variable with the key; empty if no key is needed
    wire_api: str = "responses"
    litellm_prefix: str = "openai"  # LiteLLM's prefix for this kind of provider
    query: tuple[tuple[str, str], ...] = ()


def _first_set(names: list[str], environment: Mapping[str, str]) -> str:
    return next((name for name in names if environment.get(name)), names[0] if names else "")


def load(name: str, environment: Mapping[str, str]) -> Provider:
    """A built-in provider."""
    tables = tomllib.loads(BUILT_IN.read_text(encoding="utf-8"))
    table = tables.get(name)
    if table is None:
        raise RequestError(f"unknown provider {name}: one of {', '.join(sorted(tables))}, or give --base-url")
    url_variable = str(table.get("base_url_variable", ""))
    base = environment.get(url_variable, "") or str(table.get("base_url", ""))
    if not base:
        raise RequestError(f"the provider {name} needs its URL: set {url_variable} or give --base-url")
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
    """The provider by name, with the user's overrides. A named key must be in the environment."""
    if base_url:
        built_in = name in tomllib.loads(BUILT_IN.read_text(encoding="utf-8"))
        provider = Provider(name, "")
        if built_in:
            provider = load(name, {**environment, "AZURE_OPENAI_BASE_URL": base_url})
        provider = replace(provider, base_url=base_url.rstrip("/"))
    else:
        provider = load(name, environment)
    if wire_api:
        if wire_api not in WIRE_FORMATS:
            raise RequestError(f"unknown wire format {wire_api!r}: one of {', '.join(WIRE_FORMATS)}")
        provider = replace(provider, wire_api=wire_api)
    if key_variable:
        provider = replace(provider, key_variable=key_variable)
    if key_needed and provider.key_variable and not environment.get(provider.key_variable):
        raise RequestError(
            f"the key of provider {provider.name} is not in the environment: export {provider.key_variable}=... "
            "or name another variable with --api-key-env"
        )
    return provider
