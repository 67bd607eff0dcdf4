"""Run any kind of agent on any kind of incident: `execute` turns a job into a report and never raises."""

from __future__ import annotations

import importlib
from time import monotonic
from typing import TYPE_CHECKING

from itbench_leaderboard.jobs import Job
from itbench_leaderboard.outcomes import Outcome, Report
from srearena.errors import SreArenaError

if TYPE_CHECKING:
    from srearena.conductor.episode.episode import Episode

# Modules of this package with `execute(job)`, by kind of agent and incident; a worker imports only one.
_MODULES = {
    ("cli", "snapshot"): "coding_cli",
    ("python", "snapshot"): "dialogue",
    ("http", "snapshot"): "dialogue",
    ("cli", "live"): "live_cli",
    ("python", "live"): "arena",
    ("http", "live"): "arena",
}


def execute(job: Job, healthy: Episode | None = None) -> Report:
    """Make one attempt in the job's workspace. Errors before the agent starts are environment errors.

    `healthy` is a system with which the episode of a live problem begins.
    """
    start = monotonic()
    try:
        module = importlib.import_module(f"{__name__}.{_MODULES[job.agent['kind'], job.incident.kind]}")
        report: Report = module.execute(job, healthy) if healthy is not None else module.execute(job)
        return report
    except KeyboardInterrupt:
        return Report(Outcome.INTERRUPTED, "stopped", round(monotonic() - start, 3))
    except SreArenaError as problem:
        return Report(Outcome.ENVIRONMENT_ERROR, str(problem), round(monotonic() - start, 3))
    except Exception as problem:  # a bug of ours must not count against an agent, nor stop other runs
        reason = f"{type(problem).__name__}: {problem}"
        return Report(Outcome.ENVIRONMENT_ERROR, reason, round(monotonic() - start, 3))
