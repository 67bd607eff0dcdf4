"""OpenAI's chat completions, which most servers of models speak too."""

from __future__ import annotations

from typing import Any

from clients.llm.messages import Ask, Message, Reply, Stop, ToolCall, Usage
from clients.llm.wires.base import BrokenStream, bearer, count

_STOPS: dict[str, Stop] = {"length": "length", "content_filter": "refusal", "tool_calls": "calls"}


class ChatWire:
    name = "chat"
    path = "/chat/completions"

    def headers(self, key: str) -> dict[str, str]:
        return bearer(key)

    def body(self, ask: Ask) -> dict[str, Any]:
        messages = [{"role": "system", "content": ask.system}, *(_written(message) for message in ask.messages)]
        body: dict[str, Any] = {"model": ask.model, "messages": messages}
        if ask.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
                }
                for tool in ask.tools
            ]
        if ask.max_tokens is not None:
            body["max_tokens" if "max_tokens" not in ask.left_out else "max_completion_tokens"] = ask.max_tokens
        if ask.temperature is not None and "temperature" not in ask.left_out:
            body["temperature"] = ask.temperature
        if ask.effort and "reasoning_effort" not in ask.left_out:
            body["reasoning_effort"] = ask.effort
        if ask.stream:
            body["stream"] = True
            if "stream_options" not in ask.left_out:
                body["stream_options"] = {"include_usage": True}
        return body

    def whole(self, document: Any) -> Reply:
        try:
            choice = document["choices"][0]
            message = choice["message"]
        except (LookupError, TypeError) as problem:
            raise BrokenStream("the answer is no chat completion") from problem
        calls = tuple(_call(place, entry) for place, entry in enumerate(message.get("tool_calls") or ()))
        text = message.get("content") or ""
        refusal = message.get("refusal") or ""
        return _reply(text, refusal, calls, choice.get("finish_reason") or "", _usage(document.get("usage")))

    def reader(self) -> ChatReader:
        return ChatReader()


class ChatReader:
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
            raise BrokenStream(f"the endpoint broke off: {data['error']}")
        if data.get("usage"):
            self.usage = _usage(data["usage"])
        shown = ""
        for choice in (data.get("choices") or ())[:1]:
            delta = choice.get("delta") or {}
            shown = delta.get("content") or ""
            self._text.append(shown)
            self._refusal.append(delta.get("refusal") or "")
            for entry in delta.get("tool_calls") or ():
                self._take_call(entry)
            self._finish = choice.get("finish_reason") or self._finish
        return shown

    def _take_call(self, entry: dict[str, Any]) -> None:
        place = entry.get("index", len(self._calls))
        call = self._calls.setdefault(place, {"id": "", "name": "", "arguments": ""})
        function = entry.get("function") or {}
        call["id"] = entry.get("id") or call["id"]
        call["name"] += function.get("name") or ""
        call["arguments"] += function.get("arguments") or ""

    def reply(self) -> Reply:
        if not self._finish:
            raise BrokenStream("the stream ended before the answer did")
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


def _usage(told: Any) -> Usage:
    cost = told.get("cost") if isinstance(told, dict) else None
    return Usage(
        count(told, "prompt_tokens"),
        count(told, "completion_tokens"),
        count(told, "prompt_tokens_details", "cached_tokens"),
        cost=float(cost) if isinstance(cost, int | float) else None,
    )


def _written(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.call_id, "content": message.text}
    written: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.calls:
        written["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments or "{}"}}
            for call in message.calls
        ]
    return written
