"""Change points of counts: power, place, false alarms, several points, and counts that come in groups."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.sre_tools_detection import false_alarms, power
from sre_tools.offline_incident_analysis.change_points import binomial_changes, poisson_changes


def test_five_percent_of_thirty_spans_a_bucket_are_found() -> None:
    found = power(spans=30, before=0.0, after=0.05, draws=40)
    assert found["found_pct"] >= 95 and found["near_pct"] >= 90


def test_a_constant_rate_has_no_change_point() -> None:
    assert set(false_alarms(draws=80).values()) == {0.0}


def test_a_plain_step_is_found_where_it_is() -> None:
    failed = [0] * 30 + [5, 3, 6, 4, 8, 7, 4, 5, 6, 5] * 6
    [step] = binomial_changes(failed, [30] * 90)
    assert step.index == 30
    assert step.before == 0.0 and step.after == pytest.approx(53 / 300)


def test_several_changes_are_found_in_order() -> None:
    failed = [0] * 20 + [9] * 20 + [0] * 20 + [3] * 20
    changes = binomial_changes(failed, [30] * 80)
    assert [change.index for change in changes] == [20, 40, 60]
    assert [round(change.after, 2) for change in changes] == [0.3, 0.0, 0.1]


def test_buckets_without_requests_say_nothing() -> None:
    failed, requests = [0, 0] * 20 + [6, 0] * 20, [30, 0] * 40
    [step] = binomial_changes(failed, requests)
    assert step.index == 40


def test_a_single_bucket_is_a_burst_and_no_step() -> None:
    assert binomial_changes([0] * 40 + [3] + [0] * 40, [30] * 81) == []


def test_requests_that_stay_away_are_a_change_of_a_poisson_rate() -> None:
    random = np.random.default_rng(3)
    [fall] = poisson_changes([*random.poisson(12, 40).tolist(), *random.poisson(2, 40).tolist()])
    assert abs(fall.index - 40) <= 1 and fall.before > 3 * fall.after


def test_too_few_buckets_have_no_change_point() -> None:
    assert binomial_changes([0, 30, 30], [30] * 3) == []
    assert poisson_changes([]) == []


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=40))
def test_any_counts_have_changes_at_places_that_exist(buckets: list[tuple[int, int]]) -> None:
    failed = [min(pair) for pair in buckets]
    requests = [max(pair) for pair in buckets]
    for change in binomial_changes(failed, requests):
        assert 0 < change.index < len(buckets)
        assert 0 <= change.before <= 1 and 0 <= change.after <= 1 and change.evidence > 0
