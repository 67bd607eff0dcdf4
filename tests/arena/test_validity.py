"""Problems prove their validity as part of the tests: a few of them, or all with SREARENA_VERIFY=all."""

from __future__ import annotations

import os

import pytest

from srearena.conductor.problems.registry import ProblemRegistry, problem
from srearena.conductor.problems.scheduling import ScalePodZero
from srearena.conductor.verification import can_verify, verify
from tests.arena.stage import SHOP

SAMPLE = ["noop_hotel_reservation", "wrong_service_selector_hotel_reservation"]
pytestmark = [
    pytest.mark.kubectl,
    pytest.mark.skipif(bool(can_verify()), reason=can_verify() or "nothing is missing"),
]


def chosen() -> list[str]:
    return ProblemRegistry().get_problem_ids() if os.environ.get("SREARENA_VERIFY") == "all" else SAMPLE


@pytest.mark.parametrize("name", chosen())
def test_a_problem_is_valid(name: str) -> None:
    proof = verify(name)
    assert proof["valid"], proof["reasons"]


@problem("corner_shop_harmless", app=SHOP, service="api")
class Harmless(ScalePodZero):
    """Breaks nothing, and its remedy is none."""

    family = "harmless"
    fault = "internal_traffic_policy_local"
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
