"""A conversation with a model, whatever its endpoint speaks: what is asked, what comes back, what it took.

`native` is an assistant's turn as its endpoint wrote it (reasoning, signatures); it goes back unchanged to an endpoint
of the same kind and is ignored by others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class ToolCall:
    id: str
    name: str
    arguments: str
    """As the model wrote them: JSON if all is well."""


@dataclass(frozen=True, slots=True)
class Message:
    role: Literal["user", "assistant", "tool"]
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    """Of the call that a tool's message answers."""
    native: tuple[str, Any] | None = None
    """The wire's name, and the turn in its words."""


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(slots=True)
class Usage:
    """Tokens of one or many calls. `tokens_in` counts all of the input, cached or not."""

    tokens_in: int = 0
    tokens_out: int = 0
    cached: int = 0
    cache_written: int = 0
    cost: float | None = None
    """In US dollars, where the endpoint says it."""

    def add(self, other: Usage) -> None:
        self.tokens_in += other.tokens_in
        self.tokens_out += other.tokens_out
        self.cached += other.cached
        self.cache_written += other.cache_written
        if other.cost is not None:
            self.cost = (self.cost or 0.0) + other.cost


Stop = Literal["end", "calls", "length", "refusal"]


@dataclass(frozen=True, slots=True)
class Reply:
    text: str
    calls: tuple[ToolCall, ...]
    stop: Stop
    usage: Usage
    native: tuple[str, Any] | None = None

    def as_message(self) -> Message:
        return Message("assistant", self.text, self.calls, native=self.native)


@dataclass(frozen=True, slots=True)
class Ask:
    """One question to a model: the whole conversation so far."""

    model: str
    system: str
    messages: Sequence[Message]
    tools: Sequence[Tool] = ()
    max_tokens: int | None = None
    temperature: float | None = None
    effort: str = ""
    """How hard to think, where the model takes it: low, medium, high."""
    stream: bool = True
    cache_key: str = ""
    left_out: frozenset[str] = field(default_factory=frozenset)
    """Optional fields that this endpoint has complained about."""
