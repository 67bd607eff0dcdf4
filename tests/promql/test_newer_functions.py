"""What Prometheus got after the version the corpus was recorded with; checked by hand against its documentation."""

from __future__ import annotations

import pytest

from srearena.cluster.embedded.telemetry.metrics.promql.engine import Engine
from srearena.cluster.embedded.telemetry.metrics.promql.errors import QueryError
from srearena.cluster.embedded.telemetry.metrics.promql.values import Vector
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore


@pytest.fixture
def engine() -> Engine:
    store = MetricStore()
    block = store.block([{"__name__": "m", "i": i} for i in ("1", "10", "2")])
    for at, row in enumerate([(4, 1, 7), (2, 1, 7), (9, 5, 7), (2, 2, 7)]):
        block.append(at * 10, row)
    return Engine(store)


def values(engine: Engine, query: str) -> list[tuple[str, float]]:
    vector = engine.instant(query, 30_000)
    assert isinstance(vector, Vector)
    return [
        (dict(labels).get("i", ""), float(row[0])) for labels, row in zip(vector.series, vector.values, strict=True)
    ]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("mad_over_time(m[1m])", [("1", 1), ("10", 0.5), ("2", 0)]),
        ("first_over_time(m[1m])", [("1", 4), ("10", 1), ("2", 7)]),
        ("ts_of_max_over_time(m[1m])", [("1", 20), ("10", 20), ("2", 30)]),
        ("ts_of_min_over_time(m[1m])", [("1", 30), ("10", 10), ("2", 30)]),
        ("ts_of_first_over_time(m[1m])", [("1", 0), ("10", 0), ("2", 0)]),
        ("ts_of_last_over_time(m[1m])", [("1", 30), ("10", 30), ("2", 30)]),
        ("sort_by_label(m, 'i')", [("1", 2), ("2", 7), ("10", 2)]),
        ("sort_by_label_desc(m, 'i')", [("10", 2), ("2", 7), ("1", 2)]),
        ("limitk(2, m)", [("1", 2), ("10", 2)]),
        ("m{i='1' or i='2'}", [("1", 2), ("2", 7)]),
        ("{'m', i='1'}", [("1", 2)]),
        ("m offset 20", [("1", 2), ("10", 1), ("2", 7)]),
    ],
)
def test_newer_functions(engine: Engine, query: str, expected: list[tuple[str, float]]) -> None:
    assert values(engine, query) == expected


def test_double_exponential_smoothing_is_what_holt_winters_was(engine: Engine) -> None:
    new, old = "double_exponential_smoothing(m[1m], 0.5, 0.5)", "holt_winters(m[1m], 0.5, 0.5)"
    assert values(engine, new) == values(engine, old)


@pytest.mark.parametrize("query", ["histogram_avg(m)", "histogram_count(m)", "limit_ratio(0.5, m)", "info(m)"])
def test_what_is_left_out_says_so(engine: Engine, query: str) -> None:
    with pytest.raises(QueryError, match="not supported by this server"):
        engine.instant(query, 30_000)
