"""The interface of executors. `execute` blocks until there is a report; it is called from many threads."""

from __future__ import annotations

from typing import Protocol

from itbench_leaderboard.jobs import Job
from itbench_leaderboard.outcomes import Report
from itbench_leaderboard.runner import Attempt


class Executor(Protocol):
    """Executes attempts on this machine or others."""

    def execute(self, job: Job, attempt: Attempt) -> Report: ...

    def stop(self) -> None:
        """Stop running attempts soon; their reports say `interrupted`."""

    def close(self) -> None: ...
