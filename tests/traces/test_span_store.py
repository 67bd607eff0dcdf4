"""The span store: what it stores, drops and counts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from srearena.cluster.embedded.telemetry.traces.jaeger_query import TraceQuery
from srearena.cluster.embedded.telemetry.traces.store import SpanStore, began_within
from srearena.cluster.embedded.traffic.spans import Resource, Span

FRONTEND = Resource("frontend")
BACKEND = Resource("backend")


def trace(number: int, start: float, spans: int = 2) -> list[Span]:
    return [
        Span(number, n + 1, n, FRONTEND if n == 0 else BACKEND, f"op-{n}", "server", start + n * 0.001, 0.01)
        for n in range(spans)
    ]


def test_a_trace_knows_its_services_beginning_and_length() -> None:
    store = SpanStore()
    store.add(trace(7, 100.0, 3))
    found = store.get(7)
    assert found is not None
    assert found.services == {"frontend", "backend"}
    assert found.start == 100.0
    assert abs(found.duration - 0.012) < 1e-6
    assert store.get(8) is None


def test_spans_that_come_later_join_their_trace() -> None:
    store = SpanStore()
    store.add(trace(7, 100.0, 1))
    assert store.get(7) is not None
    store.add([Span(7, 9, 1, Resource("consumer"), "consume", "consumer", 101.0, 0.5)])
    found = store.get(7)
    assert found is not None
    assert found.services == {"frontend", "consumer"}
    assert len(store) == 1


def test_old_traces_go_first_and_are_counted() -> None:
    store = SpanStore(max_spans=10)
    for number in range(1, 9):
        store.add(trace(number, 100.0 + number))
    assert [t.trace_id for _, t in store.latest_first()] == [8, 7, 6, 5, 4]
    assert (store.dropped_traces, store.dropped_spans) == (3, 6)


def test_age_limits_what_is_kept() -> None:
    store = SpanStore(max_age=60)
    for number in range(1, 200):
        store.add(trace(number, float(number)))
    assert all(t.start >= 199 - 60 - 64 for _, t in store.latest_first())
    assert store.dropped_traces > 50


@given(st.lists(st.integers(1, 5), max_size=60), st.integers(5, 40))
def test_nothing_is_lost_without_being_counted(sizes: list[int], bound: int) -> None:
    store = SpanStore(max_spans=bound)
    for number, size in enumerate(sizes, 1):
        store.add(trace(number, float(number), size))
    assert store.spans == sum(len(t.spans) for _, t in store.latest_first()) <= bound
    assert store.spans + store.dropped_spans == sum(sizes)
    assert len(store) + store.dropped_traces == len(sizes)


STARTS = st.lists(st.tuples(st.integers(1, 12), st.floats(0, 50), st.integers(1, 3)), max_size=40)


@given(STARTS, st.floats(0, 50), st.floats(0, 50), st.integers(0, 8))
def test_a_search_finds_the_youngest_whatever_order_spans_come_in(
    added: list[tuple[int, float, int]], start: float, end: float, limit: int
) -> None:
    store = SpanStore()
    for number, begin, size in added:
        store.add(trace(number, begin, size))
    everything = [found for _, found in store.latest_first()]
    matching = [
        one.start
        for one in everything
        if one.start <= end and any(s.resource.service == "backend" and start <= s.start <= end for s in one.spans)
    ]
    wanted = sorted(matching, reverse=True)[: limit or None]
    assert [one.start for one in TraceQuery("backend", start=start, end=end, limit=limit).find(store)] == wanted
    begun = [one for one in everything if start <= one.start <= end]
    assert list(began_within(store, start, end)) == begun


def test_a_search_for_recent_traces_does_not_look_at_old_ones() -> None:
    store = SpanStore()
    for number in range(1, 1001):
        store.add(trace(number, float(number)))
    assert len(list(store.latest_first(990.0))) == 11
