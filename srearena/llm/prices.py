"""Default prices of tokens: from LiteLLM's table if that is installed, else from `prices.toml`.

Prices that the user gives take precedence. A model that is in no table has no price; none is guessed.
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

from srearena.llm.messages import Usage

_LITELLM_FILE = "model_prices_and_context_window_backup.json"
_CACHE_WRITE = 1.25
"""Price of input that is written to a prompt cache, relative to uncached input (Anthropic's price list)."""


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens."""

    input: float
    cached: float
    output: float

    def cost(self, usage: Usage) -> float:
        uncached = usage.tokens_in - usage.cached - usage.cache_written
        written = usage.cache_written * self.input * _CACHE_WRITE
        return (uncached * self.input + written + usage.cached * self.cached + usage.tokens_out * self.output) / 1e6


@cache
def _table() -> tuple[tuple[str, Price], ...]:
    document = tomllib.loads((Path(__file__).parent / "prices.toml").read_text(encoding="utf-8"))
    return tuple((pattern, Price(*figures)) for pattern, figures in document["prices"].items())


def price_of(model: str) -> Price | None:
    """The default price of a model, by its name."""
    return _litellm_price(model) or _built_in_price(model)


def _built_in_price(model: str) -> Price | None:
    """The price by the model's own name, whichever provider serves it."""
    name = model.rpartition("/")[2].lower()
    return next((price for pattern, price in _table() if fnmatchcase(name, pattern)), None)


def _litellm_price(model: str) -> Price | None:
    """The price by the name that LiteLLM's table has: `gpt-4.1`, `openrouter/maker/model`, `anthropic.claude-...`."""
    provider, _, name = model.rpartition("/") if model.count("/") < 2 else model.partition("/")
    names = {"openai": name, "anthropic": name, "bedrock": name, "qwen": f"dashscope/{name}", "": name}
    entry = _litellm_table().get(names.get(provider, model)) or _litellm_table().get(model)
    if not isinstance(entry, dict) or "input_cost_per_token" not in entry or "output_cost_per_token" not in entry:
        return None
    uncached = float(entry["input_cost_per_token"])
    cached = float(entry.get("cache_read_input_token_cost", uncached))
    return Price(uncached * 1e6, cached * 1e6, float(entry["output_cost_per_token"]) * 1e6)


@cache
def _litellm_table() -> dict[str, Any]:
    """LiteLLM's table, read as a file of the installed package: importing the package takes seconds."""
    spec = find_spec("litellm")
    if spec is None or spec.origin is None:
        return {}
    try:
        table = json.loads((Path(spec.origin).parent / _LITELLM_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return table if isinstance(table, dict) else {}
