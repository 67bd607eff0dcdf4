"""The distance of an answer from the truth in the call graph."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from srearena.conductor.grading.call_distance import distance, graph_of, mean_distance

CALLS = [("web", "api"), ("api", "store"), ("api", "cache"), ("batch", "queue")]


def test_distance_counts_calls_in_either_direction() -> None:
    graph = graph_of(CALLS)
    assert distance(graph, "store", {"store"}) == 0
    assert distance(graph, "web", {"store"}) == 2
    assert distance(graph, "store", {"web", "cache"}) == 2
    assert distance(graph, "web", {"queue"}) is None
    assert mean_distance(graph, {"web", "api"}, {"store"}) == 1.5
    assert mean_distance(graph, set(), {"store"}) is None


names = st.sampled_from("abcdef")


@given(st.lists(st.tuples(names, names)), names, names)
def test_distance_is_the_same_both_ways(calls: list[tuple[str, str]], one: str, other: str) -> None:
    graph = graph_of(calls)
    assert distance(graph, one, {other}) == distance(graph, other, {one})
