"""Connection test: check before money is spent that everything the runs need is installed and reachable.

Coding CLIs: Zero prepares a run (program, prompt, key, sandbox), and the model is asked for one word. HTTP agents must
respond to HTTP. Python agents must be constructed without error. The judge is asked for one word too.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import httpx

import zero
from itbench_evaluations.judge.settings import JudgeSettings
from itbench_leaderboard.agents.coding_cli import request_for
from itbench_leaderboard.agents.live_cli import live_request
from itbench_leaderboard.config import AgentTable
from itbench_leaderboard.errors import Unreachable
from itbench_leaderboard.incidents import Incident
from srearena.conductor.agent_process.client import AgentProcess
from srearena.coroutines import run_blocking
from srearena.errors import SreArenaError
from srearena.llm.client import CallStats, RetryPolicy
from srearena.llm.endpoint import Endpoint
from srearena.llm.errors import ModelError, ModelUnavailable
from srearena.llm.messages import Message, ModelRequest
from srearena.llm.wires import WIRES, GeminiWire
from srearena.llm.wires.base import bearer
from zero.adapters.registry import find
from zero.providers import Provider, choose

_THIS_MACHINE = ("localhost", "127.0.0.1")
_SECONDS = 60.0  # chosen: longer than a model takes for one word, also when it reasons first
_QUESTION = Message("user", "Reply with the word ready.")
_MAX_TOKENS = {"responses": 64, "messages": 16, "chat": 16}  # reasoning models refuse fewer in responses


def ask(provider: Provider, model: str, key: str, who: str) -> None:
    """Request one word from a model; raises `Unreachable` with what the endpoint reports."""
    wire = GeminiWire() if provider.wire_api == "gemini" else WIRES.get(provider.wire_api, WIRES["chat"])
    endpoint = Endpoint(
        wire,
        provider.base_url,
        key,
        headers=bearer(key),  # proxies in front of any format take it
        query=dict(provider.query),
        policy=RetryPolicy(tries=1, silence=_SECONDS, whole=_SECONDS),
    )
    request = ModelRequest(model, "", (_QUESTION,), max_tokens=_MAX_TOKENS.get(wire.name), stream=False)
    try:
        run_blocking(_complete(endpoint, request))
    except ModelError as problem:
        url = endpoint.url(model)
        if problem.status:
            text = f"{model} at {url} answers {problem.status}: {problem.detail}"
        else:
            text = f"{url} does not answer: {problem.detail}"
            if urlsplit(url).hostname in _THIS_MACHINE and provider.litellm_prefix == "litellm_proxy":
                text += "; start the proxy: litellm --config litellm_config.yaml (pip install 'srearena[litellm]')"
        raise Unreachable(f"{who}: {text}") from problem


async def _complete(endpoint: Endpoint, request: ModelRequest) -> None:
    try:
        await endpoint.complete(request, CallStats())
    except ModelUnavailable as problem:
        if problem.status != 200:  # a response in an unknown format still shows that the endpoint is there
            raise
    finally:
        await endpoint.aclose()


def _requests(agent: AgentTable, incidents: list[Incident], folder: Path) -> list[zero.Request]:
    """One request for each kind of incident that the agent will be run on."""
    requests = []
    recorded = next((one for one in incidents if one.kind == "snapshot"), None)
    if recorded is not None:
        requests.append(request_for(agent, folder / "recorded", Path(recorded.path)))
    if any(one.kind == "live" for one in incidents):
        requests.append(live_request(agent, folder / "live", "http://127.0.0.1:1/mcp", "not yet"))
    return requests or [request_for(agent, folder / "none", None)]


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
            with AgentProcess(agent.agent, agent.options) as process:
                process.check()
            return
        with tempfile.TemporaryDirectory(prefix="run-") as folder:
            for request in _requests(agent, incidents, Path(folder)):
                zero.run(replace(request, dry_run=True))
        provider_name = agent.provider or find(agent.cli).default_provider or ("custom" if agent.base_url else "")
        if not provider_name:
            return  # the CLI chooses its provider itself
        provider = choose(
            provider_name,
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
