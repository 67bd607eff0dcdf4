"""A healthy application stays healthy when every one of its workloads is restarted at once."""

from __future__ import annotations

import gc

import pytest

from srearena.conductor.actions.telemetry import Telemetry
from srearena.conductor.episode.episode import Episode
from srearena.conductor.episode.preparation import embedded_cluster
from srearena.conductor.episode.spec import EpisodeSpec, Timeline
from srearena.conductor.grading.baseline import WORKLOADS
from srearena.conductor.oracles.mitigation import MitigationOracle
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.conductor.validity.symptoms import alerts
from srearena.config import Config

REGISTRY = ProblemRegistry()
HEALTHY = [
    name
    for name in REGISTRY.get_problem_ids()
    if name.startswith("noop_") and REGISTRY.get_problem(name).level == "none"
]
RECOVERY = 420.0
"""Seconds until alerts about the restart itself have resolved: their windows are up to five minutes long."""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", HEALTHY)
@pytest.mark.daily_cases(2)
def test_restarting_everything_leaves_a_healthy_system_healthy(name: str) -> None:
    problem = REGISTRY.get_problem(name)
    spec = EpisodeSpec(1, timeline=Timeline(before=60, after=30, deployment=180), in_process=True, config=Config())
    episode = Episode(problem, embedded_cluster(problem, spec), spec)
    try:
        episode.prepare()
        episode.cluster.set_speed(0)
        for namespace in problem.app.namespaces:
            for resource in WORKLOADS:
                for obj in problem.kubernetes.list(resource, namespace):
                    problem.kubernetes.restart(resource, obj["metadata"]["name"], namespace)
        episode.cluster.wait(RECOVERY)
        oracle = problem.mitigation_oracle
        assert isinstance(oracle, MitigationOracle)
        assert not oracle.first_complaint()
        telemetry = Telemetry(episode.cluster)
        try:
            assert not alerts(telemetry)
        finally:
            telemetry.close()
    finally:
        episode.close()
        gc.collect()
