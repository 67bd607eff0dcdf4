"""Execute attempts on this machine, each in its own process, so that they do not affect each other."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from contextlib import suppress

from itbench_leaderboard.jobs import Job
from itbench_leaderboard.outcomes import Outcome, Report
from itbench_leaderboard.runner import Attempt
from srearena.interpreters import python_module

_GRACE = 60.0  # seconds beyond the agent's limit, for set-up and clean-up; chosen
_LIVE_GRACE = 1800.0  # seconds; deployment and grading do not count as the agent's time; chosen: a slow real cluster
_STOP = 15.0  # seconds until SIGKILL; chosen: a CLI ends in a few


class Local:
    """The executor of this machine."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def execute(self, job: Job, attempt: Attempt) -> Report:
        with self._lock:
            if self._stopped:
                return Report(Outcome.INTERRUPTED, "stopped")
            process = subprocess.Popen(
                python_module("itbench_leaderboard.worker", str(os.getpid())),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,
            )
            self._running.add(process)
        limit = (job.table.timeout or job.timeout) + (_LIVE_GRACE if job.incident.kind == "live" else _GRACE)
        complaint = ""
        try:
            _, complaint = process.communicate(json.dumps(job.as_document(), default=str) + "\n", timeout=limit)
        except subprocess.TimeoutExpired:
            _end(process)
            return attempt.report() or Report(
                Outcome.TIMEOUT, f"the worker did not end within {limit:g} seconds", limit
            )
        finally:
            with self._lock:
                self._running.discard(process)
        report = attempt.report()
        if report is not None:
            return report
        if self._ending():
            return Report(Outcome.INTERRUPTED, "stopped")
        last = complaint.strip().splitlines()[-1:] or [f"status {process.returncode}"]
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
            _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.communicate(timeout=_STOP)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
