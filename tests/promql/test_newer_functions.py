"""Functions of Prometheus 3 and the flag for version 2, checked by hand against its documentation."""

from __future__ import annotations

import pytest

from srearena.cluster.embedded.telemetry.metrics.promql.annotations import Annotations
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
        ("{'m', i='1'}", [("1", 2)]),
        ("m offset 20", [("1", 2), ("10", 1), ("2", 7)]),
    ],
)
def test_newer_functions(engine: Engine, query: str, expected: list[tuple[str, float]]) -> None:
    assert values(engine, query) == expected


def test_double_exponential_smoothing_is_what_holt_winters_was(engine: Engine) -> None:
    new, old = "double_exponential_smoothing(m[1m], 0.5, 0.5)", "holt_winters(m[1m], 0.5, 0.5)"
    assert values(engine, new) == values(Engine(engine.store, version=2), old)
    with pytest.raises(QueryError, match='unknown function with name "holt_winters"'):
        engine.instant(old, 30_000)


def test_ranges_are_left_open_unless_version_2_is_asked_for(engine: Engine) -> None:
    counts = [("1", 3.0), ("10", 3.0), ("2", 3.0)]
    assert values(engine, "count_over_time(m[30s])") == counts
    assert values(engine, "count_over_time(m[30s:10s])") == counts
    old = Engine(engine.store, version=2)
    assert values(old, "count_over_time(m[30s])") == [(i, 4.0) for i, _ in counts]
    assert values(old, "count_over_time(m[30s:10s])") == [(i, 4.0) for i, _ in counts]


def test_the_lookback_is_left_open_unless_version_2_is_asked_for(engine: Engine) -> None:
    new, old = (Engine(engine.store, version=version).instant("m", 330_000) for version in (3, 2))
    assert isinstance(new, Vector) and isinstance(old, Vector)
    assert (len(new.series), len(old.series)) == (0, 3)


def test_limit_ratio_and_its_complement_are_everything(engine: Engine) -> None:
    assert sorted(values(engine, "limit_ratio(0.4, m)") + values(engine, "limit_ratio(-0.6, m)")) == values(engine, "m")


@pytest.mark.parametrize("query", ["histogram_avg(m)", "histogram_count(m)", "m </ m"])
def test_native_histograms_are_refused_by_name(engine: Engine, query: str) -> None:
    with pytest.raises(QueryError, match="needs native histograms, which this server does not store"):
        engine.instant(query, 30_000)


@pytest.mark.parametrize("query", ["m @ 1e20", "m[5m] @ NaN", "m @ -Inf"])
def test_a_time_out_of_bounds_is_refused(engine: Engine, query: str) -> None:
    with pytest.raises(QueryError, match="timestamp out of bounds for @ modifier"):
        engine.instant(query, 30_000)


@pytest.mark.parametrize("query", ["m @ 1e18", "m offset 200y", "m @ -1e18 offset -200y", "rate(m[250y])"])
def test_distant_times_are_answered(engine: Engine, query: str) -> None:
    assert isinstance(engine.instant(query, 30_000), Vector)


def test_annotations_name_their_place() -> None:
    store = MetricStore()
    block = store.block([{"__name__": "temperature"}])
    for at in range(3):
        block.append(at * 10, (at,))
    annotations = Annotations()
    query = "quantile(2,\n  rate(temperature[1m]))"
    Engine(store).instant(query, 30_000, annotations)
    assert annotations.infos(query) == [
        "PromQL info: metric might not be a counter, name does not end in _total/_sum/_count/_bucket: "
        '"temperature" (2:8)'
    ]
    assert annotations.warnings(query) == ["PromQL warning: quantile value should be between 0 and 1, got 2 (1:10)"]
