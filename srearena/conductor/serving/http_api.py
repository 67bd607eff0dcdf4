"""The HTTP API of an episode, for agents in any language: task, status, actions and submissions.

It is bound to the loopback interface and protected by a token. No verdict is disclosed before the last submission, and
the handlers have access to the questions of an episode, never to its problem.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from hmac import compare_digest
from typing import Any

import uvicorn

from srearena.conductor.episode.episode import Episode
from srearena.conductor.errors import BadSubmission
from srearena.conductor.stages import public_name

_LARGEST_BODY = 1_048_576
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class Refused(Exception):
    """A request that is answered with an error status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class EpisodeApp:
    """An ASGI application. Requests to the episode are serialized."""

    def __init__(self, episode: Episode, token: str, task: dict[str, Any], finished: Callable[[], None]) -> None:
        self._episode = episode
        self._token = token
        self._task = task
        self._finished = finished
        self._lock = asyncio.Lock()
        self._routes: dict[tuple[str, str], Callable[[Any], Awaitable[dict[str, Any]]]] = {
            ("GET", "/status"): self._status,
            ("GET", "/task"): self._get_task,
            ("POST", "/submit"): self._submit,
            ("POST", "/act"): self._act,
            (
                "POST",
                "/audit",
            ): self._audit,  # for the MCP server; not in the OpenAPI document
            ("GET", "/openapi.json"): self._openapi,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            status, answer = 200, await self._respond(scope, receive)
        except Refused as refused:
            status, answer = refused.status, {"error": str(refused)}
        body = json.dumps(answer, default=str).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})
        if self._episode.finished:
            self._finished()

    async def _respond(self, scope: Scope, receive: Receive) -> dict[str, Any]:
        method, path = scope["method"], scope["path"]
        handler = self._routes.get((method, path))
        if handler is None:
            exists = any(other == path for _, other in self._routes)
            raise Refused(405 if exists else 404, f"there is no {method} {path}: see /openapi.json")
        if path != "/openapi.json":
            self._authenticate(scope)
        body = await _body(receive)
        async with self._lock:
            return await handler(body)

    def _authenticate(self, scope: Scope) -> None:
        header = dict(scope["headers"]).get(b"authorization", b"")
        if not compare_digest(header, f"Bearer {self._token}".encode()):
            raise Refused(401, "send the header `Authorization: Bearer TOKEN` with the token that was printed")

    async def _status(self, body: Any) -> dict[str, Any]:
        episode = self._episode
        episode.within_limits()
        number = len(episode.records)
        return {
            "finished": episode.finished,
            "stage": number,
            "name": public_name(episode.stages[number - 1]),
            "stages": len(episode.stages),
            "question": episode.question,
            "seconds": round(episode.usage.wall_seconds, 1),
        }

    async def _get_task(self, body: Any) -> dict[str, Any]:
        return {**self._task, "question": self._episode.question}

    async def _submit(self, body: Any) -> dict[str, Any]:
        if not isinstance(body, dict) or "solution" not in body:
            raise Refused(400, 'send {"stage": ..., "solution": ...}; without a stage, it answers the current question')
        stage = body.get("stage")
        if not isinstance(stage, str | int | None):
            raise Refused(400, "`stage` is the name or the number of a stage")
        try:
            state = await asyncio.to_thread(self._episode.submit, body["solution"], stage)
        except BadSubmission as problem:
            raise Refused(422, str(problem)) from problem
        return {"received": True, "question": state, "finished": self._episode.finished}

    async def _act(self, body: Any) -> dict[str, Any]:
        if not isinstance(body, dict) or not isinstance(body.get("action"), str):
            raise Refused(400, 'send {"action": "..."}')
        if not self._episode.within_limits():
            raise Refused(409, "the episode is over")
        state = await asyncio.to_thread(self._episode.act, body["action"])
        return {"state": state, "finished": self._episode.finished}

    async def _audit(self, body: Any) -> dict[str, Any]:
        if not isinstance(body, dict) or not isinstance(body.get("tool"), str):
            raise Refused(400, 'send {"tool": "...", "arguments": {...}}')
        # A submission and a wait are recorded as such.
        if body["tool"] not in ("submit", "wait") and not self._episode.finished:
            self._episode.usage.steps += 1
        fields = ("tool", "arguments", "seconds", "characters", "error")
        self._episode.session.note("tool call", **{key: body[key] for key in fields if key in body})
        return {"received": True}

    async def _openapi(self, body: Any) -> dict[str, Any]:
        return openapi()


async def _body(receive: Receive) -> Any:
    data = b""
    while True:
        message = await receive()
        data += message.get("body", b"")
        if len(data) > _LARGEST_BODY:
            raise Refused(413, f"a body has at most {_LARGEST_BODY} bytes")
        if not message.get("more_body"):
            break
    if not data:
        return None
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as problem:
        raise Refused(400, f"the body is not JSON: {problem}") from problem


def openapi() -> dict[str, Any]:
    def operation(
        summary: str, sent: dict[str, Any] | None = None, optional: dict[str, Any] | None = None, **fields: Any
    ) -> dict[str, Any]:
        schema = {"type": "object", "properties": fields}
        described: dict[str, Any] = {
            "summary": summary,
            "security": [{"token": []}],
            "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": schema}}}},
        }
        if sent is not None:
            body = {"type": "object", "properties": {**sent, **(optional or {})}, "required": list(sent)}
            described["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
        return described

    text, truth, number = {"type": "string"}, {"type": "boolean"}, {"type": "number"}
    return {
        "openapi": "3.1.0",
        "info": {"title": "SREArena episode", "version": "1"},
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "paths": {
            "/status": {
                "get": operation(
                    "The progress of the episode",
                    finished=truth,
                    stage=number,
                    name=text,
                    question=text,
                    seconds=number,
                )
            },
            "/task": {
                "get": operation(
                    "The task: description, instructions and addresses", description=text, instructions=text
                )
            },
            "/submit": {
                "post": operation(
                    "Answer a question; repeated for the same stage, it changes nothing",
                    {"solution": {}},
                    {"stage": {"type": ["string", "integer"], "description": "name or number, by default the current"}},
                    received=truth,
                    question=text,
                )
            },
            "/act": {"post": operation("Perform one action", {"action": text}, state=text, finished=truth)},
        },
    }


async def serve(app: EpisodeApp, port: int, ready: Callable[[int], None], stop: asyncio.Event) -> None:
    """Serve until `stop` is set; `ready` is called with the port."""
    config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    task = asyncio.create_task(server.serve())
    while not server.started and not task.done():
        await asyncio.sleep(0.02)
    if server.started:
        ready(server.servers[0].sockets[0].getsockname()[1])
        waiting = asyncio.create_task(stop.wait())
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        await asyncio.sleep(0.1)  # send the last response
        server.should_exit = True
    await task
