"""The worker process for one attempt: reads the job from standard input, writes the report to `report.json`.

The kernel signals it when its leaderboard process ends; it then stops its agent.
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

_PR_SET_PDEATHSIG = 1


def _stop(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def main() -> None:
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the leaderboard, which sends SIGTERM
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    parent = int(sys.argv[1])
    job = Job.from_document(json.loads(sys.stdin.readline()))
    if os.getppid() != parent:
        sys.exit(130)  # the parent ended before prctl took effect
    report = execute(job)
    write_json(Path(job.workspace).parent / "report.json", report.as_document())


if __name__ == "__main__":
    main()
