"""`Conductor`: runs an agent on a problem. The public interface of the original project.

orch = Conductor()
orch.register_agent(agent)
problem_desc, instructs, apis = orch.init_problem("k8s_target_port-misconfig")
asyncio.run(orch.start_problem(max_steps=30))
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from srearena.conductor.agent_process.client import AgentFailed, AgentProcess
from srearena.conductor.agent_process.isolation import EXTERNAL, NONE
from srearena.conductor.agents import Agent
from srearena.conductor.episode.addresses import watching
from srearena.conductor.episode.disclosure import check_operator
from srearena.conductor.episode.environment import open_cluster
from srearena.conductor.episode.episode import Episode
from srearena.conductor.episode.preparation import Say
from srearena.conductor.episode.spec import EpisodeSpec
from srearena.conductor.errors import ArenaError
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.conductor.results.signals import capture_signals, write_signals
from srearena.conductor.results.store import (
    folder_of,
    trial_document,
    write_state,
    write_summary,
    write_trial,
)
from srearena.conductor.session import Session
from srearena.conductor.worlds.journal import FILE as JOURNAL
from srearena.conductor.worlds.journal import Journal
from srearena.dotenv import environment
from srearena.paths import results_directory
from srearena.tracking.otlp import export_result
from srearena.utils.status import Outcome

Watch = Callable[[dict[str, Any]], None]
"""Receives the stage and the usage of a trial, after every action."""
GRADING = "grading"
"""The progress message after the agent's last action."""
_STOP_SECONDS = 30.0
"""Real seconds for an action to end after it was stopped; grading begins then in any case."""


class Conductor:
    """Runs one episode at a time. Results are written to `results`, or to `data/results/<run>`."""

    def __init__(
        self,
        spec: EpisodeSpec | None = None,
        *,
        results: Path | None = None,
        trial: int = 0,
        say: Say = lambda text: None,
        watch: Watch = lambda progress: None,
        healthy: Episode | None = None,
    ) -> None:
        self.problems = ProblemRegistry()
        self.agent: Any = None
        self.agent_name = ""
        self.isolation = EXTERNAL
        """What kept the agent from the harness; `none` for an agent in this process."""
        self.episode: Episode | None = None
        self.session: Session | None = None
        """The event log of the latest episode, also after it has failed."""
        self.result: dict[str, Any] | None = None
        self.spec = spec or EpisodeSpec()
        self._seed = self.spec.seed
        self._prepared = self.spec
        """The specification of the latest episode, with what its problem pins."""
        self._results = results
        self._trial = trial
        self._say = say
        self._watch = watch
        self._healthy = healthy
        """A healthy system that the first episode takes over (`Episode.hand_to`)."""

    def register_agent(self, agent: Agent, name: str = "agent") -> None:
        if not callable(getattr(agent, "get_action", None)):
            raise ArenaError(f"{type(agent).__name__} is not an agent: it has no `async def get_action(self, state)`")
        self.agent = agent
        self.agent_name = name
        self.isolation = agent.isolation if isinstance(agent, AgentProcess) else NONE

    def init_problem(self, problem_id: str) -> tuple[str, str, dict[str, str]]:
        """Prepare a problem and return what the agent gets: description, instructions, actions."""
        self.close()
        problem_id = self.problems.identify(problem_id)
        selection = self.problems.resolve(problem_id)
        self.prepare(self.problems.get_problem(problem_id, self.spec.variant), selection.stages)
        assert self.episode is not None
        return self.episode.description, self.episode.instructions, self.episode.actions

    def prepare(self, problem: Problem, stages: tuple[str, ...] | None = None) -> None:
        """Prepare the episode of a problem, up to the agent's start."""
        self.close()
        check_operator(os.environ)
        spec = replace(self.spec, stages=self.spec.stages or stages, config=self.spec.backend).pinned_by(problem)
        self._seed, self._prepared = spec.seed, spec
        if self._healthy is not None:
            self._take_over(self._healthy, problem, spec)
            return
        cluster = open_cluster(problem, spec, say=self._say)
        session = self._open_session()
        try:
            self.episode = Episode(problem, cluster, spec, session=session, say=self._say)
            self.episode.prepare()
            session.publish(watching(self.episode))
        except BaseException:
            self.close()
            cluster.close()
            raise

    def _take_over(self, healthy: Episode, problem: Problem, spec: EpisodeSpec) -> None:
        self.episode, self._healthy = healthy, None
        try:
            healthy.hand_to(problem, spec, session=self._open_session(), say=self._say)
            healthy.prepare_incident()
            healthy.session.publish(watching(healthy))
        except BaseException:
            self.close()
            raise

    def _open_session(self) -> Session:
        self.session = Session((self._results or results_directory()) / ".live")
        return self.session

    async def start_problem(self, max_steps: int | None = None) -> dict[str, Any]:
        """Run the agent until its last submission or a limit, and return the graded result."""
        episode = self.episode
        if episode is None:
            raise ArenaError("no problem is prepared: call init_problem first")
        if self.agent is None:
            raise ArenaError("no agent is registered: call register_agent first")
        if max_steps is not None:
            episode.limits = replace(episode.limits, steps=max_steps)
        if callable(getattr(self.agent, "keep_record", None)):
            self.agent.keep_record(episode.session.note)
        try:
            try:
                await self._run_agent(episode)
            finally:
                self._update_usage(episode)  # the cost of a failed last call counts too
                if callable(getattr(self.agent, "aclose", None)):
                    await self.agent.aclose()
            self._say(GRADING)
            await asyncio.to_thread(episode.grade)
            return self.finish(episode)
        finally:
            self.close()

    async def _run_agent(self, episode: Episode) -> None:
        state = episode.question
        begun = False
        while episode.within_limits():
            self._watch({"stage": episode.stage, **episode.usage.as_document()})
            limit = episode.limits.wall_seconds
            timeout = None if limit is None else max(limit - episode.usage.wall_seconds, 0.01)
            try:
                if not begun:
                    await asyncio.wait_for(self._introduce(episode), timeout)
                    begun = True
                    continue
                action: Any = await asyncio.wait_for(self.agent.get_action(state), timeout)
            except Exception as error:
                if isinstance(error, TimeoutError) and not episode.within_limits():
                    return
                named = str(error) if isinstance(error, AgentFailed) else f"{type(error).__name__}: {error}"
                episode.end(Outcome.AGENT_ERROR, f"the agent failed: {named}")
                return
            if not isinstance(action, str):
                episode.end(Outcome.AGENT_ERROR, f"the agent's action is a {type(action).__name__}, not a text")
                return
            self._update_usage(episode)
            state = await self._act(episode, action)

    async def _act(self, episode: Episode, action: str) -> str:
        """Perform an action; at the time limit of the trial it is stopped, and its answer does not count."""
        limit = episode.limits.wall_seconds
        acting = asyncio.create_task(asyncio.to_thread(episode.act, action))
        remaining = None if limit is None else max(limit - episode.usage.wall_seconds, 0.01)
        done, _ = await asyncio.wait([acting], timeout=remaining)
        if not done:
            episode.within_limits()  # ends the episode
            episode.interrupt()
            await asyncio.wait([acting], timeout=_STOP_SECONDS)
        return acting.result() if acting.done() else ""

    async def _introduce(self, episode: Episode) -> None:
        """Give the agent what it gets before the first question."""
        texts = episode.description, episode.instructions, episode.actions
        if isinstance(self.agent, AgentProcess):
            await self.agent.begin(*texts, episode.kubeconfig)
            return
        if callable(getattr(self.agent, "init_context", None)):
            self.agent.init_context(*texts)
        if callable(getattr(self.agent, "connect", None)):
            self.agent.connect(episode.kubeconfig)

    def _update_usage(self, episode: Episode) -> None:
        report = getattr(self.agent, "usage", None)
        used = report() if callable(report) else None
        if isinstance(used, Mapping):
            with contextlib.suppress(TypeError, ValueError):
                episode.usage.tokens_in = int(used.get("tokens_in", 0))
                episode.usage.tokens_out = int(used.get("tokens_out", 0))
                episode.usage.cost = float(used.get("cost", 0.0))

    def finish(self, episode: Episode) -> dict[str, Any]:
        """Write the result. Only from here on files may name the problem."""
        run = self.run_folder(episode.session.session_id)
        document = trial_document(
            episode,
            agent=self.agent_name,
            isolation=self.isolation,
            seed=self._seed,
            trial=self._trial,
            run=run.name,
        )
        folder = folder_of(run, document["problem"], self._trial)
        self.keep_logs(folder)
        self.keep_for_viewing(folder)
        write_state(run, document, episode.state)
        write_trial(run, document)
        if self._results is None:
            write_summary(run, [document])
        error = export_result(document, episode.session.path or Path(), environment())
        if error:
            self._say(error)
        self.result = document
        return document

    def run_folder(self, session: str) -> Path:
        """The folder of the run: an episode that belongs to none has one of its own."""
        return self._results or results_directory() / session

    def keep_logs(self, folder: Path) -> None:
        """Move the event log and the agent's output into the folder of the trial."""
        if self.session is not None:
            self.session.move(folder / "session.jsonl")
        if isinstance(self.agent, AgentProcess) and self.agent.log:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "agent.log").write_text(self.agent.log, encoding="utf-8")

    def keep_for_viewing(self, folder: Path) -> None:
        """Write what `srearena view` shows of the system, or makes it again from, into the folder of the trial."""
        if self.episode is None:
            return
        signals = capture_signals(self.episode)
        if signals is not None:
            write_signals(folder, signals)
        journal = Journal.of_real_time(self.episode, self._prepared)
        if journal is not None:
            journal.write(folder / JOURNAL)

    def abandon(self) -> None:
        """End the running episode without a result: its event log is deleted."""
        if self.session is not None:
            self.session.discard()
        self.close()

    def close(self) -> None:
        """End the running episode; calling it again does nothing."""
        if self.episode is not None:
            self.episode.close()
            self.episode = None
