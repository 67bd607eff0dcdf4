"""The distance of an answer from the truth in the call graph that traces show.

A wrong answer one call away from the origin is better than a component at the other end of the system. The distance is
reported and never changes a verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

Graph = Mapping[str, Set[str]]


def graph_of(calls: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """Build an undirected graph from calls: errors propagate to callers, load propagates to callees."""
    graph: dict[str, set[str]] = {}
    for caller, callee in calls:
        graph.setdefault(caller, set()).add(callee)
        graph.setdefault(callee, set()).add(caller)
    return graph


def distance(graph: Graph, start: str, goals: Set[str]) -> int | None:
    """The least number of calls between a component and any of the goals; None where there is no path."""
    if start in goals:
        return 0
    visited, frontier, steps = {start}, {start}, 0
    while frontier:
        steps += 1
        frontier = {neighbour for name in frontier for neighbour in graph.get(name, ())} - visited
        if frontier & goals:
            return steps
        visited |= frontier
    return None


def mean_distance(graph: Graph, answered: Set[str], right: Set[str]) -> float | None:
    """The mean distance of the answered components from the right ones; None where there is no path."""
    if not answered or not right:
        return None
    distances = [distance(graph, name, right) for name in answered]
    finite = [steps for steps in distances if steps is not None]
    return sum(finite) / len(finite) if finite else None
