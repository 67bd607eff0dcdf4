"""`srearena verify`: each problem proves that it is one.

The six points of validity, each a named check: healthy is content and quiet; broken is judged broken and can be seen;
doing nothing and restarting everything do not help; the reference remedy, run as the engineer on call would run it,
does; known cheats do not; and nothing an agent can read names the fault.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from srearena.conductor.actions.telemetry import Telemetry
from srearena.conductor.episode.environment import open_cluster
from srearena.conductor.episode.episode import Episode
from srearena.conductor.episode.spec import EpisodeSpec, Timeline
from srearena.conductor.grading.baseline import WORKLOADS
from srearena.conductor.oracles.base import Verdict
from srearena.conductor.oracles.mitigation import MitigationOracle
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.conductor.validity.leaks import leaks
from srearena.conductor.validity.symptoms import alerts, visible
from srearena.config import Config
from srearena.errors import SreArenaError
from srearena.service.kubernetes import Kubernetes

_REMEDY_SECONDS = 120.0
_AFTER_RESTART = 120.0
_PACE = 5.0
"""How fast time flows while the remedy is applied: operators wait for rollouts, and that need not take long here."""
_USUAL = Timeline()
_WITHOUT_A_PAST = Timeline(before=60.0, deployment=60.0)
"""For what is judged by what comes after the fault."""


@dataclass(slots=True)
class Proof:
    """What was found about one problem."""

    id: str
    checks: dict[str, bool] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def valid(self) -> bool:
        return bool(self.checks) and all(self.checks.values())

    def found(self, check: str, holds: bool, *reasons: str) -> None:
        self.checks[check] = self.checks.get(check, True) and holds
        if not holds:
            self.reasons += [f"{check}: {reason}" for reason in reasons[:5]]

    def as_document(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "valid": self.valid,
            "checks": self.checks,
            "reasons": self.reasons,
            "seconds": round(self.seconds, 2),
        }


def verify(problem_id: str, seed: int = 0, config: Config | None = None) -> dict[str, Any]:
    """The proof for one problem, as a document. Never raises for anything a problem does."""
    where = config or Config()
    began = monotonic()
    proof = Proof(problem_id)
    registry = ProblemRegistry()
    try:
        _main_line(registry.get_problem(problem_id), seed, proof, where)
        if "mitigation" in registry.get_problem(problem_id).stages:
            _after_restarting_everything(registry.get_problem(problem_id), seed, proof, where)
    except SreArenaError as failure:
        proof.found("environment", False, str(failure))
    except Exception as error:  # a mistake in a problem's own code is a finding about that problem
        proof.found("environment", False, f"{type(error).__name__}: {error}")
    proof.seconds = monotonic() - began
    return proof.as_document()


@contextmanager
def _episode(
    problem: Problem, seed: int, config: Config, stages: tuple[str, ...] | None = None, timeline: Timeline = _USUAL
) -> Iterator[Episode]:
    spec = EpisodeSpec(seed=seed, stages=stages, timeline=timeline, in_process=True, config=config)
    episode = Episode(problem, open_cluster(problem, spec), spec)
    try:
        yield episode
    finally:
        episode.close()


def _prepare(episode: Episode) -> None:
    """Set the stage, and let time pass only when it is told to: a proof must not depend on how busy a machine is."""
    episode.prepare()
    episode.cluster.set_speed(0)


def _judged(problem: Problem) -> Verdict:
    return Verdict.from_answer(problem.oracle_for("mitigation").evaluate(None))


def _content(problem: Problem) -> bool:
    """Whether the oracle would pass this: it has not to say all that it dislikes."""
    oracle = problem.oracle_for("mitigation")
    return not oracle.first_complaint() if isinstance(oracle, MitigationOracle) else _judged(problem).passed


def _main_line(problem: Problem, seed: int, proof: Proof, config: Config) -> None:
    with _episode(problem, seed, config, ("noop", *problem.stages)) as episode:
        _prepare(episode)
        telemetry = Telemetry(episode.cluster)
        try:
            _healthy(problem, telemetry, proof)
            if problem.level == "none":
                proof.found("nothing names the fault", *_leaks(episode))
                return
            episode.submit("No")
            _broken(problem, episode, telemetry, proof)
            proof.found("nothing names the fault", *_leaks(episode))
            if "mitigation" not in problem.stages:
                return
            _silenced(problem, proof)
            _remedied(problem, episode, proof)
            _deleted(problem, proof)
        finally:
            telemetry.close()


def _leaks(episode: Episode) -> tuple[bool, *tuple[str, ...]]:
    found = leaks(episode)
    return (not found, *found)


def _healthy(problem: Problem, telemetry: Telemetry, proof: Proof) -> None:
    oracle = problem.mitigation_oracle
    complaints: list[str] = []
    if isinstance(oracle, MitigationOracle):
        for check in oracle.checks:
            if not check.disruptive:
                complaints += check.complaints(problem)
    proof.found("healthy is content", not complaints, *complaints)
    fire = alerts(telemetry)
    proof.found("healthy is quiet", not fire, *fire)


def _broken(problem: Problem, episode: Episode, telemetry: Telemetry, proof: Proof) -> None:
    assert episode.kubeconfig is not None
    with Kubernetes(episode.kubeconfig) as api:
        seen = visible(problem, api, telemetry)
    proof.found("broken can be seen", bool(seen), "there is no symptom in objects, events, alerts or error rates")
    if "mitigation" not in problem.stages:
        return
    proof.found("doing nothing does not help", not _content(problem), "the oracle is content although nothing was done")


def _silenced(problem: Problem, proof: Proof) -> None:
    """Without load there are no errors to see, and still the system does not work."""
    problem.app.stop_workload(problem.cluster)
    proof.found("silencing the load does not help", not _content(problem), "the oracle is content without load")
    problem.app.start_workload(problem.cluster)


def _remedied(problem: Problem, episode: Episode, proof: Proof) -> None:
    if not problem.remedy:
        proof.found("the remedy heals", False, "there is no reference remedy")
        return
    episode.cluster.set_speed(_PACE)
    try:
        done = run_as_operator(problem.remedy, episode)
    finally:
        episode.cluster.set_speed(0)
    if done.returncode:
        proof.found("the remedy heals", False, f"the script failed: {done.stderr.strip()[-300:]}")
        return
    verdict = _judged(problem)
    proof.found("the remedy heals", verdict.passed, *verdict.reasons)


def run_as_operator(script: str, episode: Episode) -> subprocess.CompletedProcess[str]:
    """Run a shell script with the agent's identity and nothing else of this process."""
    words = ["bash", "-euo", "pipefail", "-c", script]
    # What a stopped kubectl still writes into its cache must not matter.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        environment = {"KUBECONFIG": str(episode.kubeconfig), "HOME": home, "PATH": os.environ["PATH"]}
        with subprocess.Popen(
            words,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                printed, errors = process.communicate(timeout=_REMEDY_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                printed, errors = process.communicate()
                errors += f"(stopped after {_REMEDY_SECONDS:g} s)"
        return subprocess.CompletedProcess(words, process.returncode, printed, errors)


def _deleted(problem: Problem, proof: Proof) -> None:
    """On the healed system: what passes without its workloads would have passed without them before, too."""
    for cheat, words in ((_scale_to_zero, "scaling to zero"), (_delete, "deleting the workload")):
        if not cheat(problem):
            continue
        proof.found(f"{words} does not help", not _content(problem), f"the oracle is content after {words}")


def _workloads(problem: Problem) -> list[tuple[str, str]]:
    named = [
        (resource, name)
        for name in problem.faulty_services
        for resource in WORKLOADS
        if problem.kubernetes.find(resource, name, problem.namespace) is not None
    ]
    if named:
        return named
    baseline = problem.baseline
    return [
        ("deployments.apps", obj["metadata"]["name"])
        for obj in (baseline.of("deployments.apps", namespace=problem.namespace) if baseline else ())
    ][:1]


def _scale_to_zero(problem: Problem) -> bool:
    targets = [(resource, name) for resource, name in _workloads(problem) if resource != "daemonsets.apps"]
    for resource, name in targets:
        problem.kubernetes.scale(resource, name, 0, problem.namespace)
    return bool(targets)


def _delete(problem: Problem) -> bool:
    targets = _workloads(problem)
    for resource, name in targets:
        problem.kubernetes.delete(resource, name, problem.namespace)
    return bool(targets)


def _after_restarting_everything(problem: Problem, seed: int, proof: Proof, config: Config) -> None:
    if problem.restart_is_a_remedy:
        return
    with _episode(problem, seed, config, timeline=_WITHOUT_A_PAST) as episode:
        _prepare(episode)
        for namespace in problem.app.namespaces:
            for resource in WORKLOADS:
                for obj in problem.kubernetes.list(resource, namespace):
                    problem.kubernetes.restart(resource, obj["metadata"]["name"], namespace)
        episode.cluster.wait(_AFTER_RESTART)
        proof.found(
            "restarting everything does not help", not _content(problem), "the oracle is content after restarts"
        )


def can_verify() -> str:
    """Why problems cannot be verified on this machine; empty if they can."""
    missing = [tool for tool in ("kubectl", "bash") if shutil.which(tool) is None]
    return f"{' and '.join(missing)} must be installed: reference remedies are shell scripts" if missing else ""
