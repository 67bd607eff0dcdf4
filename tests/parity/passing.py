"""How time passes while a person sits at a terminal: by itself on a real cluster, by our hand on a simulated one.

On the embedded cluster time stands still between two commands and while a command works. It moves by what a person
would have waited, and, while a command itself waits for the cluster (`rollout status`, `delete`, `drain`), in small
steps, each taken only when the command sleeps. So a replay shows the same on a fast machine and on a busy one.
"""

from __future__ import annotations

import time
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from typing import Protocol

from srearena.cluster import Cluster

TYPING = 0.1
"""Seconds that one command takes, at least."""
LONGEST = 300.0
"""Seconds after which nobody waits for a command any more."""


class Passing(Protocol):
    """Lets time pass."""

    def pause(self, seconds: float) -> None:
        """A person waits."""

    def attend(self, process: Popen[str], limit: float) -> None:
        """A command runs to its end; it waits for the cluster for `limit` seconds at most."""


class RealTime:
    """Time that passes by itself."""

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    def attend(self, process: Popen[str], limit: float) -> None:
        process.wait(timeout=LONGEST + 30)


class StandingTime:
    """The time of an embedded cluster with speed 0."""

    STEP = 0.25
    POLL = 0.004
    ASLEEP = 4
    """How often in a row a command must be seen asleep before it counts as waiting."""
    POLLING = 1.0
    """Commands that poll by their own clock (drain, run --attach) see at least this share of real time pass."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def pause(self, seconds: float) -> None:
        self._cluster.wait(seconds)

    def attend(self, process: Popen[str], limit: float) -> None:
        passed, asleep, deadline = 0.0, 0, time.monotonic() + LONGEST
        while time.monotonic() < deadline:
            try:
                process.wait(timeout=self.POLL)
                break
            except TimeoutExpired:
                # What the command has sent is answered before time may move.
                self._cluster.wait(0)
                asleep = asleep + 1 if sleeps(process.pid) else 0
            if asleep >= self.ASLEEP and passed < limit:
                self._cluster.wait(self.STEP)
                passed += self.STEP
                asleep = 0
        self._cluster.wait(TYPING)


def sleeps(pid: int) -> bool:
    """Whether no thread of a process or its children has anything to do but wait."""
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            if task.joinpath("stat").read_text().rpartition(")")[2].split()[0] not in "SI":
                return False
            if not all(sleeps(int(child)) for child in task.joinpath("children").read_text().split()):
                return False
    except OSError:
        return False
    return True
