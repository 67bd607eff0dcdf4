"""Settings of the LLM agent, from flags (`--agent-option KEY=VALUE`), the environment and `.env`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from srearena.conductor.errors import ArenaError
from srearena.dotenv import environment
from srearena.llm.client import ModelClient, RetryPolicy
from srearena.llm.endpoint import Endpoint
from srearena.llm.litellm_library import LiteLlmLibrary
from srearena.llm.prices import Price
from srearena.llm.providers import Route, find_route
from srearena.llm.wires import WIRES

_NO_OPTIONS = {"route", "policy", "price", "variables"}
_FALSE = ("", "0", "false", "no", "off")


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything about an agent that is not about an episode."""

    model: str
    route: Route
    variant: str = "react"
    tools: str = ""
    prompt: str = ""
    protocol: str = "auto"
    """`tools`, `text`, or `auto`: tools, unless the model does not take them."""
    effort: str = ""
    temperature: float | None = None
    max_tokens: int | None = None
    context_tokens: int = 100_000
    """Approximate length of a conversation from which its old parts are shortened."""
    mistakes: int = 4
    """How many replies in a row may have no usable call."""
    stream: bool = True
    preflight: bool = True
    """Whether a run first checks that the endpoint answers and takes the key."""
    transcript: bool = False
    price: Price | None = None
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The environment and `.env`, for a library that reads its keys itself."""

    @classmethod
    def from_options(cls, options: Mapping[str, Any], variables: Mapping[str, str] | None = None) -> Settings:
        """Parse options in the form of a command line; raises `ArenaError` with the option that is invalid."""
        remaining = dict(options)
        variables = variables if variables is not None else environment()
        model = str(remaining.pop("model", "") or variables.get("SREARENA_MODEL", ""))
        route = find_route(
            model,
            variables,
            wire=str(remaining.pop("wire", "")),
            base_url=str(remaining.pop("base_url", "") or variables.get("SREARENA_MODEL_BASE_URL", "")),
        )
        price = _price(*(remaining.pop(name, None) for name in ("price_in", "price_cached", "price_out")))
        retry_types = {item.name: str(item.type) for item in fields(RetryPolicy)}
        retry_options: dict[str, Any] = {
            name: _typed(name, remaining.pop(name), kind) for name, kind in retry_types.items() if name in remaining
        }
        own_options: dict[str, Any] = {}
        types = {item.name: item.type for item in fields(cls)}
        for name, value in remaining.items():
            if name not in types or name in _NO_OPTIONS:
                valid = sorted({*types} - _NO_OPTIONS)
                raise ArenaError(f"the LLM agent has no option {name!r}: there are {', '.join(valid)}")
            own_options[name] = _typed(name, value, str(types[name]))
        if own_options.get("protocol", "auto") not in ("auto", "tools", "text"):
            raise ArenaError(f"protocol is auto, tools or text, not {own_options['protocol']!r}")
        policy = RetryPolicy(**retry_options)
        return cls(model, route, price=price, policy=policy, variables=variables, **own_options)


def _typed(name: str, value: Any, kind: str) -> Any:
    try:
        if kind.startswith("bool"):
            return str(value).lower() not in _FALSE
        if kind.startswith("int"):
            return int(value)
        if kind.startswith("float"):
            return float(value)
    except ValueError as problem:
        raise ArenaError(f"{name} is a number, not {value!r}") from problem
    return str(value)


def _price(input_price: Any, cached_price: Any, output_price: Any) -> Price | None:
    if input_price is None and output_price is None:
        return None
    try:
        uncached = float(input_price or 0)
        cached = float(cached_price) if cached_price is not None else uncached
        return Price(uncached, cached, float(output_price or 0))
    except ValueError as problem:
        raise ArenaError(f"a price is a number of dollars per million tokens: {problem}") from problem


def make_client(settings: Settings) -> ModelClient:
    """The client of the settings' model."""
    route = settings.route
    if route.wire == "litellm":
        return LiteLlmLibrary(route.key, route.base_url, variables=settings.variables, policy=settings.policy)
    headers = {route.key_header: route.key} if route.key_header and route.key else {}
    key = "" if route.key_header else route.key
    return Endpoint(WIRES[route.wire], route.base_url, key, headers=headers, policy=settings.policy)
