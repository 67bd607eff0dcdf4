"""Who calls whom, as traces tell it, and how far an answer is from the truth.

A wrong answer one call away from the origin is a better one than a name from the other end of the system; the distance
says so, and never changes a verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

Graph = Mapping[str, Set[str]]


def graph_of(calls: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """Calls as neighbours, in both directions: trouble travels up, and load travels down."""
    graph: dict[str, set[str]] = {}
    for caller, called in calls:
        graph.setdefault(caller, set()).add(called)
        graph.setdefault(called, set()).add(caller)
    return graph


def distance(graph: Graph, start: str, goals: Set[str]) -> int | None:
    """The least number of calls between a component and any of the goals; None where there is no way."""
    if start in goals:
        return 0
    seen, edge, steps = {start}, {start}, 0
    while edge:
        steps += 1
        edge = {neighbour for name in edge for neighbour in graph.get(name, ())} - seen
        if edge & goals:
            return steps
        seen |= edge
    return None


def mean_distance(graph: Graph, answered: Set[str], right: Set[str]) -> float | None:
    """How far the answered components are from the right ones, on average; None where nothing can be said."""
    if not answered or not right:
        return None
    found = [distance(graph, name, right) for name in answered]
    known = [steps for steps in found if steps is not None]
    return sum(known) / len(known) if known else None
