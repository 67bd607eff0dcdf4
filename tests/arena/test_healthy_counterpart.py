"""What an agent can read differs from a healthy counterpart with the same seed only by consequences of the fault."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from srearena.conductor.episode.environment import open_cluster
from srearena.conductor.episode.episode import Episode
from srearena.conductor.episode.spec import EpisodeSpec, Timeline
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.conductor.validity.healthy_counterpart import View, healthy_counterpart, traces_of_the_harness, view_of
from srearena.config import Config
from tests.arena.episodes import PORT, TIMELINE, ZERO
from tests.selection import rotating_member, rotation_seed


@contextmanager
def broken(problem_id: str, spec: EpisodeSpec) -> Iterator[Episode]:
    problem = ProblemRegistry().get_problem(problem_id, spec.variant)
    episode = Episode(problem, open_cluster(problem, spec), spec)
    try:
        episode.prepare()
        yield episode
    finally:
        episode.close()


def spec_of(seed: int, timeline: Timeline = TIMELINE) -> EpisodeSpec:
    return EpisodeSpec(seed, timeline=timeline, in_process=True, config=Config())


def traces(problem_id: str, spec: EpisodeSpec) -> list[str]:
    with healthy_counterpart(problem_id, spec) as counterpart:
        counterpart.cluster.set_speed(0)
        healthy = view_of(counterpart)
    with broken(problem_id, spec) as episode:
        episode.cluster.set_speed(0)
        return traces_of_the_harness(episode.problem, view_of(episode), healthy)


@pytest.mark.parametrize("problem_id", [PORT, ZERO])
def test_a_small_application(problem_id: str) -> None:
    assert traces(problem_id, spec_of(4)) == []


def test_a_problem_of_the_catalogue() -> None:
    """Another one every day; `SREARENA_SEED` repeats a day's selection."""
    seed = rotation_seed()
    names = [name for name in ProblemRegistry().get_problem_ids() if not name.startswith(("corner_shop_", "noop_"))]
    assert traces(rotating_member(names, seed), spec_of(seed, Timeline(before=120.0, after=180.0))) == []


def test_what_only_the_harness_leaves_is_reported() -> None:
    with broken(PORT, spec_of(4)) as episode:
        episode.cluster.set_speed(0)
        healthy = view_of(episode)
        api, namespace = episode.problem.kubernetes, episode.problem.namespace
        metadata = {"name": "notes", "labels": {"experiment": "7"}}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}}
        api.create(body, namespace, manager="experiment-driver")
        found = traces_of_the_harness(episode.problem, view_of(episode), healthy)
    assert found == [
        f"ConfigMap notes in {namespace} differs",
        "experiment-driver writes only beside the fault",
        "experiment among labels only beside the fault: notes",
    ]
    assert traces_of_the_harness(episode.problem, View(metrics={"trigger_state"}), View()) == [
        "the metric trigger_state exists only beside the fault"
    ]
    lines = {("kube-system", "kube-scheduler"): {"E# experiment started": "E0101 experiment started"}}
    assert traces_of_the_harness(episode.problem, View(log_lines=lines), View()) == [
        "kube-scheduler in kube-system logs only beside the fault: E0101 experiment started"
    ]
