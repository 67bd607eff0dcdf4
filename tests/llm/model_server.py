"""A scripted model on a local port, in the three wire formats of our client, streamed and whole (and in two more that
only LiteLLM uses).

It also fails on demand: errors with and without Retry-After, timeouts, streams that break off, refusals, truncated
replies, arguments that are not JSON. Every request is recorded.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.llm.other_tongues import TOKENS_IN, TOKENS_OUT, converse, gemini, results_of_part

TOKENS_CACHED = 200


@dataclass(frozen=True)
class Turn:
    text: str = ""
    calls: tuple[tuple[str, Any], ...] = ()
    """Names and arguments; arguments that are a text are sent as they are."""
    refusal: bool = False
    short: bool = False
    """Cut off by the limit on tokens."""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    error: str = "the server says no"
    cut: int | None = None
    """Break off after so many events."""
    hang: bool = False


def call(name: str, **arguments: Any) -> Turn:
    return Turn(f"I will use {name}.", ((name, arguments),))


def _raw(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


Frames = list[tuple[str, dict[str, Any]]]


def chat_whole(turn: Turn, model: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None if turn.refusal else turn.text}
    if turn.refusal:
        message["refusal"] = turn.text
    if turn.calls:
        message["tool_calls"] = [
            {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": _raw(given)}}
            for n, (name, given) in enumerate(turn.calls)
        ]
    reason = "length" if turn.short else "tool_calls" if turn.calls else "stop"
    usage = {"prompt_tokens": TOKENS_IN, "completion_tokens": TOKENS_OUT, "total_tokens": TOKENS_IN + TOKENS_OUT}
    usage |= {"prompt_tokens_details": {"cached_tokens": TOKENS_CACHED}}  # type: ignore[dict-item]
    return {"model": model, "choices": [{"index": 0, "message": message, "finish_reason": reason}], "usage": usage}


def chat_frames(turn: Turn, model: str) -> Frames:
    whole = chat_whole(turn, model)
    message, reason = whole["choices"][0]["message"], whole["choices"][0]["finish_reason"]
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": piece} for piece in (message["content"] or "").partition(" ") if piece]
    if turn.refusal:
        deltas.append({"refusal": turn.text})
    for n, (name, given) in enumerate(turn.calls):
        raw = _raw(given)
        deltas.append({"tool_calls": [{"index": n, "id": f"call_{n}", "function": {"name": name, "arguments": ""}}]})
        for part in (raw[: len(raw) // 2], raw[len(raw) // 2 :]):
            deltas.append({"tool_calls": [{"index": n, "function": {"arguments": part}}]})
    frames: Frames = [("", {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}) for delta in deltas]
    frames.append(("", {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}))
    frames.append(("", {"choices": [], "usage": whole["usage"]}))
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": model}
    return [(event, {**head, **frame}) for event, frame in frames]


def responses_whole(turn: Turn, model: str) -> dict[str, Any]:
    kind = "refusal" if turn.refusal else "output_text"
    content = [{"type": kind, "refusal" if turn.refusal else "text": turn.text}]
    output: list[dict[str, Any]] = [{"type": "reasoning", "id": "rs_1", "encrypted_content": "sealed", "summary": []}]
    output.append({"type": "message", "role": "assistant", "content": content})
    for n, (name, given) in enumerate(turn.calls):
        output.append({"type": "function_call", "call_id": f"call_{n}", "name": name, "arguments": _raw(given)})
    usage = {"input_tokens": TOKENS_IN, "output_tokens": TOKENS_OUT}
    usage |= {"input_tokens_details": {"cached_tokens": TOKENS_CACHED}}  # type: ignore[dict-item]
    document = {"id": "resp", "model": model, "status": "completed", "output": output, "usage": usage}
    if turn.short:
        document |= {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    return document


def responses_frames(turn: Turn, model: str) -> Frames:
    whole = responses_whole(turn, model)
    frames: Frames = [("response.created", {"response": {"id": "resp", "status": "in_progress"}})]
    frames.append(("response.output_text.delta", {"delta": turn.text}))
    frames += [("response.output_item.done", {"item": item}) for item in whole["output"]]
    frames.append(("response.incomplete" if turn.short else "response.completed", {"response": whole}))
    return frames


def messages_whole(turn: Turn, model: str) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": turn.text}] if turn.text else []
    for n, (name, given) in enumerate(turn.calls):
        content.append({"type": "tool_use", "id": f"toolu_{n}", "name": name, "input": given})
    reason = "refusal" if turn.refusal else "max_tokens" if turn.short else "tool_use" if turn.calls else "end_turn"
    usage = {"input_tokens": TOKENS_IN - TOKENS_CACHED, "cache_read_input_tokens": TOKENS_CACHED}
    usage |= {"output_tokens": TOKENS_OUT}
    return {"type": "message", "model": model, "content": content, "stop_reason": reason, "usage": usage}


def messages_frames(turn: Turn, model: str) -> Frames:
    whole = messages_whole(turn, model)
    usage = {**whole["usage"], "output_tokens": 1}
    frames: Frames = [("message_start", {"message": {"content": [], "usage": usage}}), ("ping", {})]
    for n, block in enumerate(whole["content"]):
        text = block["type"] == "text"
        begun = {**block, "text": ""} if text else {**block, "input": {}}
        frames.append(("content_block_start", {"index": n, "content_block": begun}))
        raw = "" if text else _raw(block["input"])
        delta = {"type": "text_delta", "text": block["text"]} if text else None
        frames.append(
            ("content_block_delta", {"index": n, "delta": delta or {"type": "input_json_delta", "partial_json": raw}})
        )
        frames.append(("content_block_stop", {"index": n}))
    ended = {"delta": {"stop_reason": whole["stop_reason"]}, "usage": {"output_tokens": TOKENS_OUT}}
    return [*frames, ("message_delta", ended), ("message_stop", {})]


def no_frames(turn: Turn, model: str) -> Frames:
    raise AssertionError("this tongue is not streamed here")


TONGUES: dict[str, tuple[Callable[[Turn, str], dict[str, Any]], Callable[[Turn, str], Frames]]] = {
    "/chat/completions": (chat_whole, chat_frames),
    "/responses": (responses_whole, responses_frames),
    "/v1/messages": (messages_whole, messages_frames),
    ":generateContent": (gemini, no_frames),
    "/converse": (converse, no_frames),
}


def results_in(body: dict[str, Any]) -> list[str]:
    """What tools answered, as the request carries it, whatever its tongue."""
    found: list[str] = []
    for item in body.get("input", body.get("messages", body.get("contents", []))):
        if item.get("type") == "function_call_output":
            found.append(item["output"])
        elif item.get("role") == "tool":
            found.append(item["content"])
        elif isinstance(parts := item.get("content", item.get("parts")), list):
            for part in parts:
                found += [part["content"]] if part.get("type") == "tool_result" else results_of_part(part)
    return found


Script = Callable[[dict[str, Any], int], Turn]


@dataclass
class ModelServer:
    script: Script
    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    clients: list[tuple[str, int]] = field(default_factory=list)
    """Where each request came from."""
    release: threading.Event = field(default_factory=threading.Event)

    def base(self, wire: str) -> str:
        return self.url if wire == "messages" else f"{self.url}/v1"


@contextmanager
def serving(script: Script, *, keep_open: bool = False) -> Iterator[ModelServer]:
    """A model on a free port until the block ends. The script sees each request's body and its number, from 1.

    Streams end with their connection, unless it is to be kept open.
    """
    model = ModelServer(script)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            model.requests.append(body)
            model.headers.append({key.lower(): value for key, value in self.headers.items()})
            turn = model.script(body, len(model.requests))
            path = self.path.partition("?")[0]
            model.paths.append(self.path)
            model.clients.append(self.client_address)
            whole, frames = next(pair for end, pair in TONGUES.items() if path.endswith(end))
            if turn.hang:
                model.release.wait(30)
                self.close_connection = True
            elif turn.status != 200:
                error = json.dumps({"error": {"message": turn.error}}).encode()
                self._head(turn.status, "application/json", len(error), turn.headers)
                self.wfile.write(error)
            elif body.get("stream"):
                self._stream(frames(turn, body.get("model", "")), turn.cut)
            else:
                text = json.dumps(whole(turn, body.get("model", ""))).encode()
                self._head(200, "application/json", len(text), {})
                self.wfile.write(text)

        def _stream(self, frames: Frames, cut: int | None) -> None:
            keeps = keep_open and cut is None
            self._head(
                200, "text/event-stream", None, {"transfer-encoding": "chunked"} if keeps else {"connection": "close"}
            )
            for name, data in frames[:cut]:
                head = f"event: {name}\n" if name else ""
                text = json.dumps({"type": name, **data} if name else data, ensure_ascii=False)
                self._piece(f"{head}data: {text}\n\n".encode(), keeps)
            if cut is None and self.path.endswith("completions"):
                self._piece(b"data: [DONE]\n\n", keeps)
            if keeps:
                self._piece(b"", keeps)
            self.close_connection = not keeps

        def _piece(self, data: bytes, chunked: bool) -> None:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data) if chunked else data)

        def _head(self, status: int, kind: str, length: int | None, headers: dict[str, str]) -> None:
            self.send_response(status)
            for key, value in {"content-type": kind, **headers}.items():
                self.send_header(key, value)
            if length is not None:
                self.send_header("content-length", str(length))
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    model.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield model
    finally:
        model.release.set()
        server.shutdown()
        server.server_close()
        thread.join()
