"""Statistics of single series: steps, spikes, seasons and counter resets."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sre_tools.offline_incident_analysis.statistics import (
    Anomalies,
    detect_anomalies,
    increases,
    is_counter,
)


def anomalies(values: list[float]) -> Anomalies:
    return detect_anomalies([np.asarray(values, dtype=float)])[0]


def test_a_counter_that_was_reset_does_not_fall() -> None:
    assert list(increases(np.array([0.0, 60.0, 30.0, 90.0]))) == [60.0, 30.0, 60.0]


@given(st.lists(st.floats(0, 1e9), min_size=2, max_size=50))
def test_increases_are_never_negative(values: list[float]) -> None:
    assert all(increase >= 0 for increase in increases(np.array(values)))


def test_a_step_is_found_where_it_is() -> None:
    noise = random.Random(1)
    values = [noise.gauss(10, 1) for _ in range(40)] + [noise.gauss(20, 1) for _ in range(30)]
    found = anomalies(values).shift
    assert found is not None and found.index == 40
    assert found.before == pytest.approx(10, abs=0.5) and found.after == pytest.approx(20, abs=0.5)


@pytest.mark.parametrize("seed", range(10))
def test_noise_is_no_step(seed: int) -> None:
    noise = random.Random(seed)
    assert anomalies([noise.gauss(10, 1) for _ in range(60)]).shift is None


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
