"""Metadata of origin problems: an origin, a propagation path, and a remedy."""

from __future__ import annotations

import re

import pytest

from srearena.conductor.problems.injected import InjectedProblem
from srearena.conductor.problems.nodes import KubeletCrash
from srearena.conductor.problems.origins import OriginProblem
from srearena.conductor.problems.registry import ProblemRegistry

REGISTRY = ProblemRegistry()
ORIGINS = [
    name for name in REGISTRY.get_problem_ids() if isinstance(REGISTRY.get_problem(name), OriginProblem | KubeletCrash)
]


@pytest.mark.parametrize("name", ORIGINS)
def test_a_problem_tells_where_it_comes_from_and_how_to_end_it(name: str) -> None:
    problem = REGISTRY.get_problem(name)
    assert isinstance(problem, InjectedProblem)
    assert problem.family
    assert problem.explanation
    assert bool(problem.remedy) == ("mitigation" in problem.stages)
    for text in (problem.explanation, problem.remedy):
        assert not re.search(r"\{(ns|service|client|schema|image|key|config_map|flag|backend)\}", text), text
    if problem.roots and problem.propagation:
        assert problem.propagation[0][0] in problem.roots
        for (_, reached), (source, _) in zip(
            problem.propagation[len(problem.roots) - 1 :], problem.propagation[len(problem.roots) :], strict=False
        ):
            assert reached == source, "trouble spreads step by step"


@pytest.mark.parametrize(
    ("name", "root"),
    [
        ("revoke_auth_mongodb-1", "hotel-reservation/Deployment/mongodb-geo"),
        ("stale_coredns_config_social_network", "kube-system/ConfigMap/coredns"),
        ("network_policy_block", "hotel-reservation/NetworkPolicy/recommendation"),
        ("admission_webhook_outage_hotel_reservation", "ValidatingWebhookConfiguration/pod-policy"),
        ("nightly_rebalance_oom_hotel_reservation", "kube-system/CronJob/vpa-updater"),
        ("operator_non_existent_storage", "tidb-cluster/TidbCluster/basic"),
        ("load_spike_rpc_retry_storm", "blueprint-hotel-reservation/ConfigMap/rpc"),
    ],
)
def test_ground_truth_names_the_origin_and_not_who_suffers(name: str, root: str) -> None:
    assert [group.id for group in REGISTRY.get_problem(name).ground_truth.roots] == [root]
