"""Errors of ITBench's present grader: each case, and the grade here."""

from __future__ import annotations

from pathlib import Path

from itbench_evaluations import EvaluationRequest, evaluate, grade_diagnosis, load_truths

from .samples import RIGHT, SHOP, answer, write_trial

TRUTHS = load_truths(SHOP).truths


def test_three_aliases_of_one_root_are_one_root() -> None:
    truth = {
        "id": "1",
        "groups": [
            {"id": "cart-deployment", "kind": "Deployment", "name": "cart", "root_cause": True},
            {"id": "cart-pod", "kind": "Pod", "filter": ["cart-.*"]},
            {"id": "cart-service", "kind": "Service", "name": "cart"},
        ],
        "aliases": [["cart-deployment", "cart-pod", "cart-service"]],
    }
    grade = grade_diagnosis(truth, answer("Deployment/cart", "Pod/cart-6d5f7c9b8-x2v4z", "Service/cart"))
    for part in ("precision", "recall", "f1"):
        assert grade.scores[f"root_cause_entity_{part}"] == 1.0  # today: recall 3.0, F1 1.5
        assert grade.scores[f"root_cause_entity_k@3_{part}"] == 1.0
    assert grade.details["predicted_entities"][0]["also_named"] == ["Pod/cart-6d5f7c9b8-x2v4z", "Service/cart"]


def test_nothing_right_is_zero_and_not_left_out() -> None:
    scores = grade_diagnosis(TRUTHS["1"], answer("shop/Deployment/redis")).scores
    assert scores["root_cause_entity_f1"] == 0.0  # today: 0/0 becomes null and leaves the mean


def test_no_prediction_is_zero_everywhere() -> None:
    assert set(grade_diagnosis(TRUTHS["1"], answer()).scores.values()) == {0.0}


def test_failed_runs_stay_in_the_mean(tmp_path: Path) -> None:
    write_trial(tmp_path, "Scenario-1", "1", RIGHT)
    write_trial(tmp_path, "Scenario-1", "2", "I am sorry, I ran out of turns.")
    (tmp_path / "Scenario-1" / "3").mkdir()
    (tmp_path / "Scenario-1" / "4").mkdir()
    with (tmp_path / "Scenario-1" / "4" / "agent_output.json").open("wb") as file:
        file.truncate(1 << 40)  # no machine has the memory
    statistics = evaluate(EvaluationRequest(SHOP, tmp_path)).document["statistics"]
    assert statistics["overall"]["total_bad_runs"] == 3  # today: always 0
    assert statistics["per_incident"]["1"]["root_cause_entity_f1"]["n"] == 4
    assert statistics["overall"]["root_cause_entity_f1"]["mean"] == 1 / 4  # today: 1.0


def test_pass_at_1_is_there_for_every_metric_and_every_k_is_summed_up(tmp_path: Path) -> None:
    write_trial(tmp_path, "Scenario-1", "1", RIGHT)
    overall = evaluate(EvaluationRequest(SHOP, tmp_path)).document["statistics"]["overall"]
    assert overall["root_cause_entity_f1"]["pass@1"] == 1.0
    for k in range(1, 6):
        assert overall[f"root_cause_entity_k@{k}_f1"]["mean"] == 1.0


def test_blaming_one_thing_often_buys_nothing() -> None:
    once = grade_diagnosis(TRUTHS["1"], answer("shop/ConfigMap/flags", "shop/Deployment/redis")).scores
    often = grade_diagnosis(
        TRUTHS["1"], answer("shop/ConfigMap/flags", "ConfigMap/flags", "shop/cm/flags", "shop/Deployment/redis")
    ).scores
    assert once["root_cause_entity_precision"] == often["root_cause_entity_precision"] == 0.5
