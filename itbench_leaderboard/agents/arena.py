"""Run an agent on a live problem: one trial, whose result and session are copied into the workspace.

While the agent runs, nothing on disk names the problem: the trial has a temporary directory with a random name.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from itbench_leaderboard.agents import stepwise
from itbench_leaderboard.files import write_json
from itbench_leaderboard.jobs import Job
from itbench_leaderboard.outcomes import Outcome, Report
from itbench_leaderboard.runner import OUTPUT
from srearena.conductor.agent_process.isolation import EXTERNAL
from srearena.conductor.episode.episode import Episode
from srearena.conductor.episode.limits import Limits
from srearena.conductor.results.signals import SIGNALS
from srearena.conductor.session import read_session
from srearena.conductor.trials.trial import Trial, perform
from srearena.conductor.worlds.journal import FILE as JOURNAL
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


def execute(job: Job, healthy: Episode | None = None) -> Report:
    table = job.table
    with tempfile.TemporaryDirectory(prefix="run-") as folder:
        limits = Limits(steps=table.max_steps, cost=table.max_cost, wall_seconds=table.timeout or job.timeout)
        spec = replace(job.spec, limits=limits)
        if table.kind == "http":
            trial = Trial(job.incident.name, "contestant", folder, isolation=EXTERNAL, spec=spec)
            document = perform(trial, create_agent=lambda: stepwise.http_agent(table, job.label), healthy=healthy)
        else:
            trial = Trial(job.incident.name, table.agent, folder, agent_options=dict(table.options), spec=spec)
            document = perform(trial, healthy=healthy)
        result = json.loads(json.dumps(document, default=str))
        workspace = Path(job.workspace)
        store_result(job, result, workspace)
        session = next(iter(trial.folder.glob("*.jsonl")), None)
        if session is not None:
            (workspace / "traces").mkdir(exist_ok=True)
            shutil.copyfile(session, workspace / "traces" / "session.jsonl")
            write_json(workspace / "traces" / "trajectory.json", _trajectory(job, session))
        keep_for_view(trial.folder, workspace)
        return _report(result, table.model)


def store_result(job: Job, result: dict[str, Any], workspace: Path) -> None:
    """Write the result of the episode, and the agent's answers, into a workspace."""
    result |= {"agent": job.agent_name, "run": "", "trial": job.number}
    write_json(workspace / RESULT, result)
    write_json(workspace / OUTPUT, _answers(result))


def keep_for_view(trial: Path, workspace: Path) -> None:
    """Copy what `srearena view` shows of the system of a trial."""
    for name in (SIGNALS, JOURNAL):
        if (trial / name).is_file():
            shutil.copyfile(trial / name, workspace / name)


def outcome_of(result: dict[str, Any]) -> Outcome:
    return _OUTCOMES[result["outcome"]]


def _answers(result: dict[str, Any]) -> dict[str, Any]:
    """The agent's answers by stage, without the verdicts."""
    return {"stages": {stage["stage"]: stage.get("submission") for stage in result["stages"]}}


def _report(result: dict[str, Any], model: str) -> Report:
    usage = result.get("usage") or {}
    has_tokens = bool(usage.get("tokens_in") or usage.get("tokens_out"))
    return Report(
        outcome_of(result),
        "" if result["outcome"] == "pass" else str(result.get("reason") or ""),
        float(usage.get("wall_seconds") or 0.0),
        usage.get("steps"),
        usage["tokens_in"] if has_tokens else None,
        usage["tokens_out"] if has_tokens else None,
        usage.get("cost") if has_tokens or usage.get("cost") else None,
        model,
    )


def _trajectory(job: Job, session: Path) -> dict[str, Any]:
    """The session in the common format of trajectories."""
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
