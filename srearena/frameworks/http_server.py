"""Incidents over HTTP, for trainers in any language: open groups of them, act, fork at any moment, grade.

The client is a trainer, not an agent: who has the token may fork and grade. Give an agent the answers of `call` or
`act`, never the address. A grade ends the agent's part and says how good its answers were, not which were right.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from secrets import token_hex
from typing import Any, get_args

from srearena.closeable import Closeable
from srearena.conductor.errors import ArenaError, BadSubmission, UnknownProblem
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.conductor.serving.json_app import NUMBER, TEXT, TRUTH, JsonApp, Refused, document, operation
from srearena.frameworks.incidents import Grade, Incident, IncidentPool, RewardKind, tools

_WHOLE = {"type": "integer"}


class IncidentsApp(JsonApp, Closeable):
    """The incidents of one server, each under an id. Requests to different incidents run side by side."""

    def __init__(self, pool: IncidentPool, token: str, most: int) -> None:
        super().__init__(
            token,
            {
                ("GET", "/tools"): self._tools,
                ("GET", "/incidents"): self._list,
                ("POST", "/incidents"): self._open,
                ("GET", "/incidents/{id}"): self._status,
                ("DELETE", "/incidents/{id}"): self._delete,
                ("POST", "/incidents/{id}/act"): self._act,
                ("POST", "/incidents/{id}/call"): self._call,
                ("POST", "/incidents/{id}/submit"): self._submit,
                ("POST", "/incidents/{id}/fork"): self._fork,
                ("POST", "/incidents/{id}/grade"): self._grade,
                ("GET", "/openapi.json"): self._openapi,
            },
            public=("/openapi.json",),
        )
        self._pool = pool
        self._most = most
        self._incidents: dict[str, Incident] = {}
        self._starting = 0
        """Places taken by incidents that are being prepared or forked."""

    def close(self) -> None:
        while self._incidents:
            self._incidents.popitem()[1].close()
        self._pool.close()

    async def _tools(self, body: Any) -> dict[str, Any]:
        return {"tools": [asdict(tool) for tool in tools()]}

    async def _list(self, body: Any) -> dict[str, Any]:
        return {
            "incidents": [
                {"id": name, "problem": one.problem, "seed": one.seed} for name, one in self._incidents.items()
            ]
        }

    async def _open(self, body: Any) -> dict[str, Any]:
        problem, seed, count = _text(body, "problem"), _whole(body, "seed", 0), _whole(body, "count", 1, least=1)
        await _blocking(ProblemRegistry().resolve, problem)
        return {"incidents": await self._started(count, lambda: self._pool.group(problem, seed, count))}

    async def _fork(self, body: Any, id: str) -> dict[str, Any]:
        incident = self._incident(id)
        seeds = (body or {}).get("seeds")
        if seeds is not None and not (isinstance(seeds, list) and all(_is_whole(seed) for seed in seeds) and seeds):
            raise Refused(400, "`seeds` is a list of whole numbers, one for each copy")
        count = _whole(body, "count", len(seeds) if seeds else 1, least=1)
        return {"incidents": await self._started(count, lambda: incident.fork(count, seeds))}

    async def _started(self, count: int, start: Callable[[], list[Incident]]) -> list[dict[str, Any]]:
        if len(self._incidents) + self._starting + count > self._most:
            raise Refused(409, f"at most {self._most} incidents at once: DELETE some, or serve with a larger --most")
        self._starting += count
        try:
            started = await _blocking(start)
        finally:
            self._starting -= count
        named = {token_hex(8): incident for incident in started}
        self._incidents.update(named)
        return [
            {"id": name, "problem": incident.problem, "seed": incident.seed, "task": await _blocking(_task, incident)}
            for name, incident in named.items()
        ]

    async def _status(self, body: Any, id: str) -> dict[str, Any]:
        return asdict(await _blocking(self._incident(id).episode.status))

    async def _delete(self, body: Any, id: str) -> dict[str, Any]:
        incident = self._incident(id)
        del self._incidents[id]
        await _blocking(incident.close)
        return {"closed": True}

    async def _act(self, body: Any, id: str) -> dict[str, Any]:
        return asdict(await _blocking(self._incident(id).episode.act, _text(body, "action")))

    async def _call(self, body: Any, id: str) -> dict[str, Any]:
        name, arguments = _text(body, "name"), body.get("arguments", {})
        if not isinstance(arguments, dict | str):
            raise Refused(400, "`arguments` is an object, or the text of one")
        return asdict(await _blocking(self._incident(id).call, name, arguments))

    async def _submit(self, body: Any, id: str) -> dict[str, Any]:
        if not isinstance(body, dict) or "solution" not in body:
            raise Refused(400, 'send {"solution": ...}, and "stage" to answer another stage than the open one')
        stage = body.get("stage")
        if not isinstance(stage, str | int | None):
            raise Refused(400, "`stage` is the name or the number of a stage")
        return asdict(await _blocking(self._incident(id).episode.submit, body["solution"], stage))

    async def _grade(self, body: Any, id: str) -> dict[str, Any]:
        kind = (body or {}).get("reward", "sparse") if isinstance(body, dict | None) else None
        if kind not in get_args(RewardKind):
            raise Refused(400, f"`reward` is one of {', '.join(get_args(RewardKind))}")
        grade: Grade = await _blocking(self._incident(id).grade, kind)
        return grade.summary()

    async def _openapi(self, body: Any) -> dict[str, Any]:
        return openapi()

    def _incident(self, name: str) -> Incident:
        if name not in self._incidents:
            raise Refused(404, "there is no such incident: POST /incidents opens one, GET /incidents lists them")
        return self._incidents[name]


def _task(incident: Incident) -> str:
    return incident.task


async def _blocking(work: Callable[..., Any], *arguments: Any) -> Any:
    """Call what waits for another process, in a thread; what it refuses is an answer."""
    try:
        return await asyncio.to_thread(work, *arguments)
    except (BadSubmission, UnknownProblem) as problem:
        raise Refused(422, str(problem)) from problem
    except ArenaError as problem:
        raise Refused(409, str(problem)) from problem


def _text(body: Any, name: str) -> str:
    if not isinstance(body, dict) or not isinstance(body.get(name), str):
        raise Refused(400, f'send {{"{name}": "..."}}')
    return str(body[name])


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _whole(body: Any, name: str, default: int, least: int = 0) -> int:
    value = body.get(name, default) if isinstance(body, dict) else default
    if not _is_whole(value) or value < least:
        raise Refused(400, f"`{name}` is a whole number, at least {least}")
    return int(value)


def openapi() -> dict[str, Any]:
    """What the server offers."""
    opened = {"type": "array", "items": {"type": "object"}}
    step = {"state": TEXT, "question": TEXT, "stage": TEXT, "finished": TRUTH, "steps": NUMBER}
    seeds = {"type": "array", "items": _WHOLE, "description": "one for each copy: another chance from here on"}
    one = "/incidents/{id}"
    arguments = {"arguments": {"type": ["object", "string"]}}
    place = [{"name": "id", "in": "path", "required": True, "schema": TEXT}]
    return document(
        "SREArena incidents",
        {
            "/tools": {"get": operation("The actions, as tools of a model", tools=opened)},
            "/incidents": {
                "get": operation("The open incidents", incidents=opened),
                "post": operation(
                    "Open a group of equal incidents",
                    {"problem": TEXT},
                    {"seed": _WHOLE, "count": _WHOLE},
                    incidents=opened,
                ),
            },
            one: {
                "parameters": place,
                "get": operation("Where an incident is", **step),
                "delete": operation("End an incident; its copies go on", closed=TRUTH),
            },
            f"{one}/act": {"parameters": place, "post": operation("Perform one action", {"action": TEXT}, **step)},
            f"{one}/call": {
                "parameters": place,
                "post": operation(
                    "Perform a tool call of a model",
                    {"name": TEXT},
                    arguments,
                    **step,
                ),
            },
            f"{one}/submit": {
                "parameters": place,
                "post": operation(
                    "Answer the open stage", {"solution": {}}, {"stage": {"type": ["string", "integer"]}}, **step
                ),
            },
            f"{one}/fork": {
                "parameters": place,
                "post": operation(
                    "Copy an incident as it is now", {}, {"count": _WHOLE, "seeds": seeds}, incidents=opened
                ),
            },
            f"{one}/grade": {
                "parameters": place,
                "post": operation(
                    "End the agent's part and grade it",
                    {},
                    {"reward": {"enum": list(get_args(RewardKind))}},
                    reward=NUMBER,
                    passed=TRUTH,
                    outcome=TEXT,
                ),
            },
        },
    )
