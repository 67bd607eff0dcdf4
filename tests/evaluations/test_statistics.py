"""Means, intervals, success probabilities, comparisons and agreement, checked with known values and properties."""

from __future__ import annotations

import json
import math
import random
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from itbench_evaluations import EvaluationRequest, agreement, comparison, estimates, evaluate

from .samples import MIXED, NEAR, RIGHT, SHOP, answer, itbench_eval, write_trial

SCORES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 2 / 3, 1.0]), min_size=1, max_size=12)


def test_a_sample_worked_by_hand() -> None:
    found = estimates.estimate([0.0, 0.5, 1.0, 1.0])
    assert found.mean == 0.625
    assert found.stderr == pytest.approx(math.sqrt((0.390625 + 0.015625 + 2 * 0.140625) / 3 / 4))
    assert found.n == 4 and 0.0 <= found.low < 0.625 < found.high <= 1.0


def test_one_value_has_no_spread() -> None:
    assert estimates.estimate([0.5]) == estimates.Estimate(0.5, None, 1, 0.5, 0.5)


@given(SCORES, st.integers(0, 99))
def test_intervals_hold_the_mean_and_do_not_depend_on_order(scores: list[float], seed: int) -> None:
    shuffled = random.Random(seed).sample(scores, len(scores))
    found = estimates.estimate(scores)
    assert min(scores) <= found.low <= found.mean + 1e-9 and found.mean - 1e-9 <= found.high <= max(scores)
    assert estimates.estimate(shuffled) == found


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = random.Random(11)
    hits = 0
    for _ in range(200):
        sample = [float(rng.random() < 0.6) for _ in range(30)]
        low, high = estimates.interval(sample)
        hits += low <= 0.6 <= high
    assert 180 <= hits <= 200


def test_beyond_the_limit_the_closed_form_is_what_resampling_gives() -> None:
    rng = random.Random(5)
    sample = tuple(sorted(rng.choice([0.0, 0.0, 0.0, 0.5, 1.0]) for _ in range(60)))
    means = sorted(math.fsum(rng.choices(sample, k=60)) / 60 for _ in range(4000))
    low, high = estimates.interval(sample)
    assert low == pytest.approx(estimates.percentile(means, 0.025), abs=0.01)
    assert high == pytest.approx(estimates.percentile(means, 0.975), abs=0.01)


@pytest.mark.parametrize(("n", "successes", "k"), [(5, 2, 3), (5, 0, 2), (4, 4, 2), (6, 3, 4), (5, 3, 1), (7, 4, 5)])
def test_chances_are_those_of_all_subsets(n: int, successes: int, k: int) -> None:
    runs = [1] * successes + [0] * (n - successes)
    subsets = list(combinations(runs, k))
    share = len(subsets)
    assert estimates.pass_at(k, n, successes) == pytest.approx(sum(any(s) for s in subsets) / share)
    assert estimates.pass_every(k, n, successes) == pytest.approx(sum(all(s) for s in subsets) / share)
    assert estimates.majority_at(k, n, successes) == pytest.approx(sum(sum(s) * 2 > k for s in subsets) / share)


def test_fewer_runs_than_k_say_nothing_of_k() -> None:
    assert estimates.pass_at(3, 2, 1) is estimates.pass_every(3, 2, 1) is estimates.majority_at(3, 2, 1) is None


# --- comparison -------------------------------------------------------------------------------------------------------


def test_sign_flips_by_hand() -> None:
    assert comparison.permutation_p([1.0, 1.0, 1.0]) == 2 / 8
    assert comparison.permutation_p([1.0, -1.0]) == 1.0
    assert comparison.permutation_p([0.0, 0.0]) == 1.0


def test_many_pairs_are_sampled_and_agree_with_the_exact_test() -> None:
    rng = random.Random(3)
    differences = [rng.gauss(0.4, 1.0) for _ in range(comparison.EXACT)]
    exact = comparison.permutation_p(differences)
    padded = [*differences, 1e-13]
    assert comparison.permutation_p(padded) == pytest.approx(exact, abs=0.02)


@pytest.mark.parametrize(("a", "b", "p"), [(0, 0, 1.0), (5, 0, 2 / 32), (3, 3, 1.0), (8, 1, 2 * 10 / 512)])
def test_mcnemar_by_hand(a: int, b: int, p: float) -> None:
    assert comparison.mcnemar_p(a, b) == comparison.mcnemar_p(b, a) == pytest.approx(p)


def test_a_comparison_of_two_agents(tmp_path: Path) -> None:
    for agent, good in (("a", RIGHT), ("b", NEAR)):
        for incident in range(1, 9):
            truth = tmp_path / "truths" / f"Scenario-{incident}"
            truth.mkdir(parents=True, exist_ok=True)
            (truth / "ground_truth.yaml").write_text((SHOP / "Scenario-1" / "ground_truth.yaml").read_text())
            write_trial(tmp_path / agent, f"Scenario-{incident}", "1", good if incident > 1 else RIGHT)
        done = itbench_eval(
            "-g", tmp_path / "truths", "-o", tmp_path / agent, "-r", tmp_path / f"{agent}.json", cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
    done = itbench_eval("compare", "a.json", "b.json", "--json", cwd=tmp_path)
    found = json.loads(done.stdout)[0]
    assert found["metric"] == "root_cause_entity_f1" and found["incidents"] == 8
    assert found["difference"] == 7 / 8 and found["low"] > 0
    assert found["permutation_p"] == 2 / 2**7 and found["mcnemar_p"] == 2 / 2**7
    assert (found["only_a_passed"], found["only_b_passed"]) == (7, 0) and found["within_noise"] is False
    again = itbench_eval("compare", "a.json", "a.json", "--metric", "propagation_chain", cwd=tmp_path)
    assert "within noise" in again.stdout and "difference 0.0 points" in again.stdout


# --- agreement --------------------------------------------------------------------------------------------------------


def test_cohens_kappa_by_hand() -> None:
    # 20 items: 15 agreed (9 yes, 6 no), so 0.75; chance 0.55*0.6 + 0.45*0.4 = 0.51.
    one = [1] * 9 + [1] * 2 + [0] * 3 + [0] * 6
    other = [1] * 9 + [0] * 2 + [1] * 3 + [0] * 6
    assert agreement.cohen(one, other).observed == 0.75
    assert agreement.cohen(one, other).kappa == pytest.approx((0.75 - 0.51) / (1 - 0.51))


def test_kappa_at_its_ends() -> None:
    assert agreement.cohen([1, 0, 1], [1, 0, 1]).kappa == 1.0
    assert agreement.cohen([1, 1], [1, 1]).kappa == 1.0
    assert agreement.cohen([1, 0], [0, 1]).kappa == -1.0
    assert agreement.fleiss([[1, 1, 1], [0, 0, 0]]).kappa == 1.0


def test_fleisss_kappa_by_hand() -> None:
    # Per item: 1, 1/3, 1/3, 1 (mean 2/3); half of all ratings are ones, so chance is 1/2.
    assert agreement.fleiss([[1, 1, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0]]).kappa == pytest.approx((2 / 3 - 0.5) / 0.5)


# --- in the document --------------------------------------------------------------------------------------------------


def test_overall_is_the_mean_of_incidents_not_of_trials(tmp_path: Path) -> None:
    for trial in ("1", "2", "3"):
        write_trial(tmp_path, "Scenario-1", trial, RIGHT)
    write_trial(tmp_path, "Scenario-2", "1", answer())
    statistics = evaluate(EvaluationRequest(SHOP, tmp_path)).document["statistics"]
    row = statistics["overall"]["root_cause_entity_f1"]
    assert row["mean"] == 0.5 and row["n_incidents"] == 2 and row["n"] == 4
    assert row["pass@k"] == 1.0 and row["k_incidents"] == 1  # only the first incident has three runs
    assert statistics["per_incident"]["2"]["root_cause_entity_f1"]["pass@k"] is None


def test_absent_runs_count_where_they_were_expected(tmp_path: Path) -> None:
    write_trial(tmp_path, "Scenario-1", "2", RIGHT)
    outcome = evaluate(EvaluationRequest(SHOP, tmp_path, expected_runs=2))
    rows = {(row["incident_id"], row["trial_id"]): row["bad_run"] for row in outcome.document["raw_results"]}
    assert rows == {
        ("1", "2"): False, ("1", "1"): True, ("2", "1"): True, ("2", "2"): True, ("3", "1"): True, ("3", "2"): True,
    }  # fmt: skip
    assert outcome.document["statistics"]["overall"]["root_cause_entity_f1"]["mean"] == pytest.approx(1 / 6)


def test_only_a_full_score_is_a_pass(tmp_path: Path) -> None:
    write_trial(tmp_path, "Scenario-1", "1", MIXED)
    row = evaluate(EvaluationRequest(SHOP, tmp_path)).document["statistics"]["per_incident"]["1"]
    assert (row["root_cause_entity_f1"]["mean"], row["root_cause_entity_f1"]["pass@1"]) == (pytest.approx(2 / 3), 0.0)
    assert row["root_cause_entity_recall"]["pass@1"] == 1.0


def test_every_number_of_a_mixed_bag_is_within_bounds(tmp_path: Path) -> None:
    for trial, document in enumerate((RIGHT, MIXED, NEAR, answer(), "broken"), start=1):
        write_trial(tmp_path, "Scenario-1", str(trial), document)
    row = evaluate(EvaluationRequest(SHOP, tmp_path)).document["statistics"]["per_incident"]["1"]
    for metric, values in row.items():
        if isinstance(values, dict):
            low, high = values["ci95"]
            assert 0 <= low <= values["mean"] <= high <= 1, metric
            assert 0 <= values["pass^k"] <= values["majority@k"] <= values["pass@k"] <= 1, metric
