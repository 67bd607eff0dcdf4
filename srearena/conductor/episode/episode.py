"""One episode: a prepared problem, the stages an agent goes through, and the verdicts.

It can be driven by a loop in this process, by an HTTP server, or by a person at a console. Invariants: no verdict is
disclosed before the end; the time to a submission never includes grading; from the end of its part on the agent has no
access, and grading starts after that; a failure of the environment ends the episode as an environment error.
"""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

from srearena.conductor.actions.parsing import Call, parse
from srearena.conductor.actions.toolbox import Toolbox
from srearena.conductor.episode.agent_access import access_to, freeze, grant, revoke
from srearena.conductor.episode.freeze import Freeze
from srearena.conductor.episode.limits import Usage
from srearena.conductor.episode.noise import Noise
from srearena.conductor.episode.preparation import Preparation, Say, TimedCluster
from srearena.conductor.episode.records import Ending, StageRecord, seconds_of
from srearena.conductor.episode.recovery import Recovery, measure_recovery
from srearena.conductor.episode.requests import Requests
from srearena.conductor.episode.spec import EpisodeSpec
from srearena.conductor.errors import BadAction, BadSubmission, EnvironmentFailure
from srearena.conductor.grading.collateral import Change, Severity, collateral, leave_alone_verdict, with_collateral
from srearena.conductor.grading.stored_state import capture_state
from srearena.conductor.oracles.base import Verdict
from srearena.conductor.oracles.mitigation import MitigationOracle
from srearena.conductor.problems.base import Problem
from srearena.conductor.session import Session
from srearena.conductor.stages import STAGES, public_name, select_stages
from srearena.errors import SreArenaError
from srearena.service.apps.base import Application
from srearena.temporary import make_folder
from srearena.utils.status import LimitReached, Outcome

_LARGEST_SUBMISSION = 65_536


class Episode:
    """One problem on one cluster, from preparation to grading."""

    def __init__(
        self,
        problem: Problem,
        cluster: TimedCluster,
        spec: EpisodeSpec,
        *,
        session: Session | None = None,
        say: Say = lambda text: None,
    ) -> None:
        self.problem = problem
        self.cluster = cluster
        self.stages = select_stages(spec.stages)
        self.limits = spec.limits
        self.variant = spec.variant
        self.session = session or Session()
        self.usage = Usage()
        self.records: list[StageRecord] = []
        self.ending: Ending | None = None
        self.kubeconfig: Path | None = None
        self.state: dict[str, Any] = {}
        """The names of objects when the agent started, stored for grading again later."""
        self.requests = Requests(cluster)
        """What was asked in real time; with a stopped clock the order of the requests is enough."""
        self.noise = Noise(problem, spec.seed) if spec.noise else None
        self._preparation = Preparation(problem, cluster, spec.phases, say, seed=spec.seed, noise=self.noise)
        self._in_real_time = spec.speed > 0
        self._keeps_cluster = not spec.backend.embedded
        self._folder = make_folder("episode")
        self._access = access_to(problem, read_only=spec.read_only)
        self._toolbox: Toolbox | None = None
        self._freeze: Freeze | None = None
        self._freeze_failure = ""
        self._ending_lock = threading.Lock()
        self._handed_over_at = ""
        self._position = -1
        self._malformed_submissions = 0
        self._began = monotonic()
        self._began_virtual = 0.0
        self._closed = False
        self._suspended_at: float | None = None
        self._copied = False
        self._kubeconfig_text = ""
        self._healthy_since = 0.0
        self._late = 0.0
        """Seconds between the two parts of the preparation, in which no time passes in the system."""

    # Before the agent

    def prepare(self) -> None:
        """Deploy, run and break the system up to the agent's start; EnvironmentFailure where that fails."""
        self.prepare_healthy()
        self.prepare_incident()

    def prepare_healthy(self, *, shared: bool = False) -> None:
        """Deploy the application and run it under load, up to where problems on the same system begin to differ.

        With `shared` it is not for this problem in particular: see `edited_by_noise`.
        """
        if self.noise is not None:
            self.noise.shared = shared
        self._preparation.deploy()
        try:
            self.kubeconfig = grant(self.cluster, self.problem.kubernetes, self._access, self._folder)
        except SreArenaError as failure:
            raise EnvironmentFailure(f"the agent's identity could not be created: {failure}") from failure
        self._preparation.run_under_load()
        self._healthy_since = monotonic()

    def hand_to(self, problem: Problem, spec: EpisodeSpec, *, session: Session, say: Say = lambda text: None) -> None:
        """After `prepare_healthy`: become the episode of another problem, whose `healthy_key` is the same."""
        if problem.affected_components & self.edited_by_noise:
            raise EnvironmentFailure(f"the noise of this system has edited what {problem.id} affects")
        problem.attach(self.cluster)
        self.problem = self._preparation.problem = problem
        self._preparation.say = say
        if self.noise is not None:
            self.noise.problem = problem
        self.stages = select_stages(spec.stages)
        self.limits, self.variant, self.session = spec.limits, spec.variant, session
        if spec.start is None:
            self._late = monotonic() - self._healthy_since

    @property
    def late(self) -> float:
        """Seconds for which the system was healthy longer than its timeline says, since it was prepared before."""
        return self._late

    @property
    def edited_by_noise(self) -> frozenset[str]:
        """Objects that noise would have spared for a problem that affects them: it needs a system of its own."""
        return frozenset(self.noise.edited) if self.noise is not None else frozenset()

    def prepare_incident(self, late: float | None = None) -> None:
        """Record the baseline of the healthy system, inject the fault, and run up to the agent's start.

        Before that it is healthy for the seconds since it was prepared, or for as many as are given.
        """
        self._late = self._late if late is None else late
        self._preparation.record_baseline(self._late)
        if self.stages[:1] != ("noop",):
            self._preparation.inject_fault()
        if self.noise is not None:
            self.session.note("noise", acts=self.noise.performed)
        self._preparation.hand_over()
        self._handed_over_at = self.problem.kubernetes.now()
        assert self.kubeconfig is not None
        self._toolbox = Toolbox(self.cluster, self.kubeconfig, self.problem.namespace)
        self._began, self._began_virtual = monotonic(), self.cluster.elapsed
        if self._in_real_time:
            self.requests.begin()
        self.session.clock = lambda: self.clock
        self._open_next()

    def exchange_problem(self, problem: Problem) -> None:
        """Continue with another problem on the same healthy system, for one that needs nothing set up.

        Only in the no-op stage, before any fault: the world of one application is prepared once for many problems.
        """
        healthy = self.problem.baseline
        if self.stage != "noop" or healthy is None:
            raise EnvironmentFailure("only a healthy system can be handed to another problem")
        problem.attach(self.cluster)
        problem.baseline, problem.known_objects = healthy, self.problem.known_objects
        self.problem = self._preparation.problem = problem
        if self.noise is not None:
            self.noise.problem = problem
        oracle = problem.mitigation_oracle
        if isinstance(oracle, MitigationOracle):
            healthy.facts.update(oracle.record_baseline(except_for=healthy.facts))

    @property
    def description(self) -> str:
        """The description of the system for the agent, without anything about the fault."""
        return describe(self.problem.app)

    @property
    def instructions(self) -> str:
        return instructions_for(self.stages)

    @property
    def actions(self) -> dict[str, str]:
        return Toolbox.descriptions()

    # While the agent works

    @property
    def handed_over_at(self) -> str:
        """When the agent got the system, by the system's clock; "" before that."""
        return self._handed_over_at

    @property
    def clock(self) -> float | None:
        """The system's time in seconds since the epoch, computed; None before the agent has the system."""
        handed_over = seconds_of(self._handed_over_at)
        if handed_over is None:
            return None
        return round(handed_over + monotonic() - self._began + self.cluster.elapsed - self._began_virtual, 1)

    @property
    def stage(self) -> str | None:
        """The stage that is open for a submission; None after the last."""
        return self.stages[self._position] if 0 <= self._position < len(self.stages) and not self.ending else None

    @property
    def finished(self) -> bool:
        return self.ending is not None

    @property
    def question(self) -> str:
        name = self.stage
        if name is None:
            return "The episode is over."
        stage, number = STAGES[name], self._position + 1
        return f"Stage {number} of {len(self.stages)}. {stage.question} Answer with {stage.example}."

    def act(self, text: str) -> str:
        """Perform the action in an agent's text and return the next state, or the error message."""
        self.usage.steps += 1
        self.session.note("action", step=self.usage.steps, text=text)
        with self.requests.record("act", self.session.lines - 1, action=text):
            state = self._act(text)
        self.session.note("state", step=self.usage.steps, text=state)
        return state

    def _act(self, text: str) -> str:
        try:
            call = parse(text, Toolbox.names())
            return self.call(call)
        except (BadAction, BadSubmission) as mistake:
            self.usage.invalid_actions += 1
            return f"Error: {mistake}"
        except SreArenaError as failure:
            self.end(Outcome.ENVIRONMENT_ERROR, str(failure))
            return "The environment failed. This is not your fault, and the episode is over."

    def interrupt(self) -> None:
        """Stop the action that runs in another thread, as soon as it checks its time limit."""
        if self._toolbox is not None:
            self._toolbox.stop()

    def call(self, call: Call) -> str:
        """Perform a parsed call."""
        if self._toolbox is None:
            raise EnvironmentFailure("the episode is not prepared")
        if self.ending is not None:
            raise BadAction("the episode is over: nothing can be done any more")
        if call.name != "submit":
            return self._toolbox.perform(call)
        options = dict(call.options)
        stage = options.pop("stage", None)
        values = [*call.arguments, *options.values()]
        if len(values) > 1:
            raise BadSubmission("a submission is one value")
        return self.submit(values[0] if values else None, stage)

    def submit(self, value: Any, stage: str | int | None = None) -> str:
        """Submit an answer and return the next question; BadSubmission where it is malformed.

        The answer is to the current stage, or to the one that `stage` names (by name, or by number from 1). A repeated
        answer to an earlier stage returns the same question again and changes nothing.
        """
        if stage is not None:
            earlier = self._submitted(stage, value)
            if earlier is not None:
                return earlier.reply
        with self.requests.record("submit", self.session.lines, solution=value, stage=stage):
            return self._submit(value)

    def _submit(self, value: Any) -> str:
        if self.stage is None:
            raise BadSubmission("the episode is over: there is nothing left to submit")
        record = self.records[-1]
        now = monotonic()
        try:
            text = json.dumps(value, default=str, ensure_ascii=False)
            text.encode()  # half of a pair of surrogates could be written nowhere
            size = len(text)
        except (ValueError, RecursionError) as problem:
            raise self._refuse(f"the submission cannot be read: {problem}") from problem
        if size > _LARGEST_SUBMISSION:
            raise self._refuse(f"a submission has at most {_LARGEST_SUBMISSION} characters, this one has {size}")
        record.wall_seconds = now - record.opened
        record.virtual_seconds = record.wall_seconds + (self.cluster.elapsed - record.opened_virtual)
        record.steps = self.usage.steps - record.steps_before
        record.submission = value
        if record.name != "mitigation":
            try:
                record.verdict = Verdict.from_answer(self.problem.oracle_for(record.name).evaluate(value))
            except BadSubmission as problem:
                record.submission = None
                raise self._refuse(str(problem)) from problem
        record.submitted = True
        self._malformed_submissions = 0
        self.session.note("submission", stage=record.name, value=value, seconds=record.wall_seconds, clock=self.clock)
        if record.name == "noop":
            self._preparation.inject_fault()
        self._open_next()
        record.reply = self.question
        return record.reply

    def _submitted(self, stage: str | int, value: Any) -> StageRecord | None:
        """The record of an earlier stage whose answer is repeated; None for the current stage, BadSubmission else."""
        names = [public_name(name) for name in self.stages]
        if isinstance(stage, str) and names.count(stage) > 1:
            raise BadSubmission(f"two stages are called {stage!r}: give the number of the one you mean")
        known = dict(zip(names, range(1, len(names) + 1), strict=True))
        number = known.get(stage, 0) if isinstance(stage, str) else int(stage)
        if not 1 <= number <= len(names):
            raise BadSubmission(f"there is no stage {stage!r}: they are {', '.join(names)}, or 1 to {len(names)}")
        if number > len(self.records):
            raise BadSubmission(f"stage {stage!r} is not open yet: {self.question}")
        record = self.records[number - 1]
        if not record.submitted:
            return None
        if record.submission != value:
            raise BadSubmission(f"stage {stage!r} has been answered already, and the first answer counts")
        return record

    def _refuse(self, reason: str) -> BadSubmission:
        self._malformed_submissions += 1
        if self._malformed_submissions >= self.limits.invalid_submissions:
            self.end(Outcome.INVALID_SUBMISSION, reason)
        return BadSubmission(reason)

    def _open_next(self) -> None:
        self._position += 1
        if self._position < len(self.stages):
            name = self.stages[self._position]
            record = StageRecord(name, monotonic(), self.cluster.elapsed, self.usage.steps)
            record.opened_at = self.problem.kubernetes.now()
            self.records.append(record)
            self.session.note("stage", name=name)
        else:
            self.end(Outcome.FAIL, "")  # pass or fail is decided by grading

    def within_limits(self) -> bool:
        """Whether the episode continues; ends it where a limit is reached."""
        self.usage.wall_seconds = monotonic() - self._began
        self.usage.virtual_seconds = self.usage.wall_seconds + self.cluster.elapsed - self._began_virtual
        if self.ending is None:
            try:
                self.limits.check(self.usage)
            except LimitReached as reached:
                self.end(reached.outcome, str(reached))
        if self.ending is None:
            try:
                self._check_simulator()
            except SreArenaError as failure:
                self.end(Outcome.ENVIRONMENT_ERROR, str(failure))
        return self.ending is None

    def _check_simulator(self) -> None:
        """EnvironmentFailure where the simulator's own code has failed: agents are not graded on its errors."""
        errors = self.cluster.internal_errors()
        if errors:
            more = f" ({len(errors)} errors)" if len(errors) > 1 else ""
            raise EnvironmentFailure(f"the simulator itself failed: {errors[0]}{more}")

    def end(self, outcome: Outcome, reason: str) -> None:
        """End the agent's part and its access; only grading follows."""
        with self._ending_lock:
            if self.ending is not None:
                return
            self.usage.wall_seconds = monotonic() - self._began
            self.usage.virtual_seconds = self.usage.wall_seconds + self.cluster.elapsed - self._began_virtual
            self.ending = Ending(outcome, reason)
            self.session.note("end of actions", outcome=outcome, reason=reason)
            self._freeze_access()

    def _freeze_access(self) -> None:
        """Take the agent's access away, then record the state that is graded."""
        if self._toolbox is None:
            return  # there has been no agent
        api, namespaces = self.problem.kubernetes, self.problem.app.namespaces
        try:
            handed_over = self._preparation.handed_over or self.problem.baseline
            freeze(self.cluster, api, self._access, handed_over)
            self.cluster.written.clear()
            state = self._preparation.capture()
            earlier = [one for one in (self.problem.baseline, self._preparation.handed_over) if one is not None]
            self._freeze = Freeze.take(api, state, earlier, namespaces)
        except SreArenaError as failure:
            self._freeze_failure = f"the agent's access could not be ended: {failure}"
        self._toolbox.close()

    # Copies

    def suspend(self) -> None:
        """Close all connections and end the cluster's thread, so that the process can be forked."""
        if self._suspended_at is not None:
            return
        if self._toolbox is not None:
            self._toolbox.close()
        if "kubernetes" in self.problem.__dict__:
            self.problem.kubernetes.close()
        self.cluster.suspend()
        # A copy may start after the original has removed its files.
        self._kubeconfig_text = self.kubeconfig.read_text() if self.kubeconfig is not None else ""
        self._suspended_at = monotonic()

    def resume(self) -> None:
        """Continue where the episode was suspended: no time has passed for the agent."""
        if self._suspended_at is None:
            return
        self.cluster.resume()
        self.problem.attach(self.cluster)
        pause, self._suspended_at = monotonic() - self._suspended_at, None
        self._began += pause
        for record in self.records:
            record.opened += pause
        if self._copied:
            self._copied = False
            if self.kubeconfig is not None:
                self.cluster.renew_kubeconfig(self.kubeconfig)
        if self._toolbox is not None and self.kubeconfig is not None and self.ending is None:
            self._toolbox = Toolbox(self.cluster, self.kubeconfig, self.problem.namespace)

    def become_copy(self, seed: int | None = None) -> None:
        """In a fork of the process of a suspended episode: take own files, addresses and credentials for `resume`."""
        self.cluster.become_copy(seed)
        self._folder = make_folder("episode")
        self.session = self.session.copy()
        if self.kubeconfig is not None:
            self.kubeconfig = self._folder / "kubeconfig"
            self.kubeconfig.touch(mode=0o600)
            self.kubeconfig.write_text(self._kubeconfig_text)
        self._copied = True

    # After the agent

    def grade(self) -> Ending:
        """Grade all stages. A mitigation is also graded where it was not submitted, for the record."""
        if self.ending is None:
            self.end(Outcome.AGENT_ERROR, "the agent stopped before its last submission")
        assert self.ending is not None
        ending = self.ending
        try:
            if self._freeze_failure:
                raise EnvironmentFailure(self._freeze_failure)
            self.state = capture_state(self.problem)
            self._grade_mitigation(ending)
            self._check_simulator()
        except SreArenaError as failure:
            ending.outcome, ending.reason = Outcome.ENVIRONMENT_ERROR, f"grading failed: {failure}"
        finished = all(record.submitted for record in self.records) and len(self.records) == len(self.stages)
        if finished and ending.outcome in (Outcome.FAIL, Outcome.PASS):
            verdicts = [record.verdict for record in self.records]
            destroyed = [change for change in ending.collateral if change.severity is Severity.DESTRUCTIVE]
            passed = not destroyed and all(verdict is not None and verdict.passed for verdict in verdicts)
            ending.outcome = Outcome.PASS if passed else Outcome.FAIL
            if not passed:
                reasons = [
                    f"{record.name}: {record.verdict.reasons[0]}"
                    for record in self.records
                    if record.verdict is not None and not record.verdict.passed and record.verdict.reasons
                ]
                ending.reason = "; ".join(reasons) or f"destructive collateral: {destroyed[0]}"
        for record in self.records:
            self.session.note("verdict", **record.as_document())
        changes = [change.as_document() for change in ending.collateral]
        self.session.note("ending", outcome=ending.outcome, reason=ending.reason, collateral=changes)
        return ending

    def collateral(self) -> list[Change]:
        """What the agent has changed beside the repair so far, the worst first."""
        handed_over = self._preparation.handed_over
        if self.problem.baseline is None or handed_over is None:
            return []
        after = self._freeze.state if self._freeze is not None else self._preparation.capture()
        return collateral(self.problem, handed_over, after)

    def _grade_mitigation(self, ending: Ending) -> None:
        handed_over, frozen = self._preparation.handed_over, self._freeze
        ending.collateral = self.collateral()
        if "mitigation" not in self.stages or handed_over is None or frozen is None:
            return
        recoveries: list[Recovery] = []

        def measure() -> None:
            if not recoveries:
                moments = self._handed_over_at, frozen.at
                recoveries.append(measure_recovery(self.problem, handed_over, frozen.state, *moments))

        oracle = self.problem.oracle_for("mitigation")
        if isinstance(oracle, MitigationOracle):
            oracle.on_working = measure
        verdict = self._without_late_changes(Verdict.from_answer(oracle.evaluate(None)), frozen)
        verdict = with_collateral(verdict, ending.collateral)
        if self.problem.level == "none" and verdict.passed:
            verdict = leave_alone_verdict(ending.collateral)
        for record in self.records:
            if record.name == "mitigation":
                record.verdict = verdict
                record.recovery = recoveries[0] if verdict.passed and recoveries else None
                return
        self.session.note("state at the end", repaired=verdict.passed, reasons=list(verdict.reasons))

    def _without_late_changes(self, verdict: Verdict, frozen: Freeze) -> Verdict:
        """The verdict, failed where another client has changed the system after the agent's part had ended."""
        late = frozen.late_changes(self.problem.kubernetes, self._preparation.capture(), self.cluster.written)
        if not late:
            return verdict
        reasons = (*(f"late change: {line}" for line in late), *(verdict.reasons if not verdict.passed else ()))
        return Verdict(False, 0.0, reasons, {**verdict.details, "late_changes": late})

    def close(self) -> None:
        """Release the cluster and all files; calling it again does nothing."""
        if self._closed:
            return
        self._closed = True
        if self._toolbox is not None:
            self._toolbox.close()
        try:
            if self._keeps_cluster:
                if self.problem.fault_injected:
                    self.problem.recover_fault()
                revoke(self.problem.kubernetes, self._access)
                self.problem.app.delete(self.cluster)
        finally:
            if "kubernetes" in self.problem.__dict__:
                self.problem.kubernetes.close()
            self.cluster.close()
            self.session.close()
            shutil.rmtree(self._folder, ignore_errors=True)


def describe(app: Application) -> str:
    """The description of an application for an agent."""
    return (
        f"You are the engineer on call for {app.name}, which runs in the Kubernetes namespace "
        f"{app.namespace!r}.\n\n{json.dumps(public_facts(app), indent=2)}"
    )


def public_facts(app: Application) -> dict[str, Any]:
    """What the metadata of an application says to those who operate it."""
    return {key: value for key, value in app.facts.items() if key not in ("Front Door",)}


def questions_of(stages: Iterable[str]) -> list[str]:
    """The questions of the stages, one line each."""
    return [f"- {STAGES[name].question} ({STAGES[name].example})" for name in stages]


def instructions_for(stages: Sequence[str]) -> str:
    """How an agent acts, and what it is asked."""
    questions = "\n".join(questions_of(stages))
    return (
        "Act by calling one of the actions at a time, in a fenced block:\n\n"
        '```\nkubectl("get pods --all-namespaces")\n```\n\n'
        f"You are asked, one after the other:\n{questions}\n\n"
        "Submit once per stage. You will learn how you did at the end."
    )
