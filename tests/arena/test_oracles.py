"""Answers against the truth: aliases, partial credit, shapes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srearena.conductor.errors import BadSubmission
from srearena.conductor.grading.baseline import Baseline, collateral
from srearena.conductor.oracles.base import Verdict
from srearena.conductor.oracles.detection import yes_or_no
from srearena.conductor.oracles.localization import Aliases, parse_names


def workload(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"template": {"metadata": {"labels": {"app": name}}}}}


def owned(name: str, by: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "ownerReferences": [{"name": by, "controller": True}]}}


ALIASES = Aliases(
    [workload("cart"), workload("web")],
    [{"metadata": {"name": "cart-api"}, "spec": {"selector": {"app": "cart"}}}],
    [owned("cart-5d9c7b6f4-x2k8p", "cart-5d9c7b6f4"), owned("cart-5d9c7b6f4", "cart")],
)


@pytest.mark.parametrize(
    ("name", "component"),
    [
        ("cart", "cart"),
        ("deployment/cart", "cart"),
        ("shop/Deployment/cart", "cart"),
        ("cart-api", "cart"),
        ("cart-5d9c7b6f4", "cart"),
        ("cart-5d9c7b6f4-x2k8p", "cart"),
        ("cart-7c6d5f4b88-zzzzz", "cart"),
        ("coredns", "coredns"),
    ],
)
def test_one_component_goes_by_several_names(name: str, component: str) -> None:
    assert ALIASES.component(name) == component


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        (["a", "b", "a"], ["a", "b"]),
        ("a, b", ["a", "b"]),
        ("[a]", ["a"]),
        (None, []),
        ([], []),
        (("a",), ["a"]),
    ],
)
def test_names_are_taken_as_people_write_them(answer: Any, names: list[str]) -> None:
    assert parse_names(answer) == names


@pytest.mark.parametrize("answer", [1, {"a": 1}, [1], ["x"] * 101, [["a"]], 1.5])
def test_what_is_no_list_of_names_is_refused(answer: Any) -> None:
    with pytest.raises(BadSubmission):
        parse_names(answer)


@pytest.mark.parametrize(
    ("word", "value"), [("Yes", True), ("yes.", True), ("NO", False), (True, True), ("false", False)]
)
def test_yes_and_no(word: Any, value: bool) -> None:
    assert yes_or_no(word) is value


@pytest.mark.parametrize("word", ["maybe", "", None, 1, ["Yes"], {}])
def test_neither_yes_nor_no(word: Any) -> None:
    with pytest.raises(BadSubmission):
        yes_or_no(word)


@pytest.mark.parametrize(
    ("answer", "passed", "score"),
    [({"success": True}, True, 1.0), ({"success": False, "accuracy": 50.0}, False, 0.5), (True, True, 1.0)],
)
def test_verdicts_of_other_peoples_oracles(answer: Any, passed: bool, score: float) -> None:
    verdict = Verdict.from_answer(answer)
    assert (verdict.passed, verdict.score) == (passed, score)


objects = st.dictionaries(
    st.sampled_from([("configmaps", "ns", name) for name in "abc"]),
    st.builds(lambda value: {"kind": "ConfigMap", "metadata": {}, "data": {"x": value}}, st.sampled_from("12")),
)


@given(objects, objects)
def test_differences_are_none_only_between_equals(first: dict[Any, Any], second: dict[Any, Any]) -> None:
    found = Baseline(first).differences(Baseline(second))
    assert (not found) == (first == second)


@given(objects, objects)
def test_an_agent_that_changes_nothing_has_no_collateral(before: dict[Any, Any], after_fault: dict[Any, Any]) -> None:
    assert collateral(Baseline(before), Baseline(after_fault), Baseline(after_fault)) == []
