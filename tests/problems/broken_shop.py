"""A problem prepared on its real application, so that tests can try complete and partial remedies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from srearena.conductor.episode.preparation import Preparation, embedded_cluster
from srearena.conductor.episode.spec import EpisodeSpec, Timeline
from srearena.conductor.oracles.base import Verdict
from srearena.conductor.oracles.mitigation import MitigationOracle
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.service.kubernetes import CommandResult

_TIMELINE = Timeline(before=120, after=120)


@contextmanager
def broken(problem_id: str) -> Iterator[Problem]:
    """The problem, its application deployed and under load, its fault injected."""
    problem = ProblemRegistry().get_problem(problem_id)
    cluster = embedded_cluster(problem, EpisodeSpec(1, timeline=_TIMELINE, in_process=True))
    try:
        preparation = Preparation(problem, cluster, _TIMELINE)
        preparation.deploy()
        preparation.settle()
        oracle = problem.mitigation_oracle
        assert isinstance(oracle, MitigationOracle)
        complaints = [line for check in oracle.checks if not check.disruptive for line in check.complaints(problem)]
        assert not complaints, "a healthy system is to be content"
        preparation.inject_fault()
        yield problem
    finally:
        problem.kubernetes.close()
        cluster.close()


def judged(problem: Problem) -> Verdict:
    return Verdict.from_answer(problem.oracle_for("mitigation").evaluate(None))


def names(verdict: Verdict) -> set[str]:
    """The names of the failing checks."""
    return {reason.partition(":")[0] for reason in verdict.reasons} if not verdict.passed else set()


def typed(problem: Problem, deployment: str, *command: str) -> CommandResult:
    """Run a command in a running pod of a Deployment."""
    wanted = problem.kubernetes.get("deployments", deployment, problem.namespace)["spec"]["selector"]["matchLabels"]
    labels = ",".join(f"{key}={value}" for key, value in wanted.items())
    pods = problem.kubernetes.list("pods", problem.namespace, labels=labels)
    running = next(pod for pod in pods if pod["status"]["phase"] == "Running")
    return problem.kubernetes.exec(running["metadata"]["name"], list(command), problem.namespace)
