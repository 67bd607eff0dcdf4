"""Grades stored trials again after the graders have changed, from the submissions and the stored state.

Answers are graded against the stored names of objects, as they were when the agent started. A mitigation cannot be
graded again: its verdict came from the behaviour of a system that no longer exists (requests, new pods, a replayed
trigger). It keeps its verdict, and the new result lists it under `kept`. The new result also names its grader version;
the old result stays in the folder.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from srearena.conductor.errors import ArenaError, BadSubmission
from srearena.conductor.grading.stored_state import STATE, restore_state
from srearena.conductor.oracles.base import Verdict
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.conductor.results.store import GRADER, folder_of, write_trial
from srearena.utils.status import Outcome

_NEEDS_THE_CLUSTER = ("mitigation",)


def regrade(run: Path, document: dict[str, Any], registry: ProblemRegistry) -> dict[str, Any]:
    """Grade a trial again and replace its result document."""
    folder = folder_of(run, document["problem"], document["trial"])
    problem = registry.get_problem(document["problem"], document.get("variant"))
    _restore(problem, folder / STATE)
    regraded: dict[str, Any] = json.loads(json.dumps(document))
    for stage in regraded["stages"]:
        if stage["submitted"] and stage["stage"] not in _NEEDS_THE_CLUSTER:
            stage["verdict"] = _verdict(problem, stage).as_document()
    regraded["scores"] = {stage["stage"]: stage["verdict"]["score"] for stage in regraded["stages"] if stage["verdict"]}
    if regraded["outcome"] in (Outcome.PASS, Outcome.FAIL):
        passed = all((stage["verdict"] or {}).get("passed") for stage in regraded["stages"])
        regraded["outcome"] = str(Outcome.PASS if passed else Outcome.FAIL)
    regraded["grader"] = GRADER
    regraded["graded_before_by"] = document["grader"]
    regraded["kept"] = [
        stage["stage"] for stage in regraded["stages"] if stage["verdict"] and stage["stage"] in _NEEDS_THE_CLUSTER
    ]
    old = folder / f"result.grader-{document['grader']}.json"
    if not old.exists():
        old.write_text(json.dumps(document, indent=2) + "\n")
    write_trial(run, regraded)
    return regraded


def _verdict(problem: Problem, stage: dict[str, Any]) -> Verdict:
    try:
        return Verdict.from_answer(problem.oracle_for(stage["stage"]).evaluate(stage["submission"]))
    except BadSubmission as refused:
        return Verdict.of(False, str(refused))


def _restore(problem: Problem, path: Path) -> None:
    try:
        restore_state(problem, json.loads(path.read_text()))
    except (OSError, ValueError) as damage:
        raise ArenaError(f"{path} is missing or damaged: this trial cannot be graded again") from damage
