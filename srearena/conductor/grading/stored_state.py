"""What is stored with a result, so that answers can be graded again later: names and origins when the agent started."""

from __future__ import annotations

from typing import Any

from srearena.conductor.grading.known_objects import KnownObjects
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.metadata import Entity, Origin

STATE = "state.json"


def capture_state(problem: Problem) -> dict[str, Any]:
    """What names meant when the agent started, and which of them are at fault."""
    return {
        "faulty": list(problem.faulty_services),
        "names": problem.known_objects.as_document(),
        "origins": [_as_document(origin) for origin in problem.origins],
    }


def restore_state(problem: Problem, state: dict[str, Any]) -> None:
    """Give a problem without a cluster the names of a stored trial; ValueError where the document is damaged."""
    try:
        problem.known_objects = KnownObjects.from_document(state["names"])
        if tuple(state["faulty"]) != problem.faulty_services:  # drawn at random, or chosen when the fault was injected
            problem.stored_origins = tuple(_from_document(origin) for origin in state["origins"])
    except (KeyError, TypeError) as damage:
        raise ValueError(f"the stored state is damaged: {damage}") from damage


def _as_document(origin: Origin) -> dict[str, Any]:
    return {
        part: [[entity.kind, entity.name, entity.namespace] for entity in getattr(origin, part)]
        for part in ("changed", "misbehaving", "contributing")
    }


def _from_document(document: dict[str, Any]) -> Origin:
    return Origin(**{part: tuple(Entity(*entity) for entity in document[part]) for part in document})
