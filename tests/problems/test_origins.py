"""Metadata of origin problems: an origin, a propagation path, and a remedy."""

from __future__ import annotations

import re

import pytest

from srearena.conductor.problems.injected import InjectedProblem
from srearena.conductor.problems.metadata import Entity
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
    assert bool(problem.remedy) == problem.repairable
    for text in (problem.explanation, problem.remedy):
        assert not re.search(r"\{(ns|service|client|schema|image|key|config_map|flag|backend)\}", text), text
    if problem.origins and problem.propagation:
        members = {entity for origin in problem.origins for entity in origin.members}
        assert problem.propagation[0][0] in members, "the propagation starts at an origin"
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
    assert REGISTRY.get_problem(name).ground_truth.as_document()["roots"] == [root]


@pytest.mark.parametrize(
    ("name", "members"),
    [
        ("namespace_memory_limit", {"ResourceQuota/memory-limit-quota", "Deployment/search"}),
        (
            "psa_restricted_blocks_recreation_hotel_reservation",
            {"Namespace/hotel-reservation", "Deployment/recommendation"},
        ),
        ("configmap_drift_hotel_reservation", {"ConfigMap/geo-config", "Deployment/geo"}),
        ("network_policy_block", {"NetworkPolicy/recommendation", "Deployment/recommendation"}),
        ("stale_coredns_config_social_network", {"ConfigMap/coredns", "Deployment/coredns"}),
        ("wrong_service_selector_social_network", {"Service/user-service", "Deployment/user-service"}),
        ("kafka_producer_leak", {"Deployment/checkout", "Deployment/kafka"}),
        ("operator_overload_replicas", {"TidbCluster/basic", "StatefulSet/basic-tidb"}),
        ("pod_kill", {f"{kind}/pod-recycler" for kind in ("Deployment", "Role", "RoleBinding", "ServiceAccount")}),
    ],
)
def test_an_origin_holds_what_was_changed_and_what_misbehaves(name: str, members: set[str]) -> None:
    (origin,) = REGISTRY.get_problem(name).origins
    assert {f"{entity.kind}/{entity.name}" for entity in origin.members} == members


def test_what_only_contributes_is_no_origin() -> None:
    origins = REGISTRY.get_problem("gc_capacity_degradation").origins
    assert len(origins) == 7
    assert all(entity.kind == "Deployment" for origin in origins for entity in origin.members)
    contributing = {(entity.kind, entity.name) for origin in origins for entity in origin.contributing}
    assert contributing == {("LimitRange", "compute-defaults"), ("Deployment", "user-service")}


@pytest.mark.parametrize("name", REGISTRY.get_problem_ids())
def test_every_name_of_an_origin_is_complete(name: str) -> None:
    for origin in REGISTRY.get_problem(name).origins:
        assert origin.changed
        for entity in (*origin.members, *origin.contributing):
            assert entity.name and "{" not in str(entity)
            assert Entity.parse(f"{entity.kind}/{entity.name}", entity.namespace) == entity
