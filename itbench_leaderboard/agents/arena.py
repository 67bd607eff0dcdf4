"""An agent on a live problem: one trial of the arena, its result and its session put into the workspace.

While the agent works nothing on disk names the problem: the trial has a folder of its own, with a name that says
nothing.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from itbench_leaderboard.agents import conversation
from itbench_leaderboard.files import write_json
from itbench_leaderboard.jobs import Job
from itbench_leaderboard.outcomes import Outcome, Report
from itbench_leaderboard.runs import OUTPUT
from srearena.conductor.episode.outcome import Limits
from srearena.conductor.episode.spec import EpisodeSpec
from srearena.conductor.session import read_session
from srearena.conductor.trials.trial import Trial, perform
from zero.trajectory import Trajectory

RESULT = "arena_result.json"
_OUTCOMES = {
    "pass": Outcome.ANSWERED,
    "fail": Outcome.ANSWERED,
    "agent error": Outcome.AGENT_FAILED,
    "environment error": Outcome.ENVIRONMENT_ERROR,
    "timeout": Outcome.TIMEOUT,
    "budget": Outcome.TURNS,
    "invalid submission": Outcome.NO_ANSWER,
}


def carry_out(job: Job) -> Report:
    table = job.table
    with tempfile.TemporaryDirectory(prefix="run-") as folder:
        limits = Limits(steps=table.max_steps, cost=table.max_cost, wall_seconds=table.timeout or job.timeout)
        spec = EpisodeSpec(job.seed, job.stages or None, limits)
        trial = Trial(job.incident.name, "contestant", folder, spec=spec)
        document = perform(trial, create_agent=lambda: conversation.make(table, job.label))
        result = json.loads(json.dumps(document, default=str))
        place = Path(job.workspace)
        keep(job, result, place)
        session = next(iter(trial.folder.glob("*.jsonl")), None)
        if session is not None:
            (place / "traces").mkdir(exist_ok=True)
            shutil.copyfile(session, place / "traces" / "session.jsonl")
            write_json(place / "traces" / "trajectory.json", _trajectory(job, session))
        return _report(result, table.model)


def keep(job: Job, result: dict[str, Any], place: Path) -> None:
    """Write the result of the episode, and what the agent answered, into a workspace."""
    result |= {"agent": job.agent_name, "run": "", "trial": job.number}
    write_json(place / RESULT, result)
    write_json(place / OUTPUT, _said(result))


def outcome_of(result: dict[str, Any]) -> Outcome:
    return _OUTCOMES[result["outcome"]]


def _said(result: dict[str, Any]) -> dict[str, Any]:
    """What the agent answered, stage by stage, without the verdicts."""
    return {"stages": {stage["stage"]: stage.get("submission") for stage in result["stages"]}}


def _report(result: dict[str, Any], model: str) -> Report:
    usage = result.get("usage") or {}
    told = bool(usage.get("tokens_in") or usage.get("tokens_out"))
    return Report(
        outcome_of(result),
        "" if result["outcome"] == "pass" else str(result.get("reason") or ""),
        float(usage.get("wall_seconds") or 0.0),
        usage.get("steps"),
        usage["tokens_in"] if told else None,
        usage["tokens_out"] if told else None,
        usage.get("cost") if told or usage.get("cost") else None,
        model,
    )


def _trajectory(job: Job, session: Path) -> dict[str, Any]:
    """The session in the form all trajectories have."""
    record = Trajectory(job.agent_name, "", job.table.model)
    step = 0
    for entry in read_session(session):
        if entry["what"] == "action":
            step += 1
            record.add_text(str(entry.get("text", "")))
            record.add_tool_call(str(step), "action", {})
        elif entry["what"] == "state" and step:
            record.add_tool_result(str(step), str(entry.get("text", "")))
        elif entry["what"] == "stage":
            record.add_message(f"Stage: {entry.get('name')}")
    return record.document()
