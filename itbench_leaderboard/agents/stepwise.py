"""Agents that return one action after another: a Python class, or an HTTP service with the same interface.

The HTTP agent gets `POST <url>` with `{"session", "step", "state"}`, on the first step also `{"description",
"instructions", "actions"}`, and responds with `{"action": "..."}` and optionally `{"usage": {...}}`.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Mapping
from typing import Any

import httpx

from itbench_leaderboard.configuration import AgentTable
from itbench_leaderboard.errors import ConfigurationError
from srearena.conductor.agents import Agent, make_agent


class HttpAgent:
    """A client of an agent behind HTTP."""

    def __init__(self, url: str, session: str, seconds: float = 300.0) -> None:
        self._url = url
        self._session = session
        self._seconds = seconds
        self._step = 0
        self._context: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}

    def init_context(self, description: str, instructions: str, actions: object) -> None:
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


def create(table: AgentTable, session: str) -> Agent:
    """Create an agent for one run. The session's name does not reveal the incident."""
    if table.kind == "http":
        return HttpAgent(table.url, hashlib.sha256(session.encode()).hexdigest()[:16])
    module, colon, name = table.agent.partition(":")
    if not colon:
        return make_agent(table.agent, table.options)
    try:
        instance = getattr(importlib.import_module(module), name)(**table.options)
    except (ImportError, AttributeError, TypeError) as problem:
        raise ConfigurationError(f"the agent {table.agent} cannot be created: {problem}") from problem
    if not isinstance(instance, Agent):
        raise ConfigurationError(f"{table.agent} has no method get_action(state)")
    return instance
