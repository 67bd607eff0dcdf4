"""Wire formats: each turns a `ModelRequest` into a request body, and responses, streamed or whole, into a `Reply`."""

from srearena.llm.wires.base import StreamReader, Wire
from srearena.llm.wires.chat import ChatWire
from srearena.llm.wires.gemini import GeminiWire
from srearena.llm.wires.messages import MessagesWire
from srearena.llm.wires.responses import ResponsesWire

WIRES: dict[str, Wire] = {"chat": ChatWire(), "responses": ResponsesWire(), "messages": MessagesWire()}
"""Formats with tools and streaming, as an agent needs them."""

__all__ = ["WIRES", "ChatWire", "GeminiWire", "MessagesWire", "ResponsesWire", "StreamReader", "Wire"]
