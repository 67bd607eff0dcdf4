"""Symptoms of callers are explained by what they call; independent faults are not."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clients.rules.hypotheses import Hypothesis, Strength, conclude, reachable
from clients.rules.topology import traced_calls

CHAIN = {"front": ["orders"], "orders": ["payments", "store"], "payments": [], "store": []}


def one(name: str, strength: Strength = Strength.SYMPTOM, **fields: bool) -> Hypothesis:
    return Hypothesis(f"shop/Deployment/{name}", "it suffers", strength, **fields)


def named(found: list[Hypothesis]) -> list[str]:
    return [each.culprit.rpartition("/")[2] for each in found]


@pytest.mark.parametrize(
    ("suffering", "blamed"),
    [
        (["front", "orders", "store"], ["store"]),
        (["front", "orders"], ["orders"]),
        (["payments", "store", "front"], ["payments", "store"]),
    ],
)
def test_of_a_chain_of_symptoms_the_deepest_remain(suffering: list[str], blamed: list[str]) -> None:
    assert named(conclude(map(one, suffering), CHAIN)) == blamed


def test_a_cause_outranks_the_symptoms_of_its_callers_and_of_others() -> None:
    found = conclude([one("front"), one("payments"), one("store", Strength.CONFIRMED)], CHAIN)
    assert named(found) == ["store"]


def test_a_likely_cause_that_calls_a_certain_one_is_explained_by_it() -> None:
    found = conclude([one("front", Strength.LIKELY), one("store", Strength.CONFIRMED)], CHAIN)
    assert named(found) == ["store"]


def test_a_second_fault_beside_a_certain_one_remains() -> None:
    likely = conclude([one("payments", Strength.LIKELY), one("store", Strength.CONFIRMED)], CHAIN)
    assert sorted(named(likely)) == ["payments", "store"]
    crashing = conclude([one("payments", fails_by_itself=True), one("store", Strength.CONFIRMED)], CHAIN)
    assert sorted(named(crashing)) == ["payments", "store"]


def test_an_object_is_named_once_and_keeps_all_repairs() -> None:
    first, second = one("store", Strength.CONFIRMED), one("store", Strength.LIKELY)
    found = conclude([second, first], CHAIN)
    assert found == [first]


GRAPHS = st.dictionaries(st.sampled_from("abcdef"), st.sets(st.sampled_from("abcdef")), max_size=6)


@given(GRAPHS, st.sets(st.sampled_from("abcdef"), min_size=1))
def test_something_remains_and_nothing_that_only_calls_what_remains(
    calls: Mapping[str, set[str]], suffering: set[str]
) -> None:
    remaining = set(named(conclude([one(name) for name in sorted(suffering)], calls)))
    assert remaining and remaining <= suffering
    for name in suffering - remaining:
        assert reachable(name, calls) & remaining, f"{name} was explained away by nothing"


def test_calls_are_read_from_printed_traces() -> None:
    text = "trace 1\n  front GET / 5.1 ms\n    front /orders 4.0 ms\n      orders /orders 3.9 ms\n  other x 1.0 ms"
    assert traced_calls(text) == {("front", "orders")}
