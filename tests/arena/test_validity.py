"""Problems prove their validity as part of the tests: some of every application and level, or all of them.

All with SREARENA_VERIFY=all in the environment.
"""

from __future__ import annotations

import os

import pytest

from srearena.conductor.problems.registry import ProblemRegistry, problem
from srearena.conductor.problems.scheduling import ScalePodZero
from srearena.conductor.verification import can_verify, verify
from tests.arena.stage import SHOP

SAMPLE = [
    "noop_blueprint_hotel_reservation",
    "noop_online_boutique",
    "noop_train_ticket",
    "wrong_service_selector_hotel_reservation",
    "misconfig_app_hotel_res",
    "network_policy_block",
    "pvc_claim_mismatch",
    "search_rate_retry_collapse_hotel_reservation",
    "scale_pod_zero_social_net",
    "kubelet_crash",
    "astronomy_shop_payment_service_failure",
    "operator_non_existent_storage",
]
pytestmark = [
    pytest.mark.kubectl,
    pytest.mark.skipif(bool(can_verify()), reason=can_verify() or "nothing is missing"),
]


def everything() -> list[str]:
    """All problems but those of the tests themselves."""
    return [name for name in ProblemRegistry().get_problem_ids() if not name.startswith("corner_shop_")]


def test_the_sample_has_every_application_and_level() -> None:
    registry = ProblemRegistry()
    summaries = {name: registry.get_problem(name).summary() for name in everything()}
    sampled = [summaries[name] for name in SAMPLE]
    assert {one.application for one in sampled} == {one.application for one in summaries.values()}
    assert {one.level for one in sampled} == {one.level for one in summaries.values()}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", everything() if os.environ.get("SREARENA_VERIFY") == "all" else SAMPLE)
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
