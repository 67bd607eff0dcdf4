"""Where attempts are carried out. `carry_out` blocks until there is a report; it is called from many threads."""

from __future__ import annotations

from typing import Protocol

from itbench_leaderboard.jobs import Job
from itbench_leaderboard.outcomes import Report
from itbench_leaderboard.runs import Attempt


class Executor(Protocol):
    def carry_out(self, job: Job, attempt: Attempt) -> Report: ...

    def stop(self) -> None:
        """End what is under way, soon; its reports say `interrupted`."""

    def close(self) -> None: ...
