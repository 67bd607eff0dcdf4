"""Before money is spent: is everything there that the runs need, and does it answer?

Coding CLIs: Zero prepares a run (program, prompt, key, sandbox), and the model is asked for one word. HTTP agents must
answer HTTP. Python agents must come into being. The judge is asked for one word too.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import httpx

import zero
from itbench_evaluations.judge.settings import JudgeSettings
from itbench_leaderboard.agents import conversation
from itbench_leaderboard.agents.coding_cli import request_for
from itbench_leaderboard.agents.live_cli import live_request
from itbench_leaderboard.configuration import AgentTable
from itbench_leaderboard.errors import Unreachable
from itbench_leaderboard.incidents import Incident
from srearena.errors import SreArenaError
from zero.adapters.registry import find
from zero.providers import Provider, choose

_SECONDS = 60.0
_WORD = [{"role": "user", "content": "Reply with the word ready."}]


def _question(wire: str, model: str) -> tuple[str, dict[str, object]]:
    if wire == "responses":
        return "responses", {"model": model, "input": "Reply with the word ready.", "max_output_tokens": 64}
    if wire == "messages":
        return "v1/messages", {"model": model, "max_tokens": 16, "messages": _WORD}
    if wire == "gemini":
        contents = [{"parts": [{"text": "Reply with the word ready."}]}]
        return f"v1beta/models/{model}:generateContent", {"contents": contents}
    return "chat/completions", {"model": model, "messages": _WORD, "max_tokens": 16}


def ask(provider: Provider, model: str, key: str, who: str) -> None:
    """One word from a model; Unreachable says what came instead."""
    path, body = _question(provider.wire_api, model)
    headers = {"authorization": f"Bearer {key}"} if key else {}
    if key and provider.wire_api in ("messages", "gemini"):
        headers |= {"x-api-key": key, "x-goog-api-key": key, "anthropic-version": "2023-06-01"}
    url = f"{provider.base_url.rstrip('/')}/{path}"
    try:
        reply = httpx.post(url, json=body, headers=headers, params=dict(provider.query), timeout=_SECONDS)
    except httpx.HTTPError as problem:
        raise Unreachable(f"{who}: {url} does not answer: {problem or type(problem).__name__}") from problem
    if reply.status_code >= 400:
        said = " ".join(reply.text.split())[:200]
        raise Unreachable(f"{who}: {model} at {url} answers {reply.status_code}: {said}")


def _requests(agent: AgentTable, incidents: list[Incident], folder: Path) -> list[zero.Request]:
    """One for each way in which this agent will be run."""
    asked = []
    recorded = next((one for one in incidents if one.kind == "snapshot"), None)
    if recorded is not None:
        asked.append(request_for(agent, folder / "recorded", Path(recorded.path)))
    if any(one.kind == "live" for one in incidents):
        asked.append(live_request(agent, folder / "live", "http://127.0.0.1:1/mcp", "not yet"))
    return asked or [request_for(agent, folder / "none", None)]


def check_agent(name: str, agent: AgentTable, incidents: list[Incident]) -> None:
    who = f"agent {name}"
    if agent.kind == "http":
        try:
            httpx.request("OPTIONS", agent.url, timeout=_SECONDS)
        except httpx.HTTPError as problem:
            raise Unreachable(f"{who}: {agent.url} does not answer: {problem or type(problem).__name__}") from problem
        return
    try:
        if agent.kind == "python":
            conversation.make(agent, "connection test")
            return
        with tempfile.TemporaryDirectory(prefix="run-") as folder:
            for request in _requests(agent, incidents, Path(folder)):
                zero.run(replace(request, dry_run=True))
        named = agent.provider or find(agent.cli).default_provider or ("custom" if agent.base_url else "")
        if not named:
            return  # its own affair
        provider = choose(
            named,
            os.environ,
            base_url=agent.base_url,
            key_variable=agent.api_key_env,
            wire_api=agent.wire_api,
        )
    except SreArenaError as problem:
        raise Unreachable(f"{who}: {problem}") from problem
    if agent.litellm_config is None and agent.model:
        ask(provider, agent.model, os.environ.get(provider.key_variable, ""), who)


def check_judge(settings: JudgeSettings) -> None:
    for model in settings.models:
        ask(Provider("judge", settings.base_url, wire_api="chat"), model, settings.api_key, "judge")


def check(agents: Mapping[str, AgentTable], incidents: list[Incident], settings: JudgeSettings | None) -> None:
    for name, agent in agents.items():
        check_agent(name, agent, incidents)
    if settings is not None:
        check_judge(settings)
