"""One trial of a run: its specification, and how it is performed. Every trial ends in a result document."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from srearena.conductor.agent_process.client import AgentProcess
from srearena.conductor.agent_process.isolation import AUTO, EXTERNAL, NONE
from srearena.conductor.agents import Agent, make_agent
from srearena.conductor.conductor import Conductor, Watch
from srearena.conductor.episode.episode import Episode
from srearena.conductor.episode.preparation import Say
from srearena.conductor.episode.spec import EpisodeSpec
from srearena.conductor.results.signals import SIGNALS
from srearena.conductor.results.store import failed_document, folder_of, write_traceback, write_trial
from srearena.conductor.worlds.journal import FILE as JOURNAL
from srearena.errors import SreArenaError
from srearena.utils.status import Outcome

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
    isolation: str = AUTO
    """What keeps the agent from the harness, see `agent_process.isolation`; `none` runs it in this process."""
    spec: EpisodeSpec = field(default_factory=EpisodeSpec)

    @property
    def folder(self) -> Path:
        return folder_of(Path(self.run), self.problem, self.number)

    def stored_result(self) -> dict[str, Any] | None:
        """The result on disk, of whatever outcome; None where there is none."""
        try:
            document: Any = json.loads((self.folder / "result.json").read_text())
        except (OSError, ValueError):
            return None
        return document if isinstance(document, dict) else None

    def discard_logs(self) -> None:
        """Delete the logs and signals of an earlier attempt, which say nothing about the next."""
        for name in ("agent.log", "stderr.txt", "traceback.txt", SIGNALS, JOURNAL):
            (self.folder / name).unlink(missing_ok=True)

    def with_cost_limit(self, cost: float) -> Trial:
        return replace(self, spec=replace(self.spec, limits=replace(self.spec.limits, cost=cost)))

    def failure(self, reason: str, outcome: Outcome = Outcome.ENVIRONMENT_ERROR) -> dict[str, Any]:
        """The result document of a trial that was not graded."""
        return failed_document(
            self.problem,
            agent=self.agent,
            seed=self.spec.seed,
            trial=self.number,
            run=Path(self.run).name,
            reason=reason,
            outcome=str(outcome),
        )

    def as_document(self) -> dict[str, Any]:
        return {
            "problem": self.problem,
            "agent": self.agent,
            "run": self.run,
            "number": self.number,
            "agent_options": self.agent_options,
            "isolation": self.isolation,
            "spec": self.spec.as_document(),
        }

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Trial:
        return cls(**{**document, "spec": EpisodeSpec.from_document(document["spec"])})


def perform(
    trial: Trial,
    say: Say = lambda text: None,
    create_agent: Callable[[], Agent] | None = None,
    watch: Watch = lambda progress: None,
    healthy: Episode | None = None,
) -> dict[str, Any]:
    """Run the trial and write its result; an exception of the harness is an environment error.

    `create_agent` is for an agent that runs in this process, whatever the trial's isolation says. `healthy` is the
    system of a trial with the same `healthy_key`, for this trial alone.
    """
    spec = replace(trial.spec, in_process=True)
    conductor = Conductor(spec, results=Path(trial.run), trial=trial.number, say=say, watch=watch, healthy=healthy)
    process: AgentProcess | None = None
    try:
        if create_agent is not None:
            agent = create_agent()
        elif trial.isolation == NONE:
            agent = make_agent(trial.agent, trial.agent_options)
        else:
            agent = process = AgentProcess(trial.agent, trial.agent_options, isolation=trial.isolation)
        conductor.register_agent(agent, trial.agent)
        if trial.isolation == EXTERNAL:  # `create_agent` returns the client of an agent elsewhere
            conductor.isolation = EXTERNAL
        conductor.init_problem(trial.problem)
        if process is not None:
            process.check()
        say(AGENT_WORKS)
        return asyncio.run(conductor.start_problem())
    except Exception as failure:
        expected = isinstance(failure, SreArenaError)
        document = trial.failure(str(failure) if expected else f"{type(failure).__name__}: {failure}")
        write_traceback(Path(trial.run), document, failure)
        conductor.keep_logs(trial.folder)
        write_trial(Path(trial.run), document)
        return document
    except KeyboardInterrupt:
        conductor.abandon()
        raise
    finally:
        conductor.close()
        if process is not None:
            process.close()
