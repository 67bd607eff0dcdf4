"""Parsing of object names, and filters of ground truths."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from itbench_evaluations.identity import parse_entity, workload_stems
from itbench_evaluations.name_filters import compile_pattern


@pytest.mark.parametrize(
    ("written", "namespace", "kind", "name"),
    [
        ("otel-demo/Deployment/checkout", "otel-demo", "Deployment", "checkout"),
        ("Pod/checkout-1 uid 7f3c-11", None, "Pod", "checkout-1"),
        ("otel-demo/deployments.apps/ad (uid: 12)", "otel-demo", "Deployment", "ad"),
        ("`svc/ad`", None, "Service", "ad"),
        ("Pod/otel-demo/ad", "otel-demo", "Pod", "ad"),
        ("otel-demo/ad", "otel-demo", None, "ad"),
        ("ad", None, None, "ad"),
        ("otel-demo/Namespace/otel-demo", None, "Namespace", "otel-demo"),
        ("chaos-mesh/NetworkChaos/partition", "chaos-mesh", "NetworkChaos", "partition"),
        ("mesh/VirtualThing/x", "mesh", "VirtualThing", "x"),
    ],
)
def test_every_spelling_of_an_object_is_taken_apart(
    written: str, namespace: str | None, kind: str | None, name: str
) -> None:
    entity = parse_entity(written)
    assert (entity.namespace, entity.kind, entity.name) == (namespace, kind, name)


@pytest.mark.parametrize(
    ("name", "kind", "stem"),
    [
        ("checkout-6d5f7c9b8-x2v4z", "Pod", "checkout"),
        ("frontend-proxy-7c9d8f5b6-abcde", "Pod", "frontend-proxy"),
        ("valkey-cart-0", "Pod", "valkey-cart"),
        ("node-agent-x2v4z", "Pod", "node-agent"),
        ("checkout-6d5f7c9b8", "ReplicaSet", "checkout"),
        ("checkout-*", "Deployment", "checkout"),
        ("checkout-xxxxx", "Pod", "checkout"),
        # Names that only look a little like generated ones stay whole.
        ("frontend-proxy", "Pod", "frontend-proxy"),
        ("product-catalog", "Deployment", "product-catalog"),
        ("checkout-6d5f7c9b8-x2v4z", "Service", "checkout-6d5f7c9b8-x2v4z"),
        ("orders-postgres14", "ReplicaSet", "orders-postgres14"),
    ],
)
def test_generated_suffixes_are_not_part_of_a_workloads_name(name: str, kind: str, stem: str) -> None:
    assert workload_stems(name, kind)[-1] == stem


def test_a_filter_must_match_the_whole_name() -> None:
    assert compile_pattern(r"frontend\b").matches("frontend")
    assert not compile_pattern(r"frontend\b").matches("frontend-proxy")


def test_what_is_no_regular_expression_is_read_as_a_glob_and_says_so() -> None:
    anything = compile_pattern("*.*")
    assert anything.problem and "glob" in anything.problem
    assert anything.matches("checkout-1")
    cart = compile_pattern("cart-[")
    assert cart.problem and cart.matches("cart-[") and not cart.matches("cart-1")
    assert compile_pattern("*-cart").matches("valkey-cart")
    assert not compile_pattern("*-cart").matches("valkey-cart-0")


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "pattern", [r"(a+)+$", r"(a|aa)*b", r"(.*)*(.*)*(.*)*x", r"a{0,500}a{0,500}b", r"(?=(a+)+b)a*c"]
)
def test_catastrophic_filters_answer_at_once(pattern: str) -> None:
    started = time.perf_counter()
    assert not compile_pattern(pattern).matches("a" * 250 + "!")
    assert time.perf_counter() - started < 2.0


def test_filters_too_large_to_run_are_bounded_too() -> None:
    huge = compile_pattern("(a{1000}){1000}")
    assert huge.problem and "too large" in huge.problem


_ATOMS = st.sampled_from(
    ["a", "b", "-", ".", "[ab]", "[^a]", r"\w", r"\d", r"\b", "(a|b)", "(?:ab)?", "(?!b)", "(?=a)", "x{1,2}"]
)
_PATTERNS = st.recursive(
    _ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]}|{pair[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{1,2}", "*?"])).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
    ),
    max_leaves=6,
)


@given(_PATTERNS, st.text(alphabet="ab-x1", max_size=8))
def test_our_machine_and_pythons_mean_the_same_by_a_pattern(pattern: str, name: str) -> None:
    expected = re.fullmatch(pattern, name) is not None
    compiled = compile_pattern(pattern)
    assert compiled.problem is None
    assert compiled.matches(name) == expected


@given(st.text(max_size=20), st.text(max_size=20))
def test_any_text_is_a_filter_that_answers(pattern: str, name: str) -> None:
    assert compile_pattern(pattern).matches(name) in (True, False)
