"""What tokens cost: told by the user, or from LiteLLM's table of prices where that is installed, or from `prices.toml`.

All but the user's word is a default. A model that is nowhere has no price, never a guess.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from clients.llm.messages import Usage

_LITELLM_FILE = "model_prices_and_context_window_backup.json"
_CACHE_WRITE = 1.25
"""What writing to a prompt cache costs, against plain input."""


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens."""

    plain: float
    cached: float
    output: float

    def of(self, used: Usage) -> float:
        fresh = used.tokens_in - used.cached - used.cache_written
        plain = fresh * self.plain + used.cache_written * self.plain * _CACHE_WRITE
        return (plain + used.cached * self.cached + used.tokens_out * self.output) / 1e6


@cache
def _table() -> tuple[tuple[str, Price], ...]:
    document = tomllib.loads((Path(__file__).parent / "prices.toml").read_text(encoding="utf-8"))
    return tuple((pattern, Price(*figures)) for pattern, figures in document["prices"].items())


def price_of(model: str) -> Price | None:
    """A default by the model's name."""
    return _by_litellm(model) or _by_our_table(model)


def _by_our_table(model: str) -> Price | None:
    """By the model's own name, whoever serves it."""
    name = model.rpartition("/")[2].lower()
    return next((price for pattern, price in _table() if fnmatchcase(name, pattern)), None)


def _by_litellm(model: str) -> Price | None:
    """By the name that LiteLLM gives it there: `gpt-4.1`, `openrouter/maker/model`, `anthropic.claude-...`."""
    provider, _, name = model.rpartition("/") if model.count("/") < 2 else model.partition("/")
    names = {"openai": name, "anthropic": name, "bedrock": name, "qwen": f"dashscope/{name}", "": name}
    entry = _litellm_table().get(names.get(provider, model)) or _litellm_table().get(model)
    if not isinstance(entry, dict) or "input_cost_per_token" not in entry or "output_cost_per_token" not in entry:
        return None
    plain = float(entry["input_cost_per_token"])
    cached = float(entry.get("cache_read_input_token_cost", plain))
    return Price(plain * 1e6, cached * 1e6, float(entry["output_cost_per_token"]) * 1e6)


@cache
def _litellm_table() -> dict[str, Any]:
    """The table in the installed package, read as a file: importing the package takes seconds."""
    found = find_spec("litellm")
    if found is None or found.origin is None:
        return {}
    try:
        table = json.loads((Path(found.origin).parent / _LITELLM_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return table if isinstance(table, dict) else {}
