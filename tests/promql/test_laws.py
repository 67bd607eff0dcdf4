"""What holds for every store and every step, whatever the samples are."""

from __future__ import annotations

import math
import sys

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from srearena.cluster.embedded.telemetry.metrics.promql.engine import Engine
from srearena.cluster.embedded.telemetry.metrics.promql.values import Vector
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore

_CELLS = st.one_of(st.just(math.nan), st.integers(0, 50).map(float), st.floats(-1e6, 1e6))
_ROWS = st.lists(st.lists(_CELLS, min_size=3, max_size=3), min_size=1, max_size=40)
QUERIES = [
    "m",
    "m offset 30s",
    "rate(m[1m])",
    "increase(m[2m])",
    "irate(m[1m])",
    "sum by (g) (m)",
    "avg_over_time(m[75s])",
    "max_over_time(m[50s])",
    "stddev_over_time(m[1m])",
    "quantile_over_time(0.4, m[1m])",
    "m > 10",
    "m and m > 3",
    "m or n",
    "m unless on(g) (m > 0)",
    "topk(1, m)",
    "quantile(0.5, m)",
    "m / on(i) m",
    "sum(m) by (g) - on(g) group_right m",
    "changes(m[1m])",
    "sum_over_time((m > 0)[1m:10s])",
    "absent(m)",
    "count_values('v', m)",
    "deriv(m[1m])",
    "timestamp(m)",
]


def _store(rows: list[list[float]]) -> MetricStore:
    store = MetricStore()
    labels = [{"__name__": "m", "i": str(i), "g": str(i % 2)} for i in range(3)]
    block = store.block(labels)
    for index, row in enumerate(rows):
        block.append(100 + index * 15, row)
    return store


def _cells(vector: Vector) -> list[dict[tuple[tuple[str, str], ...], float]]:
    """Per step: value by labels."""
    return [
        {
            labels: float(values[step])
            for labels, values, present in zip(vector.series, vector.values, vector.present, strict=True)
            if present[step]
        }
        for step in range(vector.steps)
    ]


@settings(max_examples=60)
@given(_ROWS, st.sampled_from(QUERIES), st.integers(1, 97))
def test_a_range_query_is_its_instant_queries(rows: list[list[float]], query: str, step: int) -> None:
    """The law all vectorising rests on."""
    engine = Engine(_store(rows))
    start, end = 90_000, 100_000 + len(rows) * 15_000
    ranged = _cells(engine.range(query, start, end, step * 1000))
    for number, at in enumerate(range(start, end + 1, step * 1000)):
        instant = engine.instant(query, at)
        assert isinstance(instant, Vector)
        (single,) = _cells(instant)
        assert single.keys() == ranged[number].keys()
        for labels, value in single.items():
            assert np.isclose(value, ranged[number][labels], rtol=1e-6, atol=1e-6, equal_nan=True)


@given(_ROWS, st.integers(0, 400))
def test_sums_do_not_depend_on_how_series_are_grouped(rows: list[list[float]], at: int) -> None:
    engine = Engine(_store(rows))
    whole, parts = (engine.instant(query, at * 1000) for query in ("sum(m)", "sum(sum by (g) (m))"))
    assert isinstance(whole, Vector) and isinstance(parts, Vector)
    assert np.allclose(whole.values, parts.values)


@given(_ROWS, st.integers(0, 400))
def test_and_and_unless_divide_a_vector_in_two(rows: list[list[float]], at: int) -> None:
    engine = Engine(_store(rows))
    cells = []
    for query in ("m", "m and m > 7", "m unless m > 7"):
        vector = engine.instant(query, at * 1000)
        assert isinstance(vector, Vector)
        cells.append(_cells(vector)[0])
    whole, inside, outside = cells
    assert not inside.keys() & outside.keys()
    assert {**inside, **outside} == whole


@given(st.lists(st.floats(0, 1e9), min_size=2, max_size=30))
def test_a_counter_never_shrinks(steps: list[float]) -> None:
    store = MetricStore()
    block = store.block([{"__name__": "m"}])
    for index, value in enumerate(steps):
        block.append(15 * index, [value])
    vector = Engine(store).range("rate(m[1m])", 0, 15_000 * len(steps), 15_000)
    # Below the smallest normal number differences are rounded, so a rate of nothing may come out as -2.5e-310.
    assert (vector.values[vector.present] > -sys.float_info.min).all()


@given(st.lists(st.integers(0, 100), min_size=4, max_size=4), st.floats(1e-6, 1))
def test_a_quantile_lies_between_the_bounds_of_its_buckets(counts: list[int], quantile: float) -> None:
    store = MetricStore()
    bounds = ("1", "5", "10", "+Inf")
    block = store.block([{"__name__": "b", "le": bound} for bound in bounds])
    block.append(1, np.cumsum(counts).astype(float))
    vector = Engine(store).instant(f"histogram_quantile({quantile}, b)", 1000)
    assert isinstance(vector, Vector)
    value = float(vector.values[0, 0])
    assert math.isnan(value) if sum(counts) == 0 else 0 <= value <= 10
