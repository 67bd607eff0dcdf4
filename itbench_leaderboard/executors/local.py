"""Execute attempts on this machine, each in its own process, so that they do not affect each other.

Those on live problems that begin with the same healthy system are copies of one process with that system.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterable
from contextlib import suppress

from itbench_leaderboard.jobs import Job
from itbench_leaderboard.outcomes import Outcome, Report
from itbench_leaderboard.runner import Attempt
from srearena.conductor.episode.spec import EpisodeSpec
from srearena.conductor.trials.workers import WarmWorker, Workers
from srearena.interpreters import python_module

_GRACE = 60.0  # seconds beyond the agent's limit, for set-up and clean-up; chosen
_LIVE_GRACE = 1800.0  # seconds; deployment and grading do not count as the agent's time; chosen: a slow real cluster
_STOP = 15.0  # seconds until SIGKILL; chosen: a CLI ends in a few


class Local:
    """The executor of this machine. `plan` names the live problems of the attempts to come."""

    def __init__(self, plan: Iterable[tuple[str, EpisodeSpec]] = ()) -> None:
        self._workers = Workers("itbench_leaderboard.worker", plan)
        self._running: set[subprocess.Popen[str] | WarmWorker] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def execute(self, job: Job, attempt: Attempt) -> Report:
        is_live = job.incident.kind == "live"
        if self._stopped:
            return Report(Outcome.INTERRUPTED, "stopped")
        process = (self._workers.start_warm(job.incident.name, job.spec) if is_live else None) or _new_worker()
        with self._lock:
            self._running.add(process)
        limit = (job.table.timeout or job.timeout) + (_LIVE_GRACE if is_live else _GRACE)
        try:
            if self._ending():  # stopped while this one was started
                process.terminate()
            status, complaint = _communicate(process, json.dumps(job.as_document(), default=str) + "\n", limit)
        except subprocess.TimeoutExpired:
            return attempt.report() or Report(
                Outcome.TIMEOUT, f"the worker did not end within {limit:g} seconds", limit
            )
        finally:
            with self._lock:
                self._running.discard(process)
            if is_live:
                self._workers.ended(job.incident.name, job.spec)
        report = attempt.report()
        if report is not None:
            return report
        if self._ending():
            return Report(Outcome.INTERRUPTED, "stopped")
        last = complaint.strip().splitlines()[-1:] or [f"status {status}"]
        return Report(Outcome.ENVIRONMENT_ERROR, f"the worker ended without a report: {last[0][:300]}")

    def _ending(self) -> bool:
        return self._stopped

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            running = list(self._running)
        for process in running:
            with suppress(ProcessLookupError):
                process.terminate()

    def close(self) -> None:
        for process in list(self._running):
            process.terminate()
        self._workers.close()


def _new_worker() -> subprocess.Popen[str]:
    return subprocess.Popen(
        python_module("itbench_leaderboard.worker", str(os.getpid())),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )


def _communicate(process: subprocess.Popen[str] | WarmWorker, line: str, timeout: float) -> tuple[int, str]:
    """Send the job, and wait for the end; a worker that takes too long is ended."""
    if isinstance(process, WarmWorker):
        return process.communicate(line, timeout)
    try:
        _, complaint = process.communicate(line, timeout=timeout)
    except subprocess.TimeoutExpired:
        _end(process)
        raise
    return process.returncode, complaint


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.communicate(timeout=_STOP)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
