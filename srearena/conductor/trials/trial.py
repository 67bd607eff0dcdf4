"""One trial of a run: what to do, and doing it. Whatever happens, it ends in a result that says how."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from srearena.conductor.agents import Agent, make_agent
from srearena.conductor.conductor import Conductor
from srearena.conductor.episode.outcome import Limits
from srearena.conductor.episode.preparation import Say, Timeline
from srearena.conductor.results.store import failed_document, folder_of, write_trial
from srearena.config import Config
from srearena.errors import SreArenaError

AGENT_WORKS = "the agent works"
"""What a trial says when its stage is set."""


@dataclass(frozen=True, slots=True)
class Trial:
    problem: str
    agent: str
    run: str
    """The folder of the run."""
    number: int = 0
    seed: int = 0
    agent_options: dict[str, Any] = field(default_factory=dict)
    stages: tuple[str, ...] | None = None
    limits: Limits = field(default_factory=Limits)
    timeline: Timeline = field(default_factory=Timeline)
    noise: bool = False
    config: Config | None = None
    """Where it runs; as `config.yml` says where this says nothing."""

    @property
    def folder(self) -> Path:
        return folder_of(Path(self.run), self.problem, self.number)

    @property
    def done(self) -> bool:
        return (self.folder / "result.json").is_file()

    def as_document(self) -> dict[str, Any]:
        told = self.config.model_dump() if self.config is not None else None
        return {**asdict(replace(self, config=None)), "config": told}

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Trial:
        chosen = dict(document)
        chosen["limits"] = Limits(**chosen["limits"])
        chosen["timeline"] = Timeline(**chosen["timeline"])
        chosen["stages"] = tuple(chosen["stages"]) if chosen["stages"] is not None else None
        chosen["config"] = Config(**chosen["config"]) if chosen["config"] is not None else None
        return cls(**chosen)


def perform(
    trial: Trial, say: Say = lambda text: None, create_agent: Callable[[], Agent] | None = None
) -> dict[str, Any]:
    """Run the trial and write its result; a failure before the agent starts is an environment error.

    `create_agent` is for an agent that is not registered under the trial's agent name.
    """
    conductor = Conductor(
        seed=trial.seed,
        stages=trial.stages,
        limits=trial.limits,
        timeline=trial.timeline,
        results=Path(trial.run),
        trial=trial.number,
        in_process=True,
        noise=trial.noise,
        config=trial.config,
        say=say,
    )
    try:
        agent = create_agent() if create_agent is not None else make_agent(trial.agent, trial.agent_options)
        conductor.register_agent(agent, trial.agent)
        conductor.init_problem(trial.problem)
        say(AGENT_WORKS)
        return asyncio.run(conductor.start_problem())
    except SreArenaError as failure:
        document = failed_document(
            trial.problem,
            agent=trial.agent,
            seed=trial.seed,
            trial=trial.number,
            run=Path(trial.run).name,
            reason=str(failure),
        )
        write_trial(Path(trial.run), document)
        return document
    finally:
        conductor.close()
