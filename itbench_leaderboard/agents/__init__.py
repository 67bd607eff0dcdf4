"""Agents of all kinds on incidents of all kinds: `carry_out` turns a job into a report, whatever happens."""

from __future__ import annotations

import importlib
from time import monotonic

from itbench_leaderboard.jobs import Job
from itbench_leaderboard.outcomes import Outcome, Report
from srearena.errors import SreArenaError

# Modules of this package, each with `carry_out(job)`; a worker loads only the one it needs.
_WAYS = {
    ("cli", "snapshot"): "coding_cli",
    ("python", "snapshot"): "dialogue",
    ("http", "snapshot"): "dialogue",
    ("cli", "live"): "live_cli",
    ("python", "live"): "arena",
    ("http", "live"): "arena",
}


def carry_out(job: Job) -> Report:
    """One attempt in the job's workspace. What is wrong before the agent starts is the environment's error."""
    began = monotonic()
    try:
        way = importlib.import_module(f"{__name__}.{_WAYS[job.agent['kind'], job.incident.kind]}")
        report: Report = way.carry_out(job)
        return report
    except KeyboardInterrupt:
        return Report(Outcome.INTERRUPTED, "stopped", round(monotonic() - began, 3))
    except SreArenaError as problem:
        return Report(Outcome.ENVIRONMENT_ERROR, str(problem), round(monotonic() - began, 3))
    except Exception as problem:  # a bug of ours must not be held against an agent, nor stop the others
        reason = f"{type(problem).__name__}: {problem}"
        return Report(Outcome.ENVIRONMENT_ERROR, reason, round(monotonic() - began, 3))
