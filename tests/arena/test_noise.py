"""Innocent changes: they leave the application healthy, and do not distinguish the fault's own change."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from srearena.conductor.actions.telemetry import Telemetry
from srearena.conductor.episode.episode import Episode
from srearena.conductor.episode.preparation import embedded_cluster
from srearena.conductor.episode.spec import EpisodeSpec, Timeline
from srearena.conductor.oracles.base import Verdict
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.conductor.problems.scheduling import AssignToNonExistentNode
from srearena.conductor.validity.symptoms import alerts
from srearena.config import Config
from srearena.generators.fault.authors import draw_author
from srearena.service.kubernetes import Kubernetes
from tests.arena.episodes import TIMELINE, shop_problem
from tests.arena.test_families import as_operator
from tests.selection import rotating_member, rotation_seed

APPLICATIONS = (
    "hotel_reservation",
    "social_network",
    "astronomy_shop",
    "blueprint_hotel_reservation",
    "fleetcast",
    "online_boutique",
    "train_ticket",
)


@contextmanager
def noisy(problem: Problem, seed: int, timeline: Timeline = TIMELINE) -> Iterator[Episode]:
    spec = EpisodeSpec(seed, timeline=timeline, noise=True, in_process=True, config=Config())
    episode = Episode(problem, embedded_cluster(problem, spec), spec)
    try:
        episode.prepare()
        episode.cluster.set_speed(0)
        yield episode
    finally:
        episode.close()


def test_noise_leaves_an_application_healthy() -> None:
    """One application a day, with another seed; `SREARENA_SEED` repeats a day's selection."""
    seed = rotation_seed()
    app = rotating_member(APPLICATIONS, seed)
    problem = ProblemRegistry().get_problem(f"noop_{app}")
    with noisy(problem, seed, Timeline()) as episode:
        assert episode.noise is not None and len(episode.noise.performed) >= 5
        assert alerts(Telemetry(episode.cluster)) == []
        assert problem.mitigation_oracle is not None
        verdict = Verdict.from_answer(problem.mitigation_oracle.evaluate(None))
        assert verdict.passed, verdict.reasons


def test_noise_is_never_counted_as_the_agents_collateral() -> None:
    with noisy(shop_problem(AssignToNonExistentNode), 5) as episode:
        episode.submit("Yes")
        assert episode.noise is not None and episode.noise.performed
        assert episode.grade().collateral == []


def _writes(api: Kubernetes, namespace: str) -> list[tuple[str, str, str]]:
    """Time, manager and object of every latest write to the objects that an operator changes."""
    return sorted(
        (entry["time"], entry["manager"], f"{resource}/{obj['metadata']['name']}")
        for resource in ("deployments", "services", "configmaps", "networkpolicies", "cronjobs", "resourcequotas")
        for obj in api.list(resource, namespace)
        for entry in obj["metadata"].get("managedFields") or ()
        if entry.get("subresource") != "status" and entry["manager"] != "kube-controller-manager"
    )


SEEDS = range(8)


def test_neither_the_newest_write_nor_its_manager_tells_the_fault() -> None:
    newest, managers, revisions = 0, Counter[str](), 0
    for seed in SEEDS:
        problem = shop_problem(AssignToNonExistentNode)
        with noisy(problem, seed):
            api = problem.kubernetes
            newest += _writes(api, problem.namespace)[-1][2] == "deployments/api"
            culprit = api.get("deployments", "api", problem.namespace)
            managers.update(entry["manager"] for entry in culprit["metadata"]["managedFields"])
            revisions += sum(
                int(obj["metadata"]["annotations"]["deployment.kubernetes.io/revision"]) > 1
                for obj in api.list("deployments", problem.namespace)
            )
    assert newest < len(SEEDS) / 4
    assert len(managers - Counter(["kubectl", "kube-controller-manager"])) >= 3
    assert revisions > 2 * len(SEEDS), "several workloads have more than one revision in every episode"


def test_authors_of_faults_and_of_noise_are_drawn_from_the_same_distribution() -> None:
    drawn = Counter(draw_author(random.Random(f"{seed}:author")).updates_as for seed in range(400))
    assert max(drawn.values()) < 400 * 0.3 and min(drawn.values()) > 0
    assert drawn["kubectl-edit"] < 400 * 0.25


@pytest.mark.kubectl
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
@pytest.mark.parametrize("seed", [2, 3, 9])
def test_the_reference_remedy_holds_whatever_revisions_noise_adds(seed: int) -> None:
    """An undo would go to a revision that still has the fault where an innocent revision followed it."""
    problem = shop_problem(AssignToNonExistentNode)
    with noisy(problem, seed) as episode:
        as_operator(episode, problem.remedy)
        verdict = Verdict.from_answer(problem.oracle_for("mitigation").evaluate(None))
        assert verdict.passed, verdict.reasons
