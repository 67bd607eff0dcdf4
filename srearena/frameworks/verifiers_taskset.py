"""Incidents as a taskset of Prime Intellect's verifiers (`verifiers.v1`), found as `srearena-incidents`.

The episode plays the user: each reply of the model is an action in a fenced block, its result is the next message. The
reward comes from the oracles of `srearena run`. Worlds are prepared once and forked for each rollout.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from typing import Any, Literal

import verifiers.v1 as vf

from srearena.conductor.actions.toolbox import Toolbox
from srearena.conductor.episode.episode import describe, instructions_for
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.conductor.stages import USUAL, in_order, select_stages
from srearena.errors import SreArenaError
from srearena.frameworks.incidents import IncidentPool, framework_spec, select_problems

TASKSET = "srearena-incidents"


class IncidentsConfig(vf.TasksetConfig):
    suite: str = "lite"
    """A suite, an id or a pattern; several are separated by commas."""
    stages: tuple[str, ...] = USUAL
    seeds: int = 1
    """Tasks per problem, each with its own seed."""
    seed: int = 0
    """The first seed."""


class IncidentData(vf.TaskData):
    problem: str
    seed: int
    stages: list[str]


class IncidentTask(vf.Task[IncidentData, vf.State, vf.TaskConfig]):
    pass


class IncidentsTaskset(vf.Taskset[IncidentTask, IncidentsConfig]):
    """Problems of a suite, each with its seeds; what a model reads names no problem."""

    def load(self) -> Iterator[IncidentTask]:
        config, registry = self.config, ProblemRegistry()
        stages = select_stages(in_order(config.stages))
        calls = "\n".join(f"- {text}" for text in Toolbox.descriptions().values())
        for problem in select_problems(config.suite.split(",")):
            for seed in range(config.seed, config.seed + config.seeds):
                task = f"{describe(registry.get_problem(problem, seed).app)}\n\n{instructions_for(stages)}"
                data = IncidentData(
                    name=f"{problem}#{seed}",
                    prompt=f"{task}\n\nActions:\n{calls}",
                    problem=problem,
                    seed=seed,
                    stages=list(stages),
                )
                yield IncidentTask(data, config.task)


class IncidentsEnvConfig(vf.EnvConfig):
    engineer: vf.AgentConfig = vf.AgentConfig(harness={"id": "null"}, runtime={"type": "subprocess"})
    reward: Literal["sparse", "dense"] = "dense"
    max_steps: int = 30


class IncidentsEnv(vf.Env[IncidentsEnvConfig]):
    """One episode for one rollout."""

    def __init__(self, config: IncidentsEnvConfig) -> None:
        # Without it every rollout fails inside verifiers, and that looks like a model that earns nothing.
        if shutil.which("uv") is None:
            raise SreArenaError("verifiers starts its chat program with uv, which is not on PATH: pip install uv")
        super().__init__(config)
        self._pools: dict[tuple[str, ...], IncidentPool] = {}

    def _pool(self, stages: tuple[str, ...]) -> IncidentPool:
        if stages not in self._pools:
            self._pools[stages] = IncidentPool(framework_spec(stages, self.config.max_steps))
        return self._pools[stages]

    async def run(self, task: vf.Task[Any], agents: vf.Agents) -> None:
        data = task.data
        incident = await asyncio.to_thread(self._pool(tuple(data.stages)).open, data.problem, data.seed)
        try:
            async with agents.engineer.interaction(task) as interaction:
                segment = await interaction.turn()
                while not segment.terminated:
                    step = await asyncio.to_thread(incident.episode.act, segment.last_reply)
                    if step.finished:
                        break
                    segment = await interaction.turn(f"{step.state}\n\n{step.question}")
            grade = await asyncio.to_thread(incident.grade, self.config.reward)
        finally:
            await asyncio.to_thread(incident.close)
        interaction.trace.record_reward("oracles", grade.reward)
        interaction.trace.record_metrics({"passed": float(grade.passed), **grade.scores})

    async def stop(self) -> None:
        while self._pools:
            await asyncio.to_thread(self._pools.popitem()[1].close)


def load_environment(reward: Literal["sparse", "dense"] = "dense", max_steps: int = 30, **taskset: Any) -> IncidentsEnv:
    """The environment of a suite: `load_environment(suite="lite", seeds=4)`."""
    chosen = IncidentsConfig(id=TASKSET, **taskset)
    return IncidentsEnv(IncidentsEnvConfig(taskset=chosen, reward=reward, max_steps=max_steps))
