"""`srearena verify`: proves that a problem is valid.

Each point is a named check: the healthy system passes and fires no alert; the fault fails the oracle and has symptoms;
doing nothing and restarting everything do not repair it; the reference remedy, run with the agent's identity, does;
known cheats do not; and nothing that an agent can read names the fault.
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
from srearena.conductor.validity.symptoms import alerts, visible_symptoms
from srearena.config import Config
from srearena.errors import SreArenaError
from srearena.service.kubernetes import Kubernetes

_REMEDY_SECONDS = 120.0
"""Real seconds; the longest reference remedy takes about a quarter of it."""
_AFTER_RESTART = 120.0
_REMEDY_SPEED = 5.0
"""Speed of the clock while the remedy runs, so that waiting for rollouts takes less real time."""
_TIMELINE = Timeline()
_SHORT_TIMELINE = Timeline(before=60.0, deployment=60.0)
"""For checks that need no history before the fault."""


@dataclass(slots=True)
class Proof:
    """The results of all checks on one problem."""

    id: str
    checks: dict[str, bool] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def valid(self) -> bool:
        return bool(self.checks) and all(self.checks.values())

    def record(self, check: str, holds: bool, *reasons: str) -> None:
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
    """Verify one problem and return the proof as a document. An error in a problem is recorded, not raised."""
    backend = config or Config()
    began = monotonic()
    proof = Proof(problem_id)
    registry = ProblemRegistry()
    try:
        _verify_episode(registry.get_problem(problem_id), seed, proof, backend)
        if "mitigation" in registry.get_problem(problem_id).stages:
            _verify_restarts(registry.get_problem(problem_id), seed, proof, backend)
    except SreArenaError as failure:
        proof.record("environment", False, str(failure))
    except Exception as error:  # an error in a problem's code is recorded against that problem
        proof.record("environment", False, f"{type(error).__name__}: {error}")
    proof.seconds = monotonic() - began
    return proof.as_document()


@contextmanager
def _episode(
    problem: Problem, seed: int, config: Config, stages: tuple[str, ...] | None = None, timeline: Timeline = _TIMELINE
) -> Iterator[Episode]:
    spec = EpisodeSpec(seed=seed, stages=stages, timeline=timeline, in_process=True, config=config)
    episode = Episode(problem, open_cluster(problem, spec), spec)
    try:
        yield episode
    finally:
        episode.close()


def _prepare(episode: Episode) -> None:
    """Prepare the episode and stop its clock, so that a proof does not depend on the load of the machine."""
    episode.prepare()
    episode.cluster.set_speed(0)


def _verdict(problem: Problem) -> Verdict:
    return Verdict.from_answer(problem.oracle_for("mitigation").evaluate(None))


def _passes(problem: Problem) -> bool:
    """Whether the oracle passes; stops at the first complaint."""
    oracle = problem.oracle_for("mitigation")
    return not oracle.first_complaint() if isinstance(oracle, MitigationOracle) else _verdict(problem).passed


def _verify_episode(problem: Problem, seed: int, proof: Proof, config: Config) -> None:
    with _episode(problem, seed, config, ("noop", *problem.stages)) as episode:
        _prepare(episode)
        telemetry = Telemetry(episode.cluster)
        try:
            _verify_healthy(problem, telemetry, proof)
            if problem.level == "none":
                proof.record("nothing names the fault", *_leaks(episode))
                return
            episode.submit("No")
            _verify_broken(problem, episode, telemetry, proof)
            proof.record("nothing names the fault", *_leaks(episode))
            if "mitigation" not in problem.stages:
                return
            _verify_without_load(problem, proof)
            _verify_remedy(problem, episode, proof)
            _verify_deletions(problem, proof)
        finally:
            telemetry.close()


def _leaks(episode: Episode) -> tuple[bool, *tuple[str, ...]]:
    matches = leaks(episode)
    return (not matches, *matches)


def _verify_healthy(problem: Problem, telemetry: Telemetry, proof: Proof) -> None:
    oracle = problem.mitigation_oracle
    complaints: list[str] = []
    if isinstance(oracle, MitigationOracle):
        for check in oracle.checks:
            if not check.disruptive:
                complaints += check.complaints(problem)
    proof.record("the healthy system passes", not complaints, *complaints)
    firing = alerts(telemetry)
    proof.record("the healthy system fires no alert", not firing, *firing)


def _verify_broken(problem: Problem, episode: Episode, telemetry: Telemetry, proof: Proof) -> None:
    assert episode.kubeconfig is not None
    with Kubernetes(episode.kubeconfig) as api:
        symptoms = visible_symptoms(problem, api, telemetry)
    proof.record("the fault has symptoms", bool(symptoms), "no symptom in objects, events, alerts or error rates")
    if "mitigation" not in problem.stages:
        return
    proof.record("doing nothing does not help", not _passes(problem), "the oracle passes although nothing was done")


def _verify_without_load(problem: Problem, proof: Proof) -> None:
    """Without load there are no errors, and still the oracle must fail."""
    problem.app.stop_workload(problem.cluster)
    proof.record("silencing the load does not help", not _passes(problem), "the oracle passes without load")
    problem.app.start_workload(problem.cluster)


def _verify_remedy(problem: Problem, episode: Episode, proof: Proof) -> None:
    if not problem.remedy:
        proof.record("the remedy repairs", False, "there is no reference remedy")
        return
    episode.cluster.set_speed(_REMEDY_SPEED)
    try:
        finished = run_as_operator(problem.remedy, episode)
    finally:
        episode.cluster.set_speed(0)
    if finished.returncode:
        proof.record("the remedy repairs", False, f"the script failed: {finished.stderr.strip()[-300:]}")
        return
    verdict = _verdict(problem)
    proof.record("the remedy repairs", verdict.passed, *verdict.reasons)


def run_as_operator(script: str, episode: Episode) -> subprocess.CompletedProcess[str]:
    """Run a shell script with the agent's identity and an otherwise empty environment."""
    command = ["bash", "-euo", "pipefail", "-c", script]
    # A killed kubectl may still write to its cache.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        environment = {"KUBECONFIG": str(episode.kubeconfig), "HOME": home, "PATH": os.environ["PATH"]}
        with subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                output, errors = process.communicate(timeout=_REMEDY_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                output, errors = process.communicate()
                errors += f"(stopped after {_REMEDY_SECONDS:g} s)"
        return subprocess.CompletedProcess(command, process.returncode, output, errors)


def _verify_deletions(problem: Problem, proof: Proof) -> None:
    """On the repaired system: an oracle that passes without the workloads would also have passed before the repair."""
    for cheat, description in ((_scale_to_zero, "scaling to zero"), (_delete, "deleting the workload")):
        if not cheat(problem):
            continue
        proof.record(f"{description} does not help", not _passes(problem), f"the oracle passes after {description}")


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


def _verify_restarts(problem: Problem, seed: int, proof: Proof, config: Config) -> None:
    if problem.restart_is_a_remedy:
        return
    with _episode(problem, seed, config, timeline=_SHORT_TIMELINE) as episode:
        _prepare(episode)
        for namespace in problem.app.namespaces:
            for resource in WORKLOADS:
                for obj in problem.kubernetes.list(resource, namespace):
                    problem.kubernetes.restart(resource, obj["metadata"]["name"], namespace)
        episode.cluster.wait(_AFTER_RESTART)
        proof.record("restarting everything does not help", not _passes(problem), "the oracle passes after restarts")


def can_verify() -> str:
    """The reason why problems cannot be verified on this machine; empty where they can."""
    missing = [tool for tool in ("kubectl", "bash") if shutil.which(tool) is None]
    return f"{' and '.join(missing)} must be installed: reference remedies are shell scripts" if missing else ""
