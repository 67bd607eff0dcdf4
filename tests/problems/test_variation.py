"""Seeds draw targets and parameters: everything about a problem follows, and ids keep their meaning."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from srearena.conductor.episode.spec import EpisodeSpec, Timeline
from srearena.conductor.problems import targets
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.injected import InjectedProblem
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.service.apps import find_application

REGISTRY = ProblemRegistry()
IDS = [name for name in REGISTRY.get_problem_ids() if not name.startswith("corner_shop_")]
SEEDS = range(10)
PAGE = Path(__file__).parents[2] / "docs" / "problem-families.md"


def facts(problem: Problem) -> tuple[object, ...]:
    options = repr(problem.options) if isinstance(problem, InjectedProblem) else ""
    return (problem.faulty_services, getattr(problem, "services", ()), options, problem.remedy)


@cache
def varying() -> dict[str, set[tuple[object, ...]]]:
    drawn = {name: {facts(REGISTRY.get_problem(name, seed)) for seed in SEEDS} for name in IDS}
    return {name: found for name, found in drawn.items() if len(found) > 1}


def test_at_least_half_of_all_problems_vary_their_target_or_parameters() -> None:
    classes = [entry.id for entry in REGISTRY.entries() if entry.kind is not None and entry.id in IDS]
    assert len(varying()) >= len(classes) / 2  # an incident in a file is one incident: its file has the arguments


@pytest.mark.parametrize("name", IDS)
def test_a_seed_always_draws_the_same_and_none_gives_the_catalogues_own(name: str) -> None:
    assert facts(REGISTRY.get_problem(name, 7)) == facts(REGISTRY.get_problem(name, 7))
    assert facts(REGISTRY.get_problem(name)) == facts(REGISTRY.get_problem(name, EpisodeSpec(7, fixed=True).variant))


@pytest.mark.parametrize("name", IDS)
def test_everything_follows_the_target(name: str) -> None:
    own = REGISTRY.get_problem(name)
    if not isinstance(own, InjectedProblem) or "service" not in own.varies or len(own.services) != 1:
        return
    for seed in SEEDS:
        problem = REGISTRY.get_problem(name, seed)
        assert isinstance(problem, InjectedProblem)
        target, former = problem.services[0], own.services[0]
        assert "{" not in problem.explanation
        if former in own.explanation:
            assert target in problem.explanation
        if f"/{former}\n" in f"{own.remedy}\n":
            assert target in problem.remedy
        if any(former == root.name for root in own.roots):
            assert any(target == root.name for root in problem.roots)
        assert {root.kind for root in problem.roots} == {root.kind for root in own.roots}


@pytest.mark.parametrize("app", ["hotel_reservation", "social_network", "astronomy_shop"])
def test_targets_and_their_callers_are_workloads_with_a_service(app: str) -> None:
    manifests = find_application(app).manifests
    workloads = {m.name for m in manifests if m.kind == "Deployment"}
    services = {m.name for m in manifests if m.kind == "Service"}
    arguments = {"app": app}
    for target in (*targets.components(arguments), *targets.stores(arguments)):
        assert target in workloads & services
        with_target = {**arguments, "service": target}
        for path in (*targets.callers(with_target), targets.caller(with_target)):
            assert set(path) <= workloads, (target, path)


def test_an_id_that_names_its_target_keeps_it() -> None:
    named = {
        "astronomy_shop_ad_service_failure": "ad",
        "postgres_lock_contention_product_catalog": "catalog-reindex",
        "search_rate_retry_collapse_hotel_reservation": "search",
        "valkey_auth_disruption": "valkey-cart",
    }
    for name, target in named.items():
        assert {getattr(REGISTRY.get_problem(name, seed), "services", ()) for seed in SEEDS} == {(target,)}


def test_the_moment_of_the_fault_varies_within_bounds() -> None:
    usual = Timeline()
    phases = [EpisodeSpec(seed).phases for seed in range(50)]
    assert len({phase.after for phase in phases}) == 50
    assert all(0.8 * usual.before <= phase.before <= 1.2 * usual.before for phase in phases)
    assert all(0.85 * usual.after <= phase.after <= 1.2 * usual.after for phase in phases)
    assert EpisodeSpec(3, fixed=True).phases == usual


def rows() -> list[str]:
    """The rows of the page's table: family, number of problems, what the seed draws."""
    families: dict[str, tuple[list[str], Problem]] = {}
    for name in varying():
        problem = REGISTRY.get_problem(name)
        families.setdefault(problem.family, ([], problem))[0].append(name)
    return [
        f"| `{family}` | {len(names)} | {', '.join(sorted({'target' if a == 'service' else a for a in kind.varies}))} |"
        for family, (names, kind) in sorted(families.items())
    ]


def test_the_page_lists_what_varies() -> None:
    assert "\n".join(rows()) in PAGE.read_text()
