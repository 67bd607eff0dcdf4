"""Series judged by themselves: steps, spikes, seasons and resets."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sre_tools.offline_incident_analysis.statistics import Anomalies, change_point, is_counter, judged, rates


def anomalies(values: list[float]) -> Anomalies:
    return judged([np.asarray(values, dtype=float)])[0]


def test_a_counter_that_was_reset_does_not_fall() -> None:
    at, found = rates([0, 60, 120, 180], [0, 60, 30, 90])
    assert (list(at), list(found)) == ([60, 120, 180], [1.0, 0.5, 1.0])


@given(st.lists(st.floats(0, 1e9), min_size=2, max_size=50))
def test_rates_are_never_negative(values: list[float]) -> None:
    _, found = rates(list(range(len(values))), values)
    assert all(rate >= 0 for rate in found)


def test_a_step_is_found_where_it_is() -> None:
    noise = random.Random(1)
    values = [noise.gauss(10, 1) for _ in range(40)] + [noise.gauss(20, 1) for _ in range(30)]
    found = change_point(values)
    assert found is not None and found.index == 40
    assert found.before == pytest.approx(10, abs=0.5) and found.after == pytest.approx(20, abs=0.5)


@pytest.mark.parametrize("seed", range(10))
def test_noise_is_no_step(seed: int) -> None:
    noise = random.Random(seed)
    assert change_point([noise.gauss(10, 1) for _ in range(60)]) is None


def test_a_spike_is_an_outlier_and_no_step() -> None:
    noise = random.Random(2)
    values = [noise.gauss(10, 0.5) for _ in range(60)]
    values[30] = 50
    found = anomalies(values)
    assert found.shift is None
    assert 30 in found.outliers


def test_what_recurs_is_not_out_of_the_ordinary() -> None:
    values = [100 + 50 * math.sin(2 * math.pi * index / 12) for index in range(96)]
    calm = anomalies(values)
    assert calm.period == 12
    assert (len(calm.outliers), calm.shift) == (0, None)
    values[50] += 80
    assert anomalies(values).outliers.tolist() == [50]


@given(st.lists(st.floats(-1e12, 1e12), max_size=60))
def test_any_series_has_a_finite_score(values: list[float]) -> None:
    assert 0 <= anomalies(values).score <= 100


def test_names_tell_counters() -> None:
    assert is_counter("http_requests_total") and is_counter("x_bucket")
    assert not is_counter("memory_bytes")
