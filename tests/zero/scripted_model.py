"""A model that follows a script, on a local port, in the wire formats of coding CLIs.

A script is a function from the conversation so far to the next turn; the server translates both ways: OpenAI's
responses API (Codex), Anthropic's messages API (Claude Code), Google's generateContent (Gemini CLI) and chat
completions (OpenCode), all as server-sent events. Every request is kept, so that tests can look at what a CLI sent.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKENS_IN, TOKENS_OUT, TOKENS_CACHED = 1000, 50, 200  # usage that each reply reports


@dataclass(frozen=True)
class Call:
    """Use of a tool; `tool` is matched against the end of the names that the CLI offers."""

    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Turn:
    text: str = ""
    calls: tuple[Call, ...] = ()


@dataclass
class Conversation:
    """The request of a CLI, independent of the wire format."""

    wire_format: str
    model: str
    tools: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)  # by the user and the system, in order
    results: list[str] = field(default_factory=list)  # of tools, in order
    raw: dict[str, Any] = field(default_factory=dict)

    def tool(self, ending: str) -> str:
        found = [name for name in self.tools if name == ending or name.endswith(ending)]
        if not found:
            raise LookupError(f"no tool {ending} among {self.tools}")
        return found[0]


Script = Callable[[Conversation], Turn]


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(_text(part) for part in content)
    if isinstance(content, dict):
        return _text(content.get("text", content.get("content", content.get("output", ""))))
    return "" if content is None else str(content)


# --- OpenAI responses -------------------------------------------------------------------------------------------------


def _read_responses(body: dict[str, Any]) -> Conversation:
    talk = Conversation("responses", body["model"], raw=body)
    for tool in body.get("tools", []):
        inner = tool.get("tools") if tool.get("type") == "namespace" else None
        for each in inner or [tool]:
            talk.tools.append(f"{tool['name']}/{each['name']}" if inner else each.get("name", each.get("type", "")))
    talk.messages.append(body.get("instructions", ""))
    content = body["input"]
    for item in [{"role": "user", "content": content}] if isinstance(content, str) else content:
        kind = item.get("type", "message")
        if kind == "message" and item["role"] != "assistant":
            talk.messages.append(_text(item["content"]))
        elif kind.endswith("_output"):
            talk.results.append(_text(item["output"]))
    return talk


def _write_responses(talk: Conversation, turn: Turn, number: int) -> Iterator[tuple[str, dict[str, Any]]]:
    items: list[dict[str, Any]] = []
    if turn.text:
        content = [{"type": "output_text", "text": turn.text, "annotations": []}]
        items.append({"type": "message", "role": "assistant", "id": f"msg_{number}", "content": content})
    for place, call in enumerate(turn.calls):
        name = talk.tool(call.tool)
        namespace, _, short = name.rpartition("/")
        one = {"type": "function_call", "id": f"fc_{number}_{place}", "call_id": f"call_{number}_{place}"}
        one |= {"name": short, "arguments": json.dumps(call.arguments)}
        items.append(one | ({"namespace": namespace} if namespace else {}))
    response = {"id": f"resp_{number}", "object": "response", "model": talk.model, "status": "in_progress"}
    yield "response.created", {"response": response}
    for place, item in enumerate(items):
        yield "response.output_item.added", {"output_index": place, "item": item}
        yield "response.output_item.done", {"output_index": place, "item": item}
    usage = {
        "input_tokens": TOKENS_IN,
        "input_tokens_details": {"cached_tokens": TOKENS_CACHED},
        "output_tokens": TOKENS_OUT,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": TOKENS_IN + TOKENS_OUT,
    }
    yield "response.completed", {"response": {**response, "status": "completed", "output": items, "usage": usage}}


# --- Anthropic messages -----------------------------------------------------------------------------------------------


def _read_messages(body: dict[str, Any]) -> Conversation:
    talk = Conversation("messages", body["model"], raw=body)
    talk.tools = [tool["name"] for tool in body.get("tools", [])]
    talk.messages.append(_text(body.get("system")))
    for message in body["messages"]:
        parts = message["content"] if isinstance(message["content"], list) else [message["content"]]
        for part in parts:
            if isinstance(part, dict) and part.get("type") == "tool_result":
                talk.results.append(_text(part.get("content")))
            elif message["role"] == "user":
                talk.messages.append(_text(part))
    return talk


def _write_messages(talk: Conversation, turn: Turn, number: int) -> Iterator[tuple[str, dict[str, Any]]]:
    usage = {"input_tokens": TOKENS_IN - TOKENS_CACHED, "cache_read_input_tokens": TOKENS_CACHED}
    usage |= {"cache_creation_input_tokens": 0, "output_tokens": 1}
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": talk.model, "content": []}
    yield "message_start", {"message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}}
    blocks: list[tuple[dict[str, Any], dict[str, Any]]] = []
    if turn.text:
        blocks.append(({"type": "text", "text": ""}, {"type": "text_delta", "text": turn.text}))
    for place, call in enumerate(turn.calls):
        block = {"type": "tool_use", "id": f"toolu_{number}_{place}", "name": talk.tool(call.tool), "input": {}}
        blocks.append((block, {"type": "input_json_delta", "partial_json": json.dumps(call.arguments)}))
    for place, (block, delta) in enumerate(blocks):
        yield "content_block_start", {"index": place, "content_block": block}
        yield "content_block_delta", {"index": place, "delta": delta}
        yield "content_block_stop", {"index": place}
    reason = "tool_use" if turn.calls else "end_turn"
    ended = {"stop_reason": reason, "stop_sequence": None}
    yield "message_delta", {"delta": ended, "usage": {"output_tokens": TOKENS_OUT}}
    yield "message_stop", {}


# --- Google generateContent -------------------------------------------------------------------------------------------


def _read_contents(body: dict[str, Any]) -> Conversation:
    talk = Conversation("contents", body.get("model", ""), raw=body)
    for tool in body.get("tools", []):
        talk.tools += [each["name"] for each in tool.get("functionDeclarations", [])]
    talk.messages.append(_text(body.get("systemInstruction", {}).get("parts")))
    for content in body["contents"]:
        for part in content["parts"]:
            if "functionResponse" in part:
                talk.results.append(json.dumps(part["functionResponse"]["response"]))
            elif content["role"] == "user":
                talk.messages.append(_text(part))
    return talk


def _write_contents(talk: Conversation, turn: Turn, number: int) -> Iterator[tuple[str, dict[str, Any]]]:
    parts: list[dict[str, Any]] = [{"text": turn.text}] if turn.text else []
    for call in turn.calls:
        parts.append({"functionCall": {"name": talk.tool(call.tool), "args": call.arguments}})
    usage = {"promptTokenCount": TOKENS_IN, "candidatesTokenCount": TOKENS_OUT}
    usage |= {"cachedContentTokenCount": TOKENS_CACHED, "totalTokenCount": TOKENS_IN + TOKENS_OUT}
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    yield "", {"candidates": [candidate], "usageMetadata": usage, "modelVersion": talk.model}


# --- chat completions -------------------------------------------------------------------------------------------------


def _read_chat(body: dict[str, Any]) -> Conversation:
    talk = Conversation("chat", body["model"], raw=body)
    talk.tools = [tool["function"]["name"] for tool in body.get("tools", [])]
    for message in body["messages"]:
        if message["role"] == "tool":
            talk.results.append(_text(message["content"]))
        elif message["role"] != "assistant":
            talk.messages.append(_text(message["content"]))
    return talk


def _write_chat(talk: Conversation, turn: Turn, number: int) -> Iterator[tuple[str, dict[str, Any]]]:
    def chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        head = {"id": f"chat_{number}", "object": "chat.completion.chunk", "created": 0, "model": talk.model}
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

    yield "", chunk({"role": "assistant", "content": turn.text})
    for place, call in enumerate(turn.calls):
        function = {"name": talk.tool(call.tool), "arguments": json.dumps(call.arguments)}
        one = {"index": place, "id": f"call_{number}_{place}", "type": "function", "function": function}
        yield "", chunk({"tool_calls": [one]})
    usage = {"prompt_tokens": TOKENS_IN, "completion_tokens": TOKENS_OUT, "total_tokens": TOKENS_IN + TOKENS_OUT}
    usage |= {"prompt_tokens_details": {"cached_tokens": TOKENS_CACHED}}
    yield "", chunk({}, "tool_calls" if turn.calls else "stop") | {"usage": usage}


_TONGUES: dict[str, tuple[Any, Any]] = {
    "/responses": (_read_responses, _write_responses),
    "/messages": (_read_messages, _write_messages),
    ":streamGenerateContent": (_read_contents, _write_contents),
    "/chat/completions": (_read_chat, _write_chat),
}


@dataclass
class ScriptedModel:
    script: Script
    talks: list[Conversation] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def answer(self, path: str, body: dict[str, Any]) -> list[tuple[str, dict[str, Any]]] | None:
        ending = next((ending for ending in _TONGUES if path.partition("?")[0].endswith(ending)), None)
        if ending is None:
            return None
        read, write = _TONGUES[ending]
        talk: Conversation = read(body)
        talk.model = talk.model or path.rpartition("/")[2].partition(":")[0]
        self.talks.append(talk)
        try:
            return list(write(talk, self.script(talk), len(self.talks)))
        except Exception as problem:
            self.failures.append(repr(problem))
            return list(write(talk, Turn(f"the script failed: {problem!r}"), len(self.talks)))


@contextmanager
def scripted(script: Script, port: int = 0) -> Iterator[ScriptedModel]:
    """Serve the model on a port (default: any free one) until the block ends."""
    model = ScriptedModel(script)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _reply(self, status: int, kind: str, payload: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        def do_GET(self) -> None:
            self._reply(200 if self.path == "/health/liveliness" else 404, "application/json", b"{}")

        do_HEAD = do_GET

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            model.headers.append({key.lower(): value for key, value in self.headers.items()})
            events = model.answer(self.path, json.loads(body or b"{}"))
            if events is None:
                self._reply(404, "application/json", b'{"error": {"message": "not scripted"}}')
                return
            frames = [
                (f"event: {name}\n" if name else "") + "data: " + json.dumps({"type": name, **data} if name else data)
                for name, data in events
            ]
            end = "\n\ndata: [DONE]\n\n" if self.path.endswith("/chat/completions") else "\n\n"
            self._reply(200, "text/event-stream", ("\n\n".join(frames) + end).encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    model.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
