"""Problems prove their validity as part of the tests: one of every family, or all with SREARENA_VERIFY=all.

Members of a family differ in the service they strike; `srearena verify --all` proves each of them.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest

from srearena.conductor.problems.registry import ProblemRegistry, problem
from srearena.conductor.problems.scheduling import ScalePodZero
from srearena.conductor.validity.verification import can_verify, verify
from tests.arena.stage import SHOP

pytestmark = [
    pytest.mark.kubectl,
    pytest.mark.skipif(bool(can_verify()), reason=can_verify() or "nothing is missing"),
]


def everything() -> list[str]:
    """All problems but those of the tests themselves."""
    return [name for name in ProblemRegistry().get_problem_ids() if not name.startswith("corner_shop_")]


def chosen() -> list[str]:
    """One of every family, and one of every application."""
    if os.environ.get("SREARENA_VERIFY") == "all":
        return everything()
    registry = ProblemRegistry()
    problems = [registry.get_problem(name) for name in everything()]
    families = {one.family: one.id for one in problems}
    applications = {one.app.name: one.id for one in problems if one.level == "none"}
    return sorted({*families.values(), *applications.values()})


@pytest.fixture(autouse=True)
def tidy() -> Iterator[None]:
    """A cluster is one large circle: a hundred of them, left to a collector that comes rarely, fill the memory."""
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
    """Breaks nothing, and its remedy is none."""

    family = "harmless"
    fault = "resource_request"
    remedy = "kubectl get fault-injector"


def test_a_problem_that_is_none_is_found_out() -> None:
    proof = verify("corner_shop_harmless")
    assert not proof["valid"]
    wrong = {name for name, holds in proof["checks"].items() if not holds}
    assert {"doing nothing does not help", "silencing the load does not help", "the remedy heals"} <= wrong
    assert proof["checks"]["healthy is content"] and proof["checks"]["deleting the workload does not help"] is True


def test_a_problem_that_cannot_be_staged_says_so() -> None:
    proof = verify("there_is_no_such_problem")
    assert proof["checks"] == {"environment": False}
    assert "there is no problem called" in proof["reasons"][0]
