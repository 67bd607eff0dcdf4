"""Suites as Inspect tasks (`inspect eval srearena/incidents -T suite=lite`); the extra `inspect`.

The solver opens one episode for each sample and gives its actions to the model as tools. The scorer grades the episode
with the oracles of `srearena run`. Tools act on the embedded cluster with the agent's own identity and start no program
of the model on this machine, so no sandbox is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import anyio.to_thread
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageUser
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import ToolDef, ToolParams

from srearena.conductor.worlds import Step
from srearena.frameworks.incidents import Incident, IncidentPool, framework_spec, select_problems, tools
from srearena.llm.messages import Tool

_REMINDER = "Go on by calling a tool. Call `submit` to answer the present question."
_opened: dict[str, Incident] = {}
"""Episodes by the samples' ids: between solver and scorer, and never in the log."""
_SHOWN = ("application", "level", "stages", "collateral", "ground_truth")
"""Of the result: what `srearena view` shows beside the transcript."""
_MOST_REMINDERS = 3
"""Replies without a tool call, in a row, after which the episode is graded as it is."""


@task
def incidents(
    suite: str | Sequence[str] = "lite",
    stages: Sequence[str] | None = None,
    seeds: int = 1,
    seed: int = 0,
    max_steps: int = 30,
) -> Task:
    """Incidents of a suite, of ids or of patterns; each with `seeds` seeds, beginning with `seed`."""
    samples = [
        Sample(
            id=f"{problem}-{number}",
            input="An incident on Kubernetes; the task is written when its world is ready.",
            metadata={"problem": problem, "seed": number},
        )
        for problem in select_problems(suite)
        for number in range(seed, seed + seeds)
    ]
    return Task(
        dataset=MemoryDataset(samples, name=suite if isinstance(suite, str) else "incidents"),
        solver=investigate(stages, max_steps),
        scorer=oracles(),
        cleanup=_close,
        name="incidents",
    )


@solver
def investigate(stages: Sequence[str] | None = None, max_steps: int = 30) -> Solver:
    """Give the model the task and the tools of an episode until the episode or the model ends."""
    pool = IncidentPool(framework_spec(stages, max_steps))

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        wanted = state.metadata
        incident = await anyio.to_thread.run_sync(pool.open, wanted["problem"], wanted["seed"])
        _opened[state.uuid] = incident
        state.messages = [ChatMessageUser(content=incident.task)]
        state.tools = [_tool(incident, tool) for tool in tools()]
        reminders = 0
        while not state.completed and reminders <= _MOST_REMINDERS:
            state = await generate(state, tool_calls="single")
            if await anyio.to_thread.run_sync(lambda: incident.finished):
                break
            if state.output.message.tool_calls:
                reminders = 0
            else:
                reminders += 1
                state.messages.append(ChatMessageUser(content=_REMINDER))
        return state

    return solve


@scorer(metrics={"passed": [mean(), stderr()], "reward": [mean(), stderr()]})
def oracles() -> Scorer:
    """Score a sample with the verdicts of the oracles: passed (0 or 1), and the mean of the stages' scores."""

    async def score(state: TaskState, target: Target) -> Score:
        grade = await anyio.to_thread.run_sync(partial(_opened[state.uuid].grade, "dense", agent=str(state.model)))
        return Score(
            value={"passed": float(grade.passed), "reward": grade.reward},
            explanation=grade.result["reason"] or grade.outcome,
            metadata={
                "outcome": grade.outcome,
                "scores": grade.scores,
                **{key: grade.result[key] for key in _SHOWN if key in grade.result},
            },
        )

    return score


async def _close(state: TaskState) -> None:
    incident = _opened.pop(state.uuid, None)
    if incident is not None:
        await anyio.to_thread.run_sync(incident.close)


def _tool(incident: Incident, tool: Tool) -> Any:
    async def execute(**arguments: Any) -> str:
        step: Step = await anyio.to_thread.run_sync(incident.call, tool.name, arguments)
        return step.state

    return ToolDef(execute, tool.name, tool.description, _parameters(tool)).as_tool()


def _parameters(tool: Tool) -> ToolParams:
    """The tool's parameters; Inspect wants a description of each, and ours are in the one of the tool."""
    properties = tool.parameters["properties"]
    described = {name: {"description": f"The {name}, see the tool.", **schema} for name, schema in properties.items()}
    return ToolParams(**{**tool.parameters, "properties": described})
