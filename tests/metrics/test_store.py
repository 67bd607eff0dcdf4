"""What writers give the metric store, readers get back by labels and time."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from srearena.cluster.embedded.telemetry.metrics.blocks import NAN_SAMPLE
from srearena.cluster.embedded.telemetry.metrics.matchers import Matcher, PatternError
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore


def named(name: str, **labels: str) -> dict[str, str]:
    return {"__name__": name, **labels}


def read(store: MetricStore, *matchers: Matcher, start: float = 0, end: float = 1e6) -> dict[str, list[float]]:
    return {
        ",".join(f"{k}={v}" for k, v in labels if k != "__name__"): list(values)
        for labels, _, values in store.select(matchers, start, end)
    }


UP = Matcher("__name__", "=", "up")


def test_rows_come_back_as_series() -> None:
    store = MetricStore()
    block = store.block([named("up", job="a"), named("up", job="b")])
    block.append(10.0, [1, 2])
    block.append(20.5, np.array([3.0, 4.0]))
    assert read(store, UP) == {"job=a": [1, 3], "job=b": [2, 4]}
    ((_, times, _), _) = store.select([UP], 0, 100)
    assert list(times) == [10.0, 20.5]


def test_a_series_without_a_sample_in_a_row_skips_it_and_a_nan_can_be_a_value() -> None:
    store = MetricStore()
    block = store.block([named("up", job="a")])
    for at, value in enumerate([1.0, math.nan, NAN_SAMPLE, 4.0]):
        block.append(at, [value])
    (values,) = read(store, UP).values()
    assert values[0] == 1 and math.isnan(values[1]) and values[2] == 4 and len(values) == 3


def test_blocks_that_follow_each_other_are_one_series() -> None:
    store = MetricStore()
    first = store.block([named("up", job="a"), named("up", job="b")])
    first.append(1, [1, 1])
    first.end(2)
    second = store.block([named("up", job="b")])
    second.append(2, [7])
    second.append(3, [8])
    assert read(store, UP) == {"job=a": [1], "job=b": [1, 7, 8]}
    assert len(store) == 2


def test_nothing_is_written_after_the_end_nor_into_the_past() -> None:
    block = MetricStore().block([named("up")])
    block.append(5, [1])
    with pytest.raises(ValueError, match="ascend"):
        block.append(5, [1])
    with pytest.raises(ValueError, match="2 values for a block of 1"):
        block.append(6, [1, 2])
    block.end(6)
    with pytest.raises(ValueError, match="ended"):
        block.append(7, [1])


@pytest.mark.parametrize(
    ("matcher", "jobs"),
    [
        (Matcher("job", "=", "api"), {"api"}),
        (Matcher("job", "!=", "api"), {"db", "web.1"}),
        (Matcher("job", "=~", "api|db"), {"api", "db"}),
        (Matcher("job", "=~", "web.[0-9]"), {"web.1"}),
        (Matcher("job", "=~", "a"), set()),
        (Matcher("job", "!~", "a.*|d.*"), {"web.1"}),
        (Matcher("zone", "=", ""), {"api", "web.1"}),
        (Matcher("zone", "!=", ""), {"db"}),
        (Matcher("zone", "=~", "|eu"), {"api", "db", "web.1"}),
    ],
)
def test_matchers(matcher: Matcher, jobs: set[str]) -> None:
    store = MetricStore()
    store.block([named("up", job="api"), named("up", job="db", zone="eu"), named("up", job="web.1"), named("down")])
    assert {dict(series.labels)["job"] for series in store.find([UP, matcher])} == jobs


def test_a_broken_expression_is_refused_when_it_is_made() -> None:
    with pytest.raises(PatternError):
        Matcher("job", "=~", "a(")


def test_series_beyond_the_bound_are_refused_counted_and_said() -> None:
    store = MetricStore(max_series=2)
    block = store.block([named("up", job=str(number)) for number in range(5)])
    block.append(1, [10, 11, 12, 13, 14])
    assert read(store, UP) == {"job=0": [10], "job=1": [11]}
    assert store.refused == 3
    assert store.notice() == "3 series were refused: the store holds at most 2 series"


def test_old_samples_and_then_old_series_are_forgotten() -> None:
    store = MetricStore(retention=100, max_series=2)
    short = store.block([named("up", job="short")])
    short.append(1, [1])
    short.end(2)
    long = store.block([named("up", job="long")])
    for at in range(1, 1000):
        long.append(at, [at])
    store.forget(1000)
    retained = read(store, UP)
    assert list(retained) == ["job=long"]
    assert 900 in retained["job=long"] and min(retained["job=long"]) > 800
    assert store.label_values("job") == ["long"]
    store.block([named("up", job="next")])
    assert store.refused == 0


def test_columns_that_do_not_change_cost_next_to_nothing() -> None:
    still, moving = MetricStore(), MetricStore()
    for store, step in ((still, 0.0), (moving, 1.0)):
        block = store.block([named("up", job=str(number)) for number in range(500)])
        for at in range(1, 1001):
            block.append(at, np.full(500, at * step))
    assert still.nbytes * 4 < moving.nbytes


@given(st.lists(st.lists(st.sampled_from([0.0, 1.0, math.nan]), min_size=3, max_size=3), min_size=1, max_size=150))
def test_every_sample_written_is_read_whatever_was_sealed(rows: list[list[float]]) -> None:
    store = MetricStore()
    block = store.block([named("up", job=str(number)) for number in range(3)])
    for at, row in enumerate(rows):
        block.append(at, row)
    for column in range(3):
        expected = [row[column] for row in rows if not math.isnan(row[column])]
        found = store.select([Matcher("job", "=", str(column))], 0, 1000)
        assert ([list(values) for _, _, values in found] or [[]]) == [expected]
