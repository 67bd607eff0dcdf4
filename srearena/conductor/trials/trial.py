"""One trial of a run: its specification, and how it is performed. Every trial ends in a result document."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from srearena.conductor.agents import Agent, make_agent
from srearena.conductor.conductor import Conductor
from srearena.conductor.episode.preparation import Say
from srearena.conductor.episode.spec import EpisodeSpec
from srearena.conductor.results.store import failed_document, folder_of, write_trial
from srearena.errors import SreArenaError

AGENT_WORKS = "the agent works"
"""The progress message of a trial whose agent has started."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One problem, one agent, one seed."""

    problem: str
    agent: str
    run: str
    """The folder of the run."""
    number: int = 0
    agent_options: dict[str, Any] = field(default_factory=dict)
    spec: EpisodeSpec = field(default_factory=EpisodeSpec)

    @property
    def folder(self) -> Path:
        return folder_of(Path(self.run), self.problem, self.number)

    @property
    def done(self) -> bool:
        return (self.folder / "result.json").is_file()

    def with_cost_limit(self, cost: float) -> Trial:
        return replace(self, spec=replace(self.spec, limits=replace(self.spec.limits, cost=cost)))

    def failure(self, reason: str) -> dict[str, Any]:
        """The result document of a trial that failed before its episode."""
        return failed_document(
            self.problem,
            agent=self.agent,
            seed=self.spec.seed,
            trial=self.number,
            run=Path(self.run).name,
            reason=reason,
        )

    def as_document(self) -> dict[str, Any]:
        return {
            "problem": self.problem,
            "agent": self.agent,
            "run": self.run,
            "number": self.number,
            "agent_options": self.agent_options,
            "spec": self.spec.as_document(),
        }

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Trial:
        return cls(**{**document, "spec": EpisodeSpec.from_document(document["spec"])})


def perform(
    trial: Trial, say: Say = lambda text: None, create_agent: Callable[[], Agent] | None = None
) -> dict[str, Any]:
    """Run the trial and write its result; a failure before the agent starts is an environment error.

    `create_agent` is for an agent that is not registered under the trial's agent name.
    """
    spec = replace(trial.spec, in_process=True)
    conductor = Conductor(spec, results=Path(trial.run), trial=trial.number, say=say)
    try:
        agent = create_agent() if create_agent is not None else make_agent(trial.agent, trial.agent_options)
        conductor.register_agent(agent, trial.agent)
        conductor.init_problem(trial.problem)
        say(AGENT_WORKS)
        return asyncio.run(conductor.start_problem())
    except SreArenaError as failure:
        document = trial.failure(str(failure))
        write_trial(Path(trial.run), document)
        return document
    finally:
        conductor.close()
