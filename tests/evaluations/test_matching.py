"""Matching of names to groups of the ground truth, under each policy."""

from __future__ import annotations

from typing import Any

import pytest

from itbench_evaluations import Matcher, Policy, load_truths, parse_ground_truth
from itbench_evaluations.matching import Tier

from .samples import SHOP

TRUTHS = load_truths(SHOP).truths
STRICT, WORKLOAD, LENIENT = Policy.STRICT, Policy.WORKLOAD, Policy.LENIENT


def groups(*rows: dict[str, Any], aliases: list[list[str]] | None = None) -> Any:
    return parse_ground_truth({"groups": list(rows), "aliases": aliases or []}, default_id="1")


@pytest.mark.parametrize(
    ("incident", "name", "group", "policies"),
    [
        ("1", "shop/ConfigMap/flags", "flags-1", {STRICT, WORKLOAD, LENIENT}),
        ("1", "ConfigMap/flags uid 12-34", "flags-1", {STRICT, WORKLOAD, LENIENT}),
        ("1", "shop/cm/flags", "flags-1", {STRICT, WORKLOAD, LENIENT}),
        ("1", "shop/Pod/cart-6d5f7c9b8-x2v4z", "cart-pod-1", {STRICT, WORKLOAD, LENIENT}),
        ("1", "shop/Service/cart", "cart-service-1", {STRICT, WORKLOAD, LENIENT}),
        ("1", "shop/Deployment/cart", "cart-pod-1", {WORKLOAD, LENIENT}),
        ("1", "shop/ReplicaSet/cart-6d5f7c9b8", "cart-pod-1", {WORKLOAD, LENIENT}),
        ("1", "shop/Deployment/checkout", "checkout-service-1", {WORKLOAD, LENIENT}),
        ("1", "shop/Pod/checkout-6d5f7c9b8-x2v4z", "checkout-service-1", {WORKLOAD, LENIENT}),
        ("1", "shop/checkout", "checkout-service-1", {LENIENT}),
        ("1", "checkout", "checkout-service-1", {LENIENT}),
        ("1", "shop/Deployment/checkoutservice", "checkout-service-1", {LENIENT}),
        ("1", "shop/Service/Checkout", "checkout-service-1", {WORKLOAD, LENIENT}),
        # A filter that asks a Deployment for a suffix its name never has.
        ("2", "shop/Deployment/payment", "payment-deployment-1", {WORKLOAD, LENIENT}),
        # Not these, under any policy.
        ("1", "other/ConfigMap/flags", None, set()),
        ("1", "shop/Secret/flags", None, set()),
        ("1", "shop/ConfigMap/flags-2", None, set()),
        ("1", "shop/Service/cart-api", None, set()),
        ("1", "shop/Pod/frontend-proxy-6d5f7c9b8-x2v4z", None, set()),
        ("1", "", None, set()),
    ],
)
def test_a_name_denotes_a_group_under_these_policies(
    incident: str, name: str, group: str | None, policies: set[Policy]
) -> None:
    for policy in Policy:
        found = Matcher(TRUTHS[incident], policy).resolve(name)
        assert found.group == (group if policy in policies else None), policy


def test_a_pod_filter_means_its_own_workload_not_one_whose_name_goes_on() -> None:
    matcher = Matcher(TRUTHS["2"])
    assert matcher.resolve("shop/Pod/frontend-6d5f7c9b8-x2v4z").group == "frontend-pod-1"
    assert matcher.resolve("shop/Pod/frontend-proxy-6d5f7c9b8-x2v4z").group == "proxy-pod-1"
    assert matcher.resolve("shop/Pod/frontend-proxy").group == "proxy-pod-1"
    assert matcher.resolve("shop/Pod/frontend-cache-6d5f7c9b8-x2v4z").group is None


def test_aliases_and_workloads_form_components() -> None:
    shop = Matcher(TRUTHS["1"], STRICT)
    assert shop.component_of["cart-pod-1"] == shop.component_of["cart-service-1"]
    apart = groups(
        {"id": "a-pod", "kind": "Pod", "filter": ["a-.*"]},
        {"id": "a-svc", "kind": "Service", "filter": [r"a\b"]},
        {"id": "a-deploy", "kind": "Deployment", "name": "a", "root_cause": True},
    )
    assert len(set(Matcher(apart, STRICT).component_of.values())) == 3
    assert set(Matcher(apart, WORKLOAD).component_of.values()) == {"a-deploy"}


def test_the_same_selector_twice_is_one_component_under_every_policy() -> None:
    truth = groups(
        {"id": "gateway", "kind": "Service", "filter": ["gw"]},
        {"id": "gateway-root", "kind": "Service", "filter": ["gw"], "root_cause": True},
    )
    for policy in Policy:
        assert Matcher(truth, policy).resolve("Service/gw").is_root


def test_an_ambiguous_match_is_reported() -> None:
    truth = groups(
        {"id": "one", "kind": "ConfigMap", "filter": ["app-.*"], "root_cause": True},
        {"id": "two", "kind": "ConfigMap", "filter": [".*-config"]},
    )
    found = Matcher(truth).resolve("ConfigMap/app-config")
    assert found.group and found.ambiguous_with
    assert {found.component, *found.ambiguous_with} == {"one", "two"}


def test_a_chaos_schedule_is_its_experiment_when_lenient() -> None:
    truth = groups(
        {"id": "chaos", "kind": "NetworkChaos", "namespace": "mesh", "filter": ["partition"], "root_cause": True}
    )
    assert Matcher(truth, LENIENT).resolve("mesh/Schedule/partition").is_root
    assert not Matcher(truth, WORKLOAD).resolve("mesh/Schedule/partition").is_root


def test_names_that_cluster_scoped_objects_get_do_not_need_a_namespace() -> None:
    truth = groups({"id": "ns", "kind": "Namespace", "namespace": None, "filter": ["shop"], "root_cause": True})
    for written in ("Namespace/shop", "shop/Namespace/shop", "/Namespace/shop"):
        assert Matcher(truth, STRICT).resolve(written).tier is Tier.EXACT
