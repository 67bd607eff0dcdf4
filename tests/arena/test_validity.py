"""Problems prove their validity as part of the tests: a slice of the families that changes every day.

Members of a family differ in the faulty service. Within `PARTS` days every family is proved, each time with another
member. SREARENA_SEED repeats a day's selection; `scripts/test --all-problems` and `srearena verify --all` prove all.
"""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Iterable, Iterator

import pytest

from srearena.conductor.problems.registry import ProblemRegistry, problem
from srearena.conductor.problems.scheduling import ScalePodZero
from srearena.conductor.validity.verification import can_verify, verify
from tests.arena.episodes import SHOP
from tests.selection import all_problems, rotating_member, rotating_slice, rotation_seed

PARTS = 30
"""Days after which every family has had its turn: with a proof of each level and application, a minute of one core."""

pytestmark = [
    pytest.mark.kubectl,
    pytest.mark.skipif(bool(can_verify()), reason=can_verify() or "nothing is missing"),
]


def everything() -> list[str]:
    """All problems except those that tests register."""
    return [name for name in ProblemRegistry().get_problem_ids() if not name.startswith("corner_shop_")]


def families(names: Iterable[str]) -> dict[str, list[str]]:
    """The problems of each family; hand-made incidents have little in common, so each is one of its own."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in names:
        family = ProblemRegistry().get_problem(name).family
        found[name if family == "incident" else family].append(name)
    return found


def chosen() -> list[str]:
    """One member of every `PARTS`-th family, and members that bring a level or an application which is left out."""
    if all_problems():
        return everything()
    registry, seed = ProblemRegistry(), rotation_seed()
    properties: dict[str, set[str]] = {}
    for name in everything():
        one = registry.get_problem(name)
        properties[name] = {f"level {one.level}", f"application {one.app.name}"}
    taken = rotating_slice(families(properties), PARTS, seed)
    missing = set.union(*properties.values()).difference(*(properties[name] for name in taken))
    while missing:
        most = max(len(missing & properties[name]) for name in properties)
        taken.append(rotating_member([name for name in properties if len(missing & properties[name]) == most], seed))
        missing -= properties[taken[-1]]
    return sorted(taken)


@pytest.fixture(autouse=True)
def tidy() -> Iterator[None]:
    """Collect garbage: a cluster has reference cycles, and many uncollected clusters fill the memory."""
    yield
    gc.collect()


def test_what_is_proven_has_every_application_and_level() -> None:
    registry = ProblemRegistry()
    summaries = {name: registry.get_problem(name).summary() for name in everything()}
    proven = [summaries[name] for name in chosen()]
    assert {one.application for one in proven} == {one.application for one in summaries.values()}
    assert {one.level for one in proven} == {one.level for one in summaries.values()}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", chosen())
def test_a_problem_is_valid(name: str) -> None:
    proof = verify(name)
    assert proof["valid"], proof["reasons"]


@problem("corner_shop_harmless", app=SHOP, service="api", memory_request="1Mi")
class Harmless(ScalePodZero):
    """A problem without a fault and with a remedy that does nothing."""

    family = "harmless"
    fault = "resource_request"
    remedy = "kubectl get fault-injector"


def test_a_problem_that_is_none_is_found_out() -> None:
    proof = verify("corner_shop_harmless")
    assert not proof["valid"]
    wrong = {name for name, holds in proof["checks"].items() if not holds}
    assert {"doing nothing does not help", "silencing the load does not help", "the remedy repairs"} <= wrong
    assert proof["checks"]["the healthy system passes"]
    assert proof["scripts"]["repair, and delete the workload"] == "lost"


def test_a_problem_that_cannot_be_staged_says_so() -> None:
    proof = verify("there_is_no_such_problem")
    assert proof["checks"] == {"environment": False}
    assert "there is no problem called" in proof["reasons"][0]
