"""Grading stored trials anew, when graders have changed: from what was submitted and the state that was kept.

Answers in words are judged again against the stored objects of the application. A mitigation cannot be: it was judged
by the behaviour of a system that is gone (requests, fresh pods, the trigger replayed), of which no record could stand
in; it keeps its verdict, and the new result says so under `kept`. The new result also says which grader it comes from;
the old one stays beside it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from srearena.conductor.episode.outcome import Outcome
from srearena.conductor.errors import ArenaError, BadSubmission
from srearena.conductor.grading.stored_state import STATE
from srearena.conductor.oracles.base import Verdict
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.conductor.results.store import GRADER, folder_of, write_trial
from srearena.service.kubernetes import Obj

_NEEDS_THE_SYSTEM = ("mitigation",)


class StoredCluster:
    """Answers `list` from a stored state, as a cluster would have."""

    def __init__(self, state: dict[str, list[Obj]]) -> None:
        self._state = state

    def list(self, resource: str, namespace: str | None = None, **_: str) -> list[Obj]:
        found = self._state.get(resource.partition(".")[0], [])
        return [obj for obj in found if namespace is None or obj["metadata"].get("namespace") == namespace]

    def close(self) -> None:
        pass


def regrade(run: Path, document: dict[str, Any], registry: ProblemRegistry) -> dict[str, Any]:
    """A trial's document as today's graders see it, written in place of the old one."""
    folder = folder_of(run, document["problem"], document["trial"])
    problem = registry.get_problem(document["problem"])
    problem.__dict__["kubernetes"] = StoredCluster(_state(folder))
    fresh: dict[str, Any] = json.loads(json.dumps(document))
    for stage in fresh["stages"]:
        if stage["submitted"] and stage["stage"] not in _NEEDS_THE_SYSTEM:
            stage["verdict"] = _judged(problem, stage).as_document()
    fresh["scores"] = {stage["stage"]: stage["verdict"]["score"] for stage in fresh["stages"] if stage["verdict"]}
    if fresh["outcome"] in (Outcome.PASS, Outcome.FAIL):
        passed = all((stage["verdict"] or {}).get("passed") for stage in fresh["stages"])
        fresh["outcome"] = str(Outcome.PASS if passed else Outcome.FAIL)
    fresh["grader"] = GRADER
    fresh["graded_before_by"] = document["grader"]
    fresh["kept"] = [
        stage["stage"] for stage in fresh["stages"] if stage["verdict"] and stage["stage"] in _NEEDS_THE_SYSTEM
    ]
    old = folder / f"result.grader-{document['grader']}.json"
    if not old.exists():
        old.write_text(json.dumps(document, indent=2) + "\n")
    write_trial(run, fresh)
    return fresh


def _judged(problem: Problem, stage: dict[str, Any]) -> Verdict:
    try:
        return Verdict.from_answer(problem.oracle_for(stage["stage"]).evaluate(stage["submission"]))
    except BadSubmission as refused:
        return Verdict.of(False, str(refused))


def _state(folder: Path) -> dict[str, list[Obj]]:
    path = folder / STATE
    try:
        state: dict[str, list[Obj]] = json.loads(path.read_text())
    except (OSError, ValueError) as problem:
        raise ArenaError(f"{path} is not there or broken: this trial cannot be graded anew") from problem
    return state
