"""Laws of load shapes."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srearena.generators.workload.shapes import (
    Constant,
    Diurnal,
    Ramp,
    Replayed,
    Shape,
    Spike,
    describe,
    mean_rate,
    parse_shape,
)
from srearena.service.errors import ApplicationError

rates = st.floats(0, 1e5, allow_nan=False)
lengths = st.floats(0.5, 1e5)
times = st.floats(0, 1e6)
curves = st.lists(st.tuples(st.integers(0, 10_000), rates), min_size=1, max_size=20, unique_by=lambda p: p[0]).map(
    lambda points: tuple(sorted((float(t), r) for t, r in points))
)
shapes: st.SearchStrategy[Shape] = st.one_of(
    st.builds(Constant, rates),
    st.builds(Ramp, rates, rates, lengths),
    st.builds(Spike, rates, rates, times, lengths, st.one_of(st.just(0.0), lengths)),
    st.builds(Diurnal, rates, st.floats(0, 1), lengths, times),
    st.builds(Replayed, curves, st.booleans()),
)


def read_shape(line: str) -> Shape:
    """The inverse of `describe`."""
    name, *words = line.split()
    settings: dict[str, Any] = {"shape": name}
    for word in words:
        key, _, text = word.partition("=")
        if key == "points":
            settings[key] = [tuple(pair.split(":")) for pair in text.split(",")]
        elif key == "repeat":
            settings[key] = text == "1"
        else:
            settings[key] = float(text)
    return parse_shape(settings)


@given(shapes, times)
def test_a_rate_is_never_negative_and_always_the_same_at_the_same_moment(shape: Shape, moment: float) -> None:
    assert 0 <= shape(moment) == shape(moment) < math.inf


@given(shapes)
def test_a_shape_survives_being_written_down(shape: Shape) -> None:
    assert read_shape(describe(shape)) == shape


@given(rates, rates, lengths, times, times)
def test_a_ramp_goes_one_way_and_stays_between_its_ends(a: float, b: float, over: float, s: float, t: float) -> None:
    ramp = Ramp(a, b, over)
    assert ramp(0) == a and ramp(over) == b
    assert min(a, b) * (1 - 1e-9) - 1e-9 <= ramp(t) <= max(a, b) * (1 + 1e-9) + 1e-9
    first, last = ramp(min(s, t)), ramp(max(s, t))
    assert (last - first) * (b - a) >= -1e-6 * max(1.0, a, b) ** 2


@given(st.builds(Spike, rates, rates, times, lengths), times)
def test_a_spike_is_its_peak_for_its_length_and_its_base_otherwise(spike: Spike, moment: float) -> None:
    inside = spike.at <= moment and moment - spike.at < spike.lasting
    assert spike(moment) == (spike.peak if inside else spike.base)


def test_spikes_may_come_again_and_again() -> None:
    spike = Spike(10, 100, at=60, lasting=30, every=300)
    assert [spike(t) for t in (0, 60, 89, 90, 359, 360, 389, 390)] == [10, 100, 100, 10, 10, 100, 100, 10]


@given(st.builds(Diurnal, rates, st.floats(0, 1), lengths, times), times)
def test_a_day_swings_around_its_mean_and_comes_back(day: Diurnal, moment: float) -> None:
    assert day(day.peak_at) == pytest.approx(day.mean * (1 + day.swing))
    assert day(moment) <= day.mean * (1 + day.swing) * (1 + 1e-9)
    assert day(day.peak_at + day.period) == pytest.approx(day(day.peak_at), abs=1e-3 * max(1.0, day.mean))
    assert mean_rate(day, 0, day.period, 64) == pytest.approx(day.mean, rel=1e-3, abs=1e-6)


@given(curves, times)
def test_a_recording_goes_through_its_points_and_not_beyond_them(
    points: tuple[tuple[float, float], ...], moment: float
) -> None:
    curve = Replayed(points)
    assert all(curve(t) == pytest.approx(r) for t, r in points)
    heights = [r for _, r in points]
    assert min(heights) - 1e-6 <= curve(moment) <= max(heights) * (1 + 1e-9) + 1e-6


def test_a_recording_may_begin_anew() -> None:
    curve = Replayed(((0, 0), (10, 100)), repeat=True)
    assert [curve(t) for t in (5, 10, 15, 29)] == [50, 100, 50, 90]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (100, Constant(100)),
        ({"shape": "ramp", "start": 1, "end": 2, "over": 3}, Ramp(1, 2, 3)),
        ({"shape": "replayed", "points": [[0, 1], [5, 2]]}, Replayed(((0, 1), (5, 2)))),
    ],
)
def test_shapes_are_written_as_numbers_or_mappings(value: Any, expected: Shape) -> None:
    assert parse_shape(value) == expected


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (-1, "a rate cannot be negative"),
        ("fast", "a load is a rate, or a mapping whose shape is one of constant, ramp"),
        ({"shape": "wave"}, "one of constant, ramp, spike, diurnal, replayed"),
        ({"shape": "ramp", "start": 1}, "a load of shape ramp has the settings start, end, over"),
        ({"shape": "ramp", "start": 1, "end": 2, "over": 0}, "a time to take"),
        ({"shape": "diurnal", "mean": 1, "swing": 2}, "a swing from 0 to 1"),
        ({"shape": "replayed", "points": []}, "points in the order of time"),
        ({"shape": "replayed", "points": [[5, 1], [4, 1]]}, "points in the order of time"),
        ({"shape": "spike", "base": 1, "peak": 2, "at": 0, "lasting": 0}, "and a length"),
    ],
)
def test_impossible_loads_are_refused(value: Any, message: str) -> None:
    with pytest.raises(ApplicationError, match=message):
        parse_shape(value)
