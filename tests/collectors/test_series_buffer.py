"""A series buffer writes exactly what was put into it, set and not removed."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from srearena.cluster.embedded.telemetry.collectors import series_buffer
from srearena.cluster.embedded.telemetry.collectors.series_buffer import SeriesBuffer
from srearena.cluster.embedded.telemetry.metrics.matchers import Matcher
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore

_KEYS = st.integers(0, 5)
_STEPS = st.one_of(
    st.tuples(st.just("put"), _KEYS, st.lists(st.sampled_from("abcd"), unique=True, max_size=4)),
    st.tuples(st.just("set"), _KEYS, st.floats(-1e6, 1e6)),
    st.tuples(st.just("drop"), _KEYS, st.none()),
    st.tuples(st.just("write"), _KEYS, st.none()),
    st.tuples(st.just("end"), _KEYS, st.none()),
)


def _read(store: MetricStore, at: float) -> dict[tuple[str, str], float]:
    found = store.select([Matcher("__name__", "=~", ".+")], at, at)
    return {(dict(labels)["key"], dict(labels)["letter"]): float(values[-1]) for labels, _, values in found}


@given(st.lists(_STEPS, max_size=40), st.integers(1, 16))
def test_a_row_is_what_is_in_the_buffer(steps: list[tuple[str, int, object]], page: int) -> None:
    before = series_buffer.PAGE_SERIES
    series_buffer.PAGE_SERIES = page
    try:
        _follow(steps)
    finally:
        series_buffer.PAGE_SERIES = before


def _follow(steps: list[tuple[str, int, object]]) -> None:
    store = MetricStore()
    buffer = SeriesBuffer(store, {"job": "test"})
    content: dict[int, dict[str, float]] = {}
    now = 0.0
    for number, (what, key, detail) in enumerate(steps):
        if what == "put" and isinstance(detail, list):
            content[key] = {letter: float(number + place) for place, letter in enumerate(detail)}
            labels = [{"__name__": "m", "key": str(key), "letter": letter} for letter in detail]
            buffer.put(key, labels, list(content[key].values()))
        elif what == "set" and key in content and isinstance(detail, float):
            content[key] = dict.fromkeys(content[key], detail)
            buffer.set(key, list(content[key].values()))
        elif what == "drop":
            content.pop(key, None)
            buffer.drop(key)
        elif what == "end":
            now += 15
            buffer.end(now)
            content = {}
            assert _read(store, now) == {}
        elif what == "write":
            now += 15
            expected = {(str(key), letter): value for key, row in content.items() for letter, value in row.items()}
            assert buffer.write(now) == len(expected) == len(buffer)
            assert _read(store, now) == expected


def test_series_that_are_gone_are_marked_stale_once() -> None:
    store = MetricStore()
    buffer = SeriesBuffer(store)
    buffer.put("one", [{"__name__": "m", "key": "one"}], [1.0])
    buffer.put("two", [{"__name__": "m", "key": "two"}], [2.0])
    buffer.write(15)
    buffer.drop("one")
    buffer.write(30)
    buffer.write(45)
    frames = store.frames([Matcher("key", "=", "one")], 0, 60_000)
    assert [frame.times.tolist() for frame in frames] == [[15_000, 30_000]]
    assert np.isnan(frames[0].values[0, 1])
