"""Properties of the metrics for arbitrary diagnoses."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from itbench_evaluations import (
    Options,
    Policy,
    TruthView,
    grade_diagnosis,
    load_truths,
    parse_ground_truth,
    reference_answer,
)
from itbench_evaluations.graph import MAX_PATHS, ComponentGraph

from .samples import SHOP, answer

TRUTHS = load_truths(SHOP).truths
VIEWS = {incident: TruthView.of(truth) for incident, truth in TRUTHS.items()}

NAMES = st.sampled_from(
    [
        "shop/ConfigMap/flags",
        "shop/Service/cart",
        "shop/Pod/cart-6d5f7c9b8-x2v4z",
        "shop/Deployment/checkout",
        "shop/Service/frontend",
        "shop/ResourceQuota/tight",
        "shop/Deployment/payment",
        "shop/Pod/ad-6d5f7c9b8-x2v4z",
        "shop/Deployment/redis",
        "shop/Pod/redis-0",
        "other/ConfigMap/flags",
        "mail",
        "shop/Deployment/email",
    ]
)
ANSWERS = st.builds(
    lambda blamed, others, edges: answer(*blamed, others=tuple(others), edges=tuple(edges), why="flag switched on"),
    st.lists(NAMES, max_size=6),
    st.lists(NAMES, max_size=3),
    st.lists(st.tuples(NAMES, NAMES), max_size=8),
)
INCIDENTS = st.sampled_from(["1", "2", "3"])
POLICIES = st.sampled_from(list(Policy))


def scores(incident: str, diagnosis: Any, policy: Policy = Policy.WORKLOAD) -> dict[str, float | None]:
    return grade_diagnosis(TRUTHS[incident], diagnosis, Options(policy=policy)).scores


@given(INCIDENTS, ANSWERS, POLICIES)
def test_every_metric_is_a_number_from_0_to_1(incident: str, diagnosis: Any, policy: Policy) -> None:
    for metric, value in scores(incident, diagnosis, policy).items():
        assert value is not None and 0.0 <= value <= 1.0, metric


@given(INCIDENTS, POLICIES)
def test_the_keys_own_answer_is_perfect_and_an_empty_one_worthless(incident: str, policy: Policy) -> None:
    view = TruthView.of(TRUTHS[incident], policy)
    own = grade_diagnosis(view.truth, reference_answer(view), Options(policy=policy)).scores
    roots = len(view.matcher.root_components)
    # Among the first k there is no room for more than k roots.
    assert {m for m, v in own.items() if v != 1.0} <= {m for m in own if "k@" in m and int(m.split("@")[1][0]) < roots}
    assert set(scores(incident, answer(), policy).values()) == {0.0}


@given(
    INCIDENTS, ANSWERS, st.sampled_from(["shop/Deployment/redis", "shop/Secret/other", "elsewhere/Pod/x-0", "nobody"])
)
def test_adding_a_wrong_root_never_raises_precision_or_recall(incident: str, diagnosis: Any, wrong: str) -> None:
    before = scores(incident, diagnosis)
    entity = {"name": wrong, "contributing_factor": True, "reasoning": ""}
    after = scores(incident, {**diagnosis, "entities": [*diagnosis["entities"], entity]})
    for metric in ("root_cause_entity_precision", "root_cause_entity_recall", "root_cause_entity_f1", "itbench_aa"):
        assert after[metric] <= before[metric]  # type: ignore[operator]
    for metric in ("root_cause_proximity_no_fp_precision", "ntam_fault_localization"):
        assert after[metric] <= before[metric] + 1e-12  # type: ignore[operator]


@given(INCIDENTS, ANSWERS)
def test_adding_a_right_root_never_lowers_recall(incident: str, diagnosis: Any) -> None:
    before = scores(incident, diagnosis)
    view = VIEWS[incident]
    for entity in reference_answer(view).entities:
        if entity.contributing_factor:
            right = {"name": entity.name, "contributing_factor": True, "reasoning": ""}
            after = scores(incident, {**diagnosis, "entities": [*diagnosis["entities"], right]})
            for metric in ("root_cause_entity_recall", "root_cause_proximity_no_fp_recall"):
                assert after[metric] >= before[metric]  # type: ignore[operator]


@given(INCIDENTS, ANSWERS, st.integers(0, 10**6))
def test_the_order_of_entities_matters_only_at_k(incident: str, diagnosis: Any, seed: int) -> None:
    shuffled = list(diagnosis["entities"])
    random.Random(seed).shuffle(shuffled)
    before, after = scores(incident, diagnosis), scores(incident, {**diagnosis, "entities": shuffled})
    assert {m for m in before if before[m] != after[m]} <= {m for m in before if "entity_k" in m}


@given(ANSWERS, st.integers(0, 10**6))
def test_the_order_of_groups_and_aliases_in_the_key_does_not_matter(diagnosis: Any, seed: int) -> None:
    rng = random.Random(seed)
    truth = TRUTHS["1"]
    rows = [
        {
            "id": g.id,
            "kind": g.kind,
            "namespace": g.namespace,
            "name": g.name,
            "filter": list(g.filters),
            "root_cause": g.root,
        }
        for g in truth.groups
    ]
    edges = [{"source": e.source, "target": e.target, "effect": e.effect} for e in truth.propagations]
    document = {"id": "1", "groups": rows, "aliases": [list(a) for a in truth.aliases], "propagations": edges}
    mixed = {**document, "groups": rng.sample(rows, len(rows)), "aliases": [list(reversed(a)) for a in truth.aliases]}
    first, second = grade_diagnosis(document, diagnosis), grade_diagnosis(mixed, diagnosis)
    assert first.scores == second.scores


@given(INCIDENTS, ANSWERS)
def test_a_laxer_policy_never_finds_fewer_roots(incident: str, diagnosis: Any) -> None:
    found = [scores(incident, diagnosis, policy)["root_cause_entity_recall"] for policy in Policy]
    assert found == sorted(found)  # type: ignore[type-var]


@given(INCIDENTS, ANSWERS)
def test_the_same_diagnosis_gets_the_same_grade(incident: str, diagnosis: Any) -> None:
    assert grade_diagnosis(TRUTHS[incident], diagnosis) == grade_diagnosis(TRUTHS[incident], diagnosis)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 25), st.integers(0, 25)), max_size=400))
def test_any_graph_is_walked_in_bounded_time(edges: list[tuple[int, int]]) -> None:
    graph = ComponentGraph.build(["0"], [(str(a), str(b)) for a, b in edges])
    assert len(graph.paths()) <= MAX_PATHS


def test_a_prediction_of_everything_from_everything_is_graded_quickly() -> None:
    names = [f"shop/Deployment/d{number}" for number in range(40)]
    edges = tuple((a, b) for a in names for b in names)
    grade = grade_diagnosis(TRUTHS["1"], answer(*names, edges=edges))
    assert grade.scores["root_cause_entity_f1"] == 0.0
    assert any("too many paths" in note for note in grade.notes)


def test_parse_is_a_function_of_the_document() -> None:
    document = {"id": "1", "groups": [{"id": "a", "kind": "Pod", "filter": ["a"], "root_cause": True}]}
    assert parse_ground_truth(document) == parse_ground_truth(document)
