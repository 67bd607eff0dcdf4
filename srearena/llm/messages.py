"""Requests to a model and its replies, independent of the wire format.

`native` is an assistant's turn in the form of its endpoint (reasoning, signatures). It is sent back unchanged to an
endpoint with the same wire format and ignored by others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call of the model."""

    id: str
    name: str
    arguments: str
    """As the model wrote them, normally JSON."""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Literal["user", "assistant", "tool"]
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    """In a message of a tool: the id of the call that it is the result of."""
    native: tuple[str, Any] | None = None
    """The name of the wire format, and the turn in that format."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that the model may call."""

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
    """In US dollars, if the endpoint reports it."""
    reported: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """The endpoint's own record of the usage."""

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
    """A complete reply of the model."""

    text: str
    calls: tuple[ToolCall, ...]
    stop: Stop
    usage: Usage
    native: tuple[str, Any] | None = None

    def as_message(self) -> Message:
        return Message("assistant", self.text, self.calls, native=self.native)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request to a model: the whole conversation so far, and how to reply."""

    model: str
    system: str
    messages: Sequence[Message]
    tools: Sequence[Tool] = ()
    max_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None
    schema: Mapping[str, Any] | None = None
    """JSON Schema of the reply, for wire formats with structured output."""
    effort: str = ""
    """Reasoning effort, if the model takes it: low, medium, high."""
    stream: bool = True
    cache_key: str = ""
    unsupported: frozenset[str] = field(default_factory=frozenset)
    """Optional parameters that this endpoint has rejected."""
