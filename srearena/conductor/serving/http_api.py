"""The HTTP API of an episode, for agents in any language: task, status, actions and submissions.

With a grading token, a client that has it ends the agent's part and gets the grade; agents have another token.

It is bound to the loopback interface and protected by a token. No verdict is disclosed before the last submission, and
the handlers have access to the questions of an episode, never to its problem.
"""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Callable
from hmac import compare_digest
from typing import Any

from srearena.conductor.episode.episode import Episode
from srearena.conductor.errors import BadSubmission
from srearena.conductor.serving.json_app import NUMBER, TEXT, TRUTH, Handler, JsonApp, Refused, document, operation
from srearena.conductor.stages import public_name
from srearena.utils.status import Outcome


class EpisodeApp(JsonApp):
    """Requests to the episode are serialized."""

    def __init__(
        self,
        episode: Episode,
        token: str,
        task: dict[str, Any],
        finished: Callable[[], None],
        grading_token: str | None = None,
    ) -> None:
        super().__init__(
            token,
            {
                ("GET", "/status"): self._status,
                ("GET", "/task"): self._get_task,
                ("POST", "/submit"): self._submit,
                ("POST", "/act"): self._act,
                **({("POST", "/grade"): self._grade} if grading_token is not None else {}),
                ("POST", "/audit"): self._audit,  # for the MCP server; not in the OpenAPI document
                ("GET", "/openapi.json"): self._openapi,
            },
            public=("/openapi.json", "/grade"),
        )
        self._episode = episode
        self._task = task
        self._finished = finished
        self._grading_token = grading_token
        self.graded = False
        self._lock = asyncio.Lock()

    def answered(self) -> None:
        if self.graded or (self._episode.finished and self._grading_token is None):
            self._finished()

    async def handle(self, handler: Handler, body: Any, parameters: dict[str, str]) -> dict[str, Any]:
        async with self._lock:
            return await handler(body, **parameters)

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

    async def _grade(self, body: Any) -> dict[str, Any]:
        key = body.get("key") if isinstance(body, dict) else None
        if self._grading_token is None or not isinstance(key, str):
            raise Refused(403, "grades are not for agents")
        if not compare_digest(key.encode(), self._grading_token.encode()):
            raise Refused(403, "grades are not for agents")
        await asyncio.to_thread(self._episode.grade)
        ending = self._episode.ending
        assert ending is not None
        self.graded = True
        scores = {one.name: one.verdict.score for one in self._episode.records if one.verdict is not None}
        return {"outcome": str(ending.outcome), "passed": ending.outcome is Outcome.PASS, "scores": scores}

    async def _audit(self, body: Any) -> dict[str, Any]:
        if not isinstance(body, dict) or not isinstance(body.get("tool"), str):
            raise Refused(400, 'send {"tool": "...", "arguments": {...}}')
        # A submission and a wait are recorded as such.
        if body["tool"] not in ("submit", "wait") and not self._episode.finished:
            self._episode.usage.steps += 1
        fields = ("tool", "arguments", "seconds", "characters", "error")
        self._episode.session.note("tool call", **{key: body[key] for key in fields if key in body})
        action = _action_of(body)
        if action:
            seconds = body.get("seconds")
            took = float(seconds) if isinstance(seconds, int | float) else 0.0
            self._episode.requests.performed(action, self._episode.session.lines - 1, took)
        return {"received": True}

    async def _openapi(self, body: Any) -> dict[str, Any]:
        return openapi()


def _action_of(body: dict[str, Any]) -> str:
    """The action that does what a tool of the MCP server did; "" where none does."""
    arguments = body.get("arguments")
    command = arguments.get("command") if isinstance(arguments, dict) else None
    if body["tool"] not in ("kubectl", "shell") or not isinstance(arguments, dict) or not command:
        return ""
    line = shlex.join(map(str, command)) if isinstance(command, list) else str(command)
    if body["tool"] == "kubectl":
        line = line if line.startswith("kubectl") else f"kubectl {line}"
        if arguments.get("stdin"):
            line += f" <<'END-OF-INPUT'\n{arguments['stdin']}\nEND-OF-INPUT"
    return f"exec_shell({json.dumps(line)})"


def openapi() -> dict[str, Any]:
    progress = {"finished": TRUTH, "stage": NUMBER, "name": TEXT, "question": TEXT, "seconds": NUMBER}
    stage = {"type": ["string", "integer"], "description": "name or number, by default the current"}
    return document(
        "SREArena episode",
        {
            "/status": {"get": operation("The progress of the episode", **progress)},
            "/task": {
                "get": operation(
                    "The task: description, instructions and addresses", description=TEXT, instructions=TEXT
                )
            },
            "/submit": {
                "post": operation(
                    "Answer a question; repeated for the same stage, it changes nothing",
                    {"solution": {}},
                    {"stage": stage},
                    received=TRUTH,
                    question=TEXT,
                )
            },
            "/act": {"post": operation("Perform one action", {"action": TEXT}, state=TEXT, finished=TRUTH)},
        },
    )
