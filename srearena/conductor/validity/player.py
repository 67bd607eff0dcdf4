"""Plays agent scripts through `Conductor`, as `srearena run` plays agents, each in a copy of one prepared episode.

Preparing an episode takes most of its time, so it is prepared once and forked with its whole world for every script: no
script sees what another has done. The cluster's clock is stopped and advances only as the agent or the grader waits, so
that a result does not depend on the load of the machine.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from srearena.closeable import Closeable
from srearena.conductor.agent_process.client import AgentProcess
from srearena.conductor.agents import Agent
from srearena.conductor.conductor import Conductor
from srearena.conductor.episode.episode import Episode
from srearena.conductor.episode.spec import EpisodeSpec, Timeline
from srearena.conductor.grading.baseline import capture
from srearena.conductor.oracles.base import Verdict
from srearena.conductor.oracles.checks import Processes
from srearena.conductor.oracles.localization import LocalizationOracle
from srearena.conductor.oracles.mitigation import MitigationOracle
from srearena.conductor.problems.base import Problem
from srearena.conductor.session import Session
from srearena.conductor.stages import STAGES
from srearena.conductor.validity.scene import Scene
from srearena.conductor.validity.scripts import Play
from srearena.config import Config
from srearena.go_programs import NO_COLLECTION
from srearena.temporary import make_folder

_SCRIPT_SECONDS = 120.0
"""Real seconds; the longest reference remedy takes about a quarter of it."""
_BACKGROUND_DELAY = 0.2
"""Real seconds between a submission and what a script does afterwards: grading has begun by then."""


def prepared_spec(
    seed: int, timeline: Timeline, config: Config, stages: tuple[str, ...] | None = None, *, noise: bool = False
) -> EpisodeSpec:
    """The specification of a prepared episode."""
    return EpisodeSpec(seed=seed, stages=stages, timeline=timeline, noise=noise, in_process=True, config=config)


class _OwnedConductor(Conductor):
    """A conductor whose episode is closed only by the process that has prepared it."""

    def __init__(self, spec: EpisodeSpec, results: Path, healthy: Episode | None) -> None:
        super().__init__(spec, results=results, healthy=healthy)
        self._owner = os.getpid()

    def close(self) -> None:
        if os.getpid() == self._owner:
            super().close()

    def keep_for_viewing(self, folder: Path) -> None:
        """Nothing: the trials of a proof are not viewed, and this is a tenth of what one costs."""


class PreparedEpisode(Closeable):
    """An episode up to the agent's start. On a real cluster, which cannot be forked, each script prepares its own."""

    def __init__(
        self,
        problem: str | Problem,
        seed: int,
        timeline: Timeline,
        config: Config | None = None,
        stages: tuple[str, ...] | None = None,
        *,
        noise: bool = False,
        healthy: Episode | None = None,
    ) -> None:
        """`healthy` is a system with the same `healthy_key`, which this takes over instead of preparing one."""
        backend = config or Config()
        self._problem = problem
        self._seed = seed
        self._forks = backend.embedded
        self._results = make_folder("proof")
        self._home = self._results / "home"
        """Of all scripts, so that kubectl discovers the API once."""
        self._home.mkdir()
        spec = prepared_spec(seed, timeline, backend, stages, noise=noise)
        self._conductor = _OwnedConductor(spec, self._results, healthy)
        self._prepare()

    def _prepare(self) -> None:
        try:
            if isinstance(self._problem, Problem):
                self._conductor.prepare(self._problem)
            else:
                self._conductor.init_problem(self._problem)
        except BaseException:
            self.close()
            raise
        self.episode.cluster.set_speed(0)

    @property
    def episode(self) -> Episode:
        if self._conductor.episode is None:
            self._prepare()
        assert self._conductor.episode is not None
        return self._conductor.episode

    @property
    def problem(self) -> Problem:
        return self.episode.problem

    def scene(self) -> Scene:
        problem = self.problem
        namespaces = (*problem.app.namespaces, *problem.extra_namespaces)
        return Scene(problem, capture(problem.kubernetes, namespaces), self._seed)

    def play(self, play: Play, name: str, *, thorough: bool = False, isolated: bool = False) -> dict[str, Any]:
        """Play a script in a copy of the episode and return the trial's result document.

        Grading stops at its first complaint unless `thorough`. The agent has a process of its own where it is
        `isolated`, as in every run; otherwise only its shell scripts do, which takes a third of the time.
        """
        if not self._forks:
            while self.episode.stage == "noop":
                self.episode.submit("No")
            return self._play(play, name, thorough, isolated)
        self._disconnect()
        return self.episode.cluster.in_fork(lambda: self._play(play, name, thorough, isolated))

    def run(self, agent: Agent, name: str) -> dict[str, Any]:
        """Run an agent in a copy of the episode, with the clock stopped, and return the trial's result document.

        A mitigation is graded only where all other answers are right, because otherwise the trial is lost anyway.
        """
        self._disconnect()
        return self.episode.cluster.in_fork(lambda: self._run(agent, name))

    def _run(self, agent: Agent, name: str) -> dict[str, Any]:
        self.episode.session = self._conductor.session = Session()
        oracle = self.problem.mitigation_oracle
        if isinstance(oracle, MitigationOracle):
            self.problem.mitigation_oracle = _IfStillOpen(oracle, self.episode)
        self._conductor.register_agent(agent, name)
        return asyncio.run(self._conductor.start_problem())

    def _disconnect(self) -> None:
        """Close the harness's connections: a copy of them would share their encryption state."""
        self.problem.kubernetes.close()
        self.problem.attach(self.episode.cluster)

    def _play(self, play: Play, name: str, thorough: bool, isolated: bool) -> dict[str, Any]:
        episode, conductor = self.episode, self._conductor
        episode.session = conductor.session = Session()
        oracle = self.problem.mitigation_oracle
        if isinstance(oracle, MitigationOracle) and not thorough:
            self.problem.mitigation_oracle = _FirstComplaint(oracle, play.graded, play.leaves_processes)
        if play.beforehand is not None:
            play.beforehand(self.problem)
        episode.cluster.set_speed(play.speed)
        answers = right_answers(self.problem)

        def at_end() -> None:
            episode.cluster.set_speed(0)

        agent = _IsolatedAgent(play, answers, at_end) if isolated else ScriptAgent(play, answers, at_end, self._home)
        conductor.register_agent(agent, name)
        try:
            document = asyncio.run(conductor.start_problem())
        finally:
            agent.stop()
        return {**document, "script_error": agent.error}

    def close(self) -> None:
        self._conductor.close()
        shutil.rmtree(self._results, ignore_errors=True)


class _FirstComplaint(MitigationOracle):
    """The same checks, up to the first complaint: a verdict at the least cost."""

    def __init__(self, oracle: MitigationOracle, graded: bool = True, leaves_processes: bool = False) -> None:
        """The check of processes takes a third of the time: it runs last where the script leaves none."""
        super().__init__(oracle.problem, oracle.checks)
        self._graded = graded
        if not leaves_processes:
            self.checks = sorted(self.checks, key=lambda check: isinstance(check, Processes))

    def evaluate(self, submission: Any) -> Verdict:
        complaint = self.first_complaint() if self._graded else "the mitigation is not graded"
        return Verdict(not complaint, float(not complaint), (complaint or "everything works again",))


class _IfStillOpen(_FirstComplaint):
    """Grades nothing where another stage has failed already."""

    def __init__(self, oracle: MitigationOracle, episode: Episode) -> None:
        super().__init__(oracle)
        self._episode = episode

    def evaluate(self, submission: Any) -> Verdict:
        failed = [record.name for record in self._episode.records if record.verdict and not record.verdict.passed]
        if failed:
            return Verdict(False, 0.0, (f"not graded: {failed[0]} has failed",))
        return super().evaluate(submission)


def right_answers(problem: Problem) -> dict[str, Any]:
    """The answer key, as an agent would submit it."""
    truth = problem.ground_truth
    localization = problem.localization_oracle
    origins = localization.origins if isinstance(localization, LocalizationOracle) else problem.origins
    return {
        "detection": "Yes" if problem.faulty_services else "No",
        "localization": [str(origin.members[0]) for origin in origins],
        "analysis": {"system_level": truth.system_level, "fault_type": truth.fault_type},
        "diagnosis": {
            "entities": [{"name": str(entity), "contributing_factor": True} for entity in problem.roots],
        },
        "mitigation": None,
    }


class _IsolatedAgent(AgentProcess):
    """The agent `shell` in a process of its own, as `srearena run` starts it."""

    def __init__(self, play: Play, answers: dict[str, Any], at_end: Callable[[], None]) -> None:
        super().__init__("shell", {"commands": play.script, "answers": {**answers, **play.answers}})
        self._at_end = at_end
        self.error = ""
        self.check()

    async def aclose(self) -> None:
        await super().aclose()
        self._at_end()

    def stop(self) -> None:
        self.close()


class ScriptAgent:
    """An agent that plays a script: its shell scripts use the kubeconfig that every agent receives."""

    def __init__(self, play: Play, answers: dict[str, Any], at_end: Callable[[], None], home: Path) -> None:
        self.error = ""
        self._home = home
        self._play = play
        self._answers = {**answers, **play.answers}
        self._at_end = at_end
        self._kubeconfig: Path | None = None
        self._stage = ""
        self._remaining = bool(play.script)
        self._background: subprocess.Popen[bytes] | None = None

    def connect(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig

    async def get_action(self, state: str) -> str:
        stages = [name for name, stage in STAGES.items() if name != "noop" and stage.question in state]
        self._stage = stages[0] if stages else self._stage
        if self._remaining and self._stage == self._play.at:
            self._remaining = False
            finished = await asyncio.to_thread(run_script, self._play.script, self._kubeconfig, self._home)
            if finished.returncode:
                self.error = (finished.stderr.strip() or f"status {finished.returncode}")[-400:]
            if self._play.wait:
                return f"```\nwait({self._play.wait})\n```"
        if self._stage == "mitigation" and self._play.afterwards:
            script = f"sleep {_BACKGROUND_DELAY}\n{self._play.afterwards}"
            self._background = _started(script, self._kubeconfig, self._home)
        answer = self._answers.get(self._stage)
        return "```\nsubmit()\n```" if answer is None else f"```\nsubmit({json.dumps(answer)})\n```"

    async def aclose(self) -> None:
        self._at_end()

    def stop(self) -> None:
        """End what still runs in the background."""
        if self._background is not None:
            if self._background.poll() is None:
                os.killpg(self._background.pid, signal.SIGKILL)
            self._background.communicate()


def _started(script: str, kubeconfig: Path | None, home: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["bash", "-euo", "pipefail", "-c", script],
        env={"KUBECONFIG": str(kubeconfig), "HOME": str(home), "PATH": os.environ["PATH"], **NO_COLLECTION},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def run_script(script: str, kubeconfig: Path | None, home: Path) -> subprocess.CompletedProcess[str]:
    """Run a shell script with the agent's identity and an otherwise empty environment."""
    with _started(script, kubeconfig, home) as process:
        try:
            output, errors = process.communicate(timeout=_SCRIPT_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, errors = process.communicate()
            errors += f"(stopped after {_SCRIPT_SECONDS:g} s)".encode()
    return subprocess.CompletedProcess(
        process.args, process.returncode, output.decode("utf-8", "replace"), errors.decode("utf-8", "replace")
    )
