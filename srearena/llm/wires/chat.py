"""OpenAI's chat completions, which most model servers support too."""

from __future__ import annotations

from typing import Any

from srearena.llm.errors import InvalidResponse
from srearena.llm.messages import Message, ModelRequest, Reply, Stop, ToolCall, Usage
from srearena.llm.wires.base import bearer, count

_STOPS: dict[str, Stop] = {"length": "length", "content_filter": "refusal", "tool_calls": "calls"}


class ChatWire:
    """Chat completions (`/chat/completions`)."""

    name = "chat"
    path = "/chat/completions"
    models_path = "/models"

    def headers(self, key: str) -> dict[str, str]:
        return bearer(key)

    def body(self, request: ModelRequest) -> dict[str, Any]:
        system = [{"role": "system", "content": request.system}] if request.system else []
        messages = [*system, *(_encode(message) for message in request.messages)]
        body: dict[str, Any] = {"model": request.model, "messages": messages}
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
                }
                for tool in request.tools
            ]
        if request.max_tokens is not None:
            body["max_tokens" if "max_tokens" not in request.unsupported else "max_completion_tokens"] = (
                request.max_tokens
            )
        if request.temperature is not None and "temperature" not in request.unsupported:
            body["temperature"] = request.temperature
        if request.seed is not None and "seed" not in request.unsupported:
            body["seed"] = request.seed
        if request.schema is not None and "response_format" not in request.unsupported:
            body["response_format"] = _response_format(request)
        if request.effort and "reasoning_effort" not in request.unsupported:
            body["reasoning_effort"] = request.effort
        if request.stream:
            body["stream"] = True
            if "stream_options" not in request.unsupported:
                body["stream_options"] = {"include_usage": True}
        return body

    def whole(self, document: Any) -> Reply:
        try:
            choice = document["choices"][0]
            message = choice["message"]
        except (LookupError, TypeError) as problem:
            raise InvalidResponse("the answer is no chat completion", status=200) from problem
        calls = tuple(_call(place, entry) for place, entry in enumerate(message.get("tool_calls") or ()))
        content = message.get("content")
        text = content if isinstance(content, str) else ""
        refusal = message.get("refusal") or ""
        return _reply(text, refusal, calls, choice.get("finish_reason") or "", _usage(document.get("usage")))

    def reader(self) -> ChatReader:
        return ChatReader()


class ChatReader:
    """Collects the chunks of a streamed chat completion."""

    def __init__(self) -> None:
        self.usage = Usage()
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._calls: dict[int, dict[str, str]] = {}
        self._finish = ""

    def feed(self, event: str, data: Any) -> str:
        if not isinstance(data, dict):
            return ""
        if data.get("error"):
            raise InvalidResponse(f"the endpoint reported an error: {data['error']}")
        if data.get("usage"):
            self.usage = _usage(data["usage"])
        text = ""
        for choice in (data.get("choices") or ())[:1]:
            delta = choice.get("delta") or {}
            text = delta.get("content") or ""
            self._text.append(text)
            self._refusal.append(delta.get("refusal") or "")
            for entry in delta.get("tool_calls") or ():
                self._add_call(entry)
            self._finish = choice.get("finish_reason") or self._finish
        return text

    def _add_call(self, entry: dict[str, Any]) -> None:
        place = entry.get("index", len(self._calls))
        call = self._calls.setdefault(place, {"id": "", "name": "", "arguments": ""})
        function = entry.get("function") or {}
        call["id"] = entry.get("id") or call["id"]
        call["name"] += function.get("name") or ""
        call["arguments"] += function.get("arguments") or ""

    def reply(self) -> Reply:
        if not self._finish:
            raise InvalidResponse("the stream ended before the answer did")
        calls = tuple(
            ToolCall(call["id"] or f"call_{place}", call["name"], call["arguments"])
            for place, call in sorted(self._calls.items())
        )
        return _reply("".join(self._text), "".join(self._refusal), calls, self._finish, self.usage)


def _reply(text: str, refusal: str, calls: tuple[ToolCall, ...], finish: str, usage: Usage) -> Reply:
    stop = "refusal" if refusal else _STOPS.get(finish, "calls" if calls else "end")
    return Reply(text or refusal, calls, stop, usage)


def _call(place: int, entry: dict[str, Any]) -> ToolCall:
    function = entry.get("function") or {}
    return ToolCall(entry.get("id") or f"call_{place}", function.get("name") or "", function.get("arguments") or "")


def _usage(reported: Any) -> Usage:
    cost = reported.get("cost") if isinstance(reported, dict) else None
    return Usage(
        count(reported, "prompt_tokens"),
        count(reported, "completion_tokens"),
        count(reported, "prompt_tokens_details", "cached_tokens"),
        cost=float(cost) if isinstance(cost, int | float) else None,
        reported=reported if isinstance(reported, dict) else {},
    )


def _response_format(request: ModelRequest) -> dict[str, Any]:
    if "json_schema" in request.unsupported:
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": request.schema}}


def _encode(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.call_id, "content": message.text}
    encoded: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.calls:
        encoded["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments or "{}"}}
            for call in message.calls
        ]
    return encoded
