"""OpenAI's responses. Every request carries the whole conversation, including encrypted reasoning.

Nothing is stored at the endpoint (`store: false`), so the client can shorten a conversation and continue it.
"""

from __future__ import annotations

from typing import Any

from srearena.llm.errors import InvalidResponse
from srearena.llm.messages import Message, ModelRequest, Reply, Stop, ToolCall, Usage
from srearena.llm.wires.base import bearer, count


class ResponsesWire:
    """Responses (`/responses`)."""

    name = "responses"
    path = "/responses"
    models_path = "/models"

    def headers(self, key: str) -> dict[str, str]:
        return bearer(key)

    def body(self, request: ModelRequest) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": request.model,
            **({"instructions": request.system} if request.system else {}),
            "input": [item for message in request.messages for item in _items(message)],
            "store": False,
        }
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                    "strict": False,
                }
                for tool in request.tools
            ]
        if request.max_tokens is not None:
            body["max_output_tokens"] = request.max_tokens
        if request.temperature is not None and "temperature" not in request.unsupported:
            body["temperature"] = request.temperature
        if request.effort and "reasoning" not in request.unsupported:
            body["reasoning"] = {"effort": request.effort}
            body["include"] = ["reasoning.encrypted_content"]
        if request.cache_key and "prompt_cache_key" not in request.unsupported:
            body["prompt_cache_key"] = request.cache_key
        if request.stream:
            body["stream"] = True
        return body

    def whole(self, document: Any) -> Reply:
        if not isinstance(document, dict) or not isinstance(document.get("output"), list):
            raise InvalidResponse("the answer is no response", status=200)
        if document.get("status") == "failed":
            raise InvalidResponse(f"the endpoint reported an error: {document.get('error')}")
        texts: list[str] = []
        calls: list[ToolCall] = []
        refused = False
        for item in document["output"]:
            if item.get("type") == "function_call":
                calls.append(ToolCall(item.get("call_id") or "", item.get("name") or "", item.get("arguments") or ""))
            for part in item.get("content") or () if item.get("type") == "message" else ():
                texts.append(part.get("text") or part.get("refusal") or "")
                refused = refused or part.get("type") == "refusal"
        reason = (document.get("incomplete_details") or {}).get("reason")
        stop: Stop = "calls" if calls else "end"
        if reason == "max_output_tokens":
            stop = "length"
        elif refused or reason == "content_filter":
            stop = "refusal"
        usage = _usage(document.get("usage"))
        return Reply("".join(texts), tuple(calls), stop, usage, (self.name, document["output"]))

    def reader(self) -> ResponsesReader:
        return ResponsesReader(self)


class ResponsesReader:
    """Collects the events of a streamed response."""

    def __init__(self, wire: ResponsesWire) -> None:
        self.usage = Usage()
        self._wire = wire
        self._items: list[dict[str, Any]] = []
        self._final: dict[str, Any] | None = None

    def feed(self, event: str, data: Any) -> str:
        if not isinstance(data, dict):
            return ""
        kind = data.get("type") or event
        if kind == "error":
            raise InvalidResponse(f"the endpoint reported an error: {data.get('message') or data.get('error')}")
        if kind == "response.output_text.delta":
            return str(data.get("delta") or "")
        if kind == "response.output_item.done":
            self._items.append(data["item"])
        elif kind in ("response.completed", "response.incomplete", "response.failed"):
            final: dict[str, Any] = data.get("response") or {}
            self._final = final
            self.usage = _usage(final.get("usage"))
        return ""

    def reply(self) -> Reply:
        if self._final is None:
            raise InvalidResponse("the stream ended before the answer did")
        return self._wire.whole({**self._final, "output": self._final.get("output") or self._items})


def _usage(reported: Any) -> Usage:
    return Usage(
        count(reported, "input_tokens"),
        count(reported, "output_tokens"),
        count(reported, "input_tokens_details", "cached_tokens"),
        reported=reported if isinstance(reported, dict) else {},
    )


def _items(message: Message) -> list[dict[str, Any]]:
    if message.role == "tool":
        return [{"type": "function_call_output", "call_id": message.call_id, "output": message.text}]
    if message.role == "user":
        return [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": message.text}]}]
    if message.native is not None and message.native[0] == ResponsesWire.name:
        return list(message.native[1])
    items: list[dict[str, Any]] = []
    if message.text:
        content = [{"type": "output_text", "text": message.text}]
        items.append({"type": "message", "role": "assistant", "content": content})
    for call in message.calls:
        item = {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments or "{}"}
        items.append(item)
    return items
