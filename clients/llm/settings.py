"""What the LLM agent can be told, from flags (`--agent-option KEY=VALUE`), the environment and `.env`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from clients.llm.endpoint import Endpoint, Patience
from clients.llm.prices import Price
from clients.llm.providers import Served, served
from clients.llm.through_litellm import LiteLlm
from clients.llm.wires import WIRES
from srearena.conductor.errors import ArenaError
from srearena.dotenv import environment

_NO_OPTIONS = {"served", "patience", "price", "variables"}
_FALSE = ("", "0", "false", "no", "off")


@dataclass(frozen=True, slots=True)
class Settings:
    model: str
    served: Served
    variant: str = "react"
    tools: str = ""
    prompt: str = ""
    protocol: str = "auto"
    """`tools`, `text`, or `auto`: tools, unless the model turns out not to take them."""
    effort: str = ""
    temperature: float | None = None
    max_tokens: int | None = None
    context_tokens: int = 100_000
    """About how long a conversation may become before its old parts are shortened."""
    mistakes: int = 4
    """How often in a row the model may answer without a usable call."""
    stream: bool = True
    transcript: bool = False
    price: Price | None = None
    patience: Patience = field(default_factory=Patience)
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The environment and `.env`, for a library that looks for its keys itself."""

    @classmethod
    def from_options(cls, options: Mapping[str, Any], variables: Mapping[str, str] | None = None) -> Settings:
        """From texts as a command line gives them; ArenaError names what cannot be used."""
        given = dict(options)
        known = variables if variables is not None else environment()
        model = str(given.pop("model", "") or known.get("SREARENA_MODEL", ""))
        where = served(
            model,
            known,
            wire=str(given.pop("wire", "")),
            base_url=str(given.pop("base_url", "") or known.get("SREARENA_MODEL_BASE_URL", "")),
        )
        price = _price(given.pop("price_in", None), given.pop("price_cached", None), given.pop("price_out", None))
        waits = {item.name: item.type for item in fields(Patience)}
        told: dict[str, Any] = {
            name: _typed(name, given.pop(name), str(waits[name])) for name in waits if name in given
        }
        patience = Patience(**told)
        chosen: dict[str, Any] = {}
        types = {item.name: item.type for item in fields(cls)}
        for name, value in given.items():
            if name not in types or name in _NO_OPTIONS:
                options_there = sorted({*types} - _NO_OPTIONS)
                raise ArenaError(f"the LLM agent has no option {name!r}: there are {', '.join(options_there)}")
            chosen[name] = _typed(name, value, str(types[name]))
        if chosen.get("protocol", "auto") not in ("auto", "tools", "text"):
            raise ArenaError(f"protocol is auto, tools or text, not {chosen['protocol']!r}")
        return cls(model, where, price=price, patience=patience, variables=known, **chosen)


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


def _price(plain: Any, cached: Any, output: Any) -> Price | None:
    if plain is None and output is None:
        return None
    try:
        first = float(plain or 0)
        return Price(first, float(cached) if cached is not None else first, float(output or 0))
    except ValueError as problem:
        raise ArenaError(f"a price is a number of dollars per million tokens: {problem}") from problem


def make_model(settings: Settings) -> Endpoint | LiteLlm:
    where = settings.served
    if where.wire == "litellm":
        return LiteLlm(where.key, where.base_url, variables=settings.variables, patience=settings.patience)
    headers = {where.key_header: where.key} if where.key_header and where.key else {}
    key = "" if where.key_header else where.key
    return Endpoint(WIRES[where.wire], where.base_url, key, headers=headers, patience=settings.patience)
