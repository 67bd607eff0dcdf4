"""A whole benchmark: every agent on every incident a number of times, started or resumed, up to the last verdict.

The state is read from disk each time, so the same command resumes. Runs are ordered so that every agent and incident
has its first run before any has its second: a table of an interrupted campaign is still fair.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from itbench_leaderboard import connection, results, timelines
from itbench_leaderboard.config import AgentTable, Configuration
from itbench_leaderboard.errors import Busy, ConfigurationError
from itbench_leaderboard.executors.base import Executor
from itbench_leaderboard.files import read_json, write_json
from itbench_leaderboard.incidents import Incident
from itbench_leaderboard.jobs import Job
from itbench_leaderboard.judging import Judge, needs_verdict
from itbench_leaderboard.outcomes import RETRIED, Outcome
from itbench_leaderboard.progress import Progress
from itbench_leaderboard.runner import Run, run_of
from srearena.conductor.episode.spec import EpisodeSpec
from srearena.conductor.results.store import run_seed

Say = Callable[[str], None]
_SET_ASIDE = ".earlier"
"""The folder of runs that a corrected configuration replaces."""


@dataclass(slots=True)
class Campaign:
    """Runs of all agents on all incidents."""

    config: Configuration
    agents: Mapping[str, AgentTable]
    incidents: list[Incident]
    judge: Judge
    say: Say = lambda line: None
    rejudge: bool = False
    retry_failed: bool = False
    _progress: Progress | None = None
    _stopping: threading.Event = field(default_factory=threading.Event)
    verbose: bool = False
    _unfinished: list[Run] = field(
        default_factory=list
    )  # unfinished: budget, locked by another process, or without a verdict

    @property
    def root(self) -> Path:
        return self.config.leaderboard_dir

    def runs(self) -> Iterator[tuple[Run, Incident]]:
        """The runs to do; to judge again, those that have ended."""
        for number in range(1, self.config.runs_per_scenario + 1):
            for incident in self.incidents:
                for agent in self.agents:
                    run = run_of(self.root, agent, incident.name, number)
                    if not self.rejudge or run.state()["state"] in ("ended", "judged"):
                        yield run, incident

    # --- checks ------------------------------------------------------------------------------------------------------

    def check(self, *, connect: bool = True) -> None:
        """Check configuration and connections before anything is spent or written."""
        if self.rejudge and not any(True for _ in self.runs()):
            raise ConfigurationError(f"there are no runs to judge in {self.root}: run them first, without --rejudge")
        corrected = [name for name, agent in self.agents.items() if self._differs(name, agent)]
        for name in corrected:
            if self._has_results(name):
                raise ConfigurationError(
                    f"{self.root / name} holds results of another configuration (model, prompt, command ...): "
                    "give this agent another name, or move that directory away"
                )
        if connect and any(True for run, _ in self.runs() if self._needs_agent(run)):
            connection.check(self.agents, self.incidents, self.judge.settings)
        if self.rejudge:
            return
        for name in corrected:
            self._set_aside(name)
        for name, agent in self.agents.items():
            settings = agent.model_dump(mode="json", exclude_defaults=True)
            write_json(self.root / name / "agent.json", {"digest": agent.digest(), "agent": settings})

    def _differs(self, name: str, agent: AgentTable) -> bool:
        previous = read_json(self.root / name / "agent.json")
        return isinstance(previous, dict) and previous.get("digest") != agent.digest()

    def _has_results(self, name: str) -> bool:
        """Whether a run under this name, of any incident, has ended in something else than a failure to run."""
        states = (read_json(path) for path in (self.root / name).glob("*/*/state.json"))
        outcomes = {state.get("outcome") for state in states if isinstance(state, dict)}
        return bool(outcomes - {None, *RETRIED})

    def _set_aside(self, name: str) -> None:
        """Move the failed runs of an agent whose configuration was corrected; they count for nothing."""
        folder = self.root / _SET_ASIDE
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / f"{name}-{sum(1 for _ in folder.iterdir()) + 1}"
        (self.root / name).rename(target)
        self.say(f"{name} is configured differently now: its runs, all of which failed, are in {target}")

    def _needs_agent(self, run: Run) -> bool:
        if self.rejudge:
            return False
        retries = self.config.retries
        if self.retry_failed:
            retries += len(run.state()["attempts"])
        return run.needs_agent(retries, self.config.retry_on)

    # --- runs ---------------------------------------------------------------------------------------------------------

    def run_all(self, executor: Executor, workers: int) -> int:
        """Do all remaining runs; returns the number of runs that are still unfinished."""
        waiting: list[tuple[Run, Incident]] = []
        everything = list(self.runs())
        progress = self._progress = Progress(len(everything), self.say)
        for run, incident in everything:
            state = run.state()
            done = not self._needs_agent(run) and state["state"] == "judged" and not self.rejudge
            if done and not needs_verdict(run):
                document = read_json(run.verdict)
                progress.add_finished(_spent(state), document["flat_scores"].get("score"))
            else:
                progress.add_cost(_spent(state))
                waiting.append((run, incident))
        if progress.done:
            self.say(f"{progress.done} of {progress.total} runs are done already ({progress.spent:.2f} USD)")
        with ThreadPoolExecutor(max(1, workers)) as pool:
            futures = [pool.submit(self._process, run, incident, executor) for run, incident in waiting]
            try:
                wait(futures)
            except KeyboardInterrupt:
                self._stopping.set()
                executor.stop()
                self.say("stopping: unfinished runs are reset")
                wait(futures)
                raise
        _raise_first(futures)
        return len(self._unfinished)

    def live_plan(self) -> list[tuple[str, EpisodeSpec]]:
        """The episodes of live problems that remaining runs will begin with."""
        return [
            (incident.name, self._job(run, incident, "").spec)
            for run, incident in self.runs()
            if incident.kind == "live" and self._needs_agent(run)
        ]

    def _process(self, run: Run, incident: Incident, executor: Executor) -> None:
        assert self._progress is not None
        if self._stopping.is_set():
            return
        try:
            with run.locked():
                self._complete(run, incident, executor)
        except Busy as problem:
            self._unfinished.append(run)
            self.say(str(problem))

    def _complete(self, run: Run, incident: Incident, executor: Executor) -> None:
        """Run the agent if necessary, then the judge."""
        progress = self._progress
        assert progress is not None
        run.recover()
        extra = len(run.state()["attempts"]) if self.retry_failed else 0
        while not self.rejudge and run.needs_agent(self.config.retries + extra, self.config.retry_on):
            if self.config.budget_usd is not None and progress.spent >= self.config.budget_usd:
                self._unfinished.append(run)
                return
            if self.verbose:
                self.say(f"{run.agent} / {run.incident} / {run.number}: starting")
            attempt = run.begin(datetime.now(UTC).isoformat(timespec="seconds"))
            report = executor.execute(self._job(run, incident, str(attempt.workspace)), attempt)
            if report.cost_usd:
                progress.add_cost(report.cost_usd)
            run.end(attempt, report)
            if report.outcome is Outcome.INTERRUPTED:
                self._unfinished.append(run)
                return
        state = run.state()
        if state["state"] not in ("ended", "judged"):
            self._unfinished.append(run)  # --rejudge, and another process has started the run again
            return
        verdict = read_json(run.verdict)
        if self.rejudge or state["state"] == "ended" or needs_verdict(run):
            verdict = self.judge.verdict(run, incident, self.agents[run.agent])
            run.store_verdict(verdict)
            if verdict["metadata"].get("judge_failed"):
                self._unfinished.append(run)
        label = f"{run.agent} / {run.incident} / {run.number}"
        progress.report_run(label, state["outcome"], verdict, verdict["metadata"].get("error") or "")

    def _job(self, run: Run, incident: Incident, workspace: str) -> Job:
        config = self.config
        return Job(
            run.agent,
            self.agents[run.agent].model_dump(mode="json"),
            replace(incident, key=""),
            run.number,
            workspace,
            config.timeout,
            (run_seed(self.root) if config.seed is None else config.seed) + run.number,
            config.collect_traces,
            config.stages,
        )

    # --- results ------------------------------------------------------------------------------------------------------

    def aggregate(self) -> dict[str, Any]:
        timelines.write_missing(self.root, self.incidents)
        config = self.config
        return results.aggregate(
            self.root,
            self.agents,
            self.incidents,
            runs=config.runs_per_scenario,
            k=config.k,
            metric=config.ranking_metric,
        )


def _spent(state: Mapping[str, Any]) -> float:
    return sum(each.get("cost_usd") or 0.0 for each in state["attempts"])


def _raise_first(futures: list[Future[None]]) -> None:
    for future in futures:
        problem = future.exception()
        if problem is not None:
            raise problem
