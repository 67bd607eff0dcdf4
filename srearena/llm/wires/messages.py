"""Anthropic's messages. The parts that stay the same from turn to turn are marked for the prompt cache."""

from __future__ import annotations

import json
from typing import Any

from srearena.llm.errors import InvalidResponse
from srearena.llm.messages import Message, ModelRequest, Reply, Stop, ToolCall, Usage
from srearena.llm.wires.base import count

VERSION = "2023-06-01"
DEFAULT_MAX_TOKENS = 8192  # the format requires a limit; chosen: every current model allows it
_CACHED = {"type": "ephemeral"}
_STOPS: dict[str, Stop] = {"tool_use": "calls", "max_tokens": "length", "refusal": "refusal"}


class MessagesWire:
    """Messages (`/v1/messages`)."""

    name = "messages"
    path = "/v1/messages"
    models_path = "/v1/models"

    def headers(self, key: str) -> dict[str, str]:
        return {"anthropic-version": VERSION, **({"x-api-key": key} if key else {})}

    def body(self, request: ModelRequest) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": request.model,
            "max_tokens": request.max_tokens or DEFAULT_MAX_TOKENS,
            "messages": _turns(request.messages),
        }
        if request.system:
            # Tools precede the system prompt in the cached prefix, so one mark covers both.
            body["system"] = [{"type": "text", "text": request.system, "cache_control": _CACHED}]
        if request.tools:
            body["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
                for tool in request.tools
            ]
        if request.temperature is not None and "temperature" not in request.unsupported:
            body["temperature"] = request.temperature
        if request.stream:
            body["stream"] = True
        return body

    def whole(self, document: Any) -> Reply:
        if not isinstance(document, dict) or not isinstance(document.get("content"), list):
            raise InvalidResponse("the answer is no message", status=200)
        return _reply(document["content"], document.get("stop_reason") or "", _usage(document.get("usage")))

    def reader(self) -> MessagesReader:
        return MessagesReader()


class MessagesReader:
    """Collects the events of a streamed message."""

    def __init__(self) -> None:
        self.usage = Usage()
        self._blocks: dict[int, dict[str, Any]] = {}
        self._inputs: dict[int, str] = {}
        self._stop = ""
        self._ended = False

    def feed(self, event: str, data: Any) -> str:
        if not isinstance(data, dict):
            return ""
        kind = data.get("type") or event
        if kind == "error":
            raise InvalidResponse(f"the endpoint reported an error: {(data.get('error') or {}).get('message')}")
        if kind == "message_start":
            self.usage = _usage((data.get("message") or {}).get("usage"))
        elif kind == "content_block_start":
            self._blocks[data["index"]] = dict(data["content_block"])
        elif kind == "content_block_delta":
            return self._add_delta(data["index"], data["delta"])
        elif kind == "message_delta":
            self._stop = (data.get("delta") or {}).get("stop_reason") or self._stop
            self.usage.tokens_out = count(data, "usage", "output_tokens") or self.usage.tokens_out
        elif kind == "message_stop":
            self._ended = True
        return ""

    def _add_delta(self, index: int, delta: dict[str, Any]) -> str:
        block = self._blocks.setdefault(index, {"type": "text", "text": ""})
        if delta.get("type") == "text_delta":
            block["text"] = block.get("text", "") + delta["text"]
            return str(delta["text"])
        if delta.get("type") == "input_json_delta":
            self._inputs[index] = self._inputs.get(index, "") + delta["partial_json"]
        elif delta.get("type") == "thinking_delta":
            block["thinking"] = block.get("thinking", "") + delta["thinking"]
        elif delta.get("type") == "signature_delta":
            block["signature"] = block.get("signature", "") + delta["signature"]
        return ""

    def reply(self) -> Reply:
        if not self._ended:
            raise InvalidResponse("the stream ended before the answer did")
        blocks = [block for _, block in sorted(self._blocks.items())]
        for index, arguments in self._inputs.items():
            self._blocks[index]["raw"] = arguments
        return _reply(blocks, self._stop, self.usage)


def _reply(blocks: list[dict[str, Any]], reason: str, usage: Usage) -> Reply:
    calls: list[ToolCall] = []
    native: list[dict[str, Any]] = []
    valid = True
    for block in blocks:
        raw = block.pop("raw", None)
        if block.get("type") == "tool_use":
            text = raw if raw is not None else json.dumps(block.get("input") or {})
            calls.append(ToolCall(str(block.get("id", "")), str(block.get("name", "")), text))
            arguments = _object(text)
            valid = valid and arguments is not None
            block = {**block, "input": arguments or {}}
        native.append(block)
    text = "".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text")
    stop = _STOPS.get(reason, "calls" if calls else "end")
    return Reply(text, tuple(calls), stop, usage, ("messages", native) if valid and native else None)


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _usage(reported: Any) -> Usage:
    read, written = count(reported, "cache_read_input_tokens"), count(reported, "cache_creation_input_tokens")
    tokens_in = count(reported, "input_tokens") + read + written
    raw = reported if isinstance(reported, dict) else {}
    return Usage(tokens_in, count(reported, "output_tokens"), read, written, reported=raw)


def _turns(messages: Any) -> list[dict[str, Any]]:
    """Alternating turns, as this format requires; the last one is marked for the cache."""
    turns: list[dict[str, Any]] = []
    for message in messages:
        role = "assistant" if message.role == "assistant" else "user"
        content = _content(message)
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += content
        else:
            turns.append({"role": role, "content": content})
    if turns and turns[-1]["content"]:
        turns[-1]["content"][-1] = {**turns[-1]["content"][-1], "cache_control": _CACHED}
    return turns


def _content(message: Message) -> list[dict[str, Any]]:
    if message.role == "tool":
        return [{"type": "tool_result", "tool_use_id": message.call_id, "content": message.text or "(nothing)"}]
    if message.native is not None and message.native[0] == MessagesWire.name:
        return list(message.native[1])
    content: list[dict[str, Any]] = [{"type": "text", "text": message.text}] if message.text else []
    for call in message.calls:
        content.append({"type": "tool_use", "id": call.id, "name": call.name, "input": _object(call.arguments) or {}})
    return content or [{"type": "text", "text": "(nothing)"}]
