"""Groups of rollouts from an OpenAI-compatible endpoint, with the rewards that GRPO compares.

A group is several attempts at the same incident, forked from one world, so that rewards differ by what the model did
and by nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import httpx

from srearena.errors import SreArenaError
from srearena.frameworks.incidents import Grade, Incident, IncidentPool, RewardKind, tools

_SECONDS = 600.0
"""For one reply of the model."""
_SMALLEST_DEVIATION = 1e-4
"""As TRL has it: keeps the advantage of a group with nearly equal rewards finite."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """One attempt: the conversation in OpenAI's format, and its reward."""

    messages: list[dict[str, Any]]
    grade: Grade

    @property
    def reward(self) -> float:
        return self.grade.reward


def advantages(rewards: Sequence[float]) -> list[float]:
    """How much better than its group each reward is, in standard deviations: what GRPO learns from."""
    mean, deviation = fmean(rewards), pstdev(rewards)
    return [(reward - mean) / (deviation + _SMALLEST_DEVIATION) for reward in rewards]


def collect_group(
    pool: IncidentPool,
    problem: str,
    seed: int,
    size: int,
    *,
    url: str,
    model: str,
    key: str = "none",
    reward: RewardKind = "dense",
    results: Path | None = None,
    **sampling: Any,
) -> list[Rollout]:
    """Collect `size` rollouts of one incident, one after the other; `url` is the endpoint's, up to `/v1`.

    With `results`, the folder of a run, they are written there, as `srearena run` does.
    """
    offered = [
        {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.parameters}}
        for t in tools()
    ]
    request = {"model": model, "tools": offered, **sampling}
    incidents = pool.group(problem, seed, size)
    try:
        with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=_SECONDS) as client:
            rollouts = []
            for trial, incident in enumerate(incidents):
                messages = _converse(client, request, incident)
                grade = incident.grade(reward, agent=model, results=results, trial=trial)
                rollouts.append(Rollout(messages, grade))
            return rollouts
    finally:
        for incident in incidents:
            incident.close()


def _converse(client: httpx.Client, request: dict[str, Any], incident: Incident) -> list[dict[str, Any]]:
    """The conversation until the episode or the model ends."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": incident.task}]
    finished = False
    while not finished:
        reply = _complete(client, {**request, "messages": messages})
        messages.append(reply)
        if not reply.get("tool_calls"):
            break  # a model that calls no tool has ended its attempt
        for call in reply["tool_calls"]:
            function = call["function"]
            step = incident.call(function["name"], function["arguments"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": step.state})
            finished = finished or step.finished
    return messages


def _complete(client: httpx.Client, request: dict[str, Any]) -> dict[str, Any]:
    try:
        response = client.post("/chat/completions", json=request)
        response.raise_for_status()
        return dict(response.json()["choices"][0]["message"])
    except (httpx.HTTPError, ValueError, LookupError, TypeError) as problem:
        raise SreArenaError(f"the endpoint {client.base_url} did not answer as OpenAI's does: {problem}") from problem
