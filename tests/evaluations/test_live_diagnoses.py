"""Diagnoses of live problems are graded by the same code as files."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

import itbench_evaluations
from itbench_evaluations import EvaluationRequest, evaluate, grade_diagnosis
from itbench_evaluations.criteria import CRITERIA
from itbench_evaluations.results import GradedTrial, judge_output

from .samples import MIXED, RIGHT, SHOP, write_trial

TRUTH = yaml.safe_load((SHOP / "Scenario-1" / "ground_truth.yaml").read_text())


def test_a_live_diagnosis_gets_the_grade_its_file_would_get(tmp_path: Path) -> None:
    write_trial(tmp_path, "Scenario-1", "1", MIXED)
    filed = evaluate(EvaluationRequest(SHOP, tmp_path)).document["raw_results"][0]
    for diagnosis in (MIXED, json.dumps(MIXED), f"```json\n{json.dumps(MIXED)}\n```"):
        live = grade_diagnosis(TRUTH, diagnosis)
        assert live.scores == filed["flat_scores"]
        assert live.details["wrongly_blamed"] == filed["details"]["wrongly_blamed"] == ["shop/Deployment/redis"]


def test_a_live_submission_that_says_nothing_is_graded_zero_with_a_reason() -> None:
    grade = grade_diagnosis(TRUTH, "the database, I think")
    assert set(grade.scores.values()) == {0.0} and grade.problem == "no JSON object in the text"


def test_detection_follows_what_was_said_not_only_what_was_blamed() -> None:
    assert grade_diagnosis(TRUTH, {"detected": "Yes", "entities": []}).scores["detection"] == 1.0
    assert grade_diagnosis(TRUTH, {"detected": "No", "entities": []}).scores["detection"] == 0.0
    assert grade_diagnosis({"id": "n", "groups": []}, {"detected": "No", "entities": []}).scores["detection"] == 1.0


def test_a_leaderboard_gets_its_document_per_run() -> None:
    trial = GradedTrial("2", grade_diagnosis(TRUTH, RIGHT), "agent_output.json")
    document = judge_output(trial, CRITERIA, {"judge_model": "none"})
    assert document["metadata"]["run"] == "2" and document["metadata"]["judge_model"] == "none"
    assert document["flat_scores"]["root_cause_entity_f1"] == 1.0
    assert "root_cause_entity" in document["eval_result"]["scores"]
    json.dumps(document)


def test_the_public_names_are_these() -> None:
    assert set(itbench_evaluations.__all__) <= set(dir(itbench_evaluations))
    assert {"grade_diagnosis", "evaluate", "compare", "reference_answer", "AgentOutput"} <= set(
        itbench_evaluations.__all__
    )
