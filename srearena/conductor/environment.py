"""Which cluster an episode gets: an embedded one of its own, or the real one that the configuration names."""

from __future__ import annotations

from pathlib import Path

from srearena.cluster.base import TelemetryEndpoints
from srearena.cluster.kubernetes import KubernetesCluster
from srearena.conductor.errors import ProblemError
from srearena.conductor.problems.base import Problem
from srearena.conductor.staging import TimeKeeper, Timeline, embedded_cluster
from srearena.config import Config


def open_cluster(
    problem: Problem, seed: int, timeline: Timeline, config: Config, *, in_process: bool = False
) -> TimeKeeper:
    """A cluster for the problem; ProblemError where it cannot run there."""
    place = "embedded" if config.embedded else "kubernetes"
    if place not in problem.runs_on:
        raise ProblemError(f"{problem.id} does not run on {place}: it runs on {', '.join(problem.runs_on)}")
    if config.embedded:
        return embedded_cluster(problem, seed, timeline, in_process=in_process)
    told = config.telemetry
    telemetry = TelemetryEndpoints(**told.model_dump()) if told is not None else None
    kubeconfig = Path(config.kubeconfig).expanduser() if config.kubeconfig else None
    return TimeKeeper(KubernetesCluster(kubeconfig, name=config.k8s_host, telemetry=telemetry))
