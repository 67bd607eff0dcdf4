"""Agents that return one action after another: a Python class in its own process, or an HTTP service.

The HTTP agent gets `POST <url>` with `{"session", "step", "state"}`, on the first step also `{"description",
"instructions", "actions"}`, and responds with `{"action": "..."}` and optionally `{"usage": {...}}`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import httpx

from itbench_leaderboard.config import AgentTable
from srearena.conductor.agent_process.client import AgentProcess


class HttpAgent:
    """A client of an agent behind HTTP."""

    def __init__(self, url: str, session: str, seconds: float = 300.0) -> None:
        self._url = url
        self._session = session
        self._seconds = seconds
        self._step = 0
        self._context: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}

    def init_context(self, description: str, instructions: str, actions: Mapping[str, str]) -> None:
        self._context = {"description": description, "instructions": instructions, "actions": actions}

    async def get_action(self, state: str) -> str:
        self._step += 1
        body = {"session": self._session, "step": self._step, "state": state, **self._context}
        self._context = {}
        async with httpx.AsyncClient(timeout=self._seconds) as client:
            reply = await client.post(self._url, json=body)
            reply.raise_for_status()
            answer = reply.json()
        if not isinstance(answer, dict) or not isinstance(answer.get("action"), str):
            raise ValueError(f'{self._url} did not answer with {{"action": "..."}}')
        if isinstance(answer.get("usage"), dict):
            self._usage = answer["usage"]
        return str(answer["action"])

    def usage(self) -> Mapping[str, Any]:
        return self._usage


def http_agent(table: AgentTable, session: str) -> HttpAgent:
    """The client of an HTTP agent for one run. The session's name does not reveal the incident."""
    return HttpAgent(table.url, hashlib.sha256(session.encode()).hexdigest()[:16])


def create(table: AgentTable, session: str) -> HttpAgent | AgentProcess:
    """Create an agent for one run."""
    return http_agent(table, session) if table.kind == "http" else AgentProcess(table.agent, table.options)
