"""The worker process for one attempt: reads the job from standard input, writes the report to `report.json`.

When its leaderboard process ends it stops its agent: the kernel signals that, or in a copy of a healthy system, which
has another parent, the end of standard input does.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from pathlib import Path
from types import FrameType

from itbench_leaderboard.agents import execute
from itbench_leaderboard.files import write_json
from itbench_leaderboard.jobs import Job
from srearena.conductor.episode.episode import Episode
from srearena.conductor.trials.worker import follow_parent

_PR_SET_PDEATHSIG = 1


def _stop(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def main(healthy: Episode | None = None) -> None:
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the leaderboard, which sends SIGTERM
    if healthy is not None:
        job = _job()
        follow_parent()
    else:
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        parent = int(sys.argv[1])
        job = _job()
        if os.getppid() != parent:
            sys.exit(130)  # the parent ended before prctl took effect
    report = execute(job, healthy)
    write_json(Path(job.workspace).parent / "report.json", report.as_document())


def _job() -> Job:
    return Job.from_document(json.loads(sys.stdin.readline()))


if __name__ == "__main__":
    main()
