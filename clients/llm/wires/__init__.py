"""What endpoints speak: each wire turns an `Ask` into a request body and answers, streamed or whole, into a `Reply`."""

from clients.llm.wires.anthropic_messages import MessagesWire
from clients.llm.wires.base import BrokenStream, StreamReader, Wire
from clients.llm.wires.chat import ChatWire
from clients.llm.wires.responses import ResponsesWire

WIRES: dict[str, Wire] = {"chat": ChatWire(), "responses": ResponsesWire(), "messages": MessagesWire()}

__all__ = ["WIRES", "BrokenStream", "ChatWire", "MessagesWire", "ResponsesWire", "StreamReader", "Wire"]
