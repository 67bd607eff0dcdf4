"""What was asked of an episode in real time, with the instants: enough to make nearly the same world again.

Recorded around actions and submissions; what an agent's own programs do in the cluster does not come through here.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from srearena.cluster import ClusterError
from srearena.cluster.base import VirtualClock
from srearena.conductor.episode.preparation import TimedCluster


class Requests:
    """The requests to one episode, in their order. Nothing is recorded on a cluster without a virtual clock."""

    def __init__(self, cluster: TimedCluster) -> None:
        self._cluster = cluster
        self._within = threading.local()
        self.entries: list[dict[str, Any]] = []
        self.made_for = 0.0
        """The instant for which the world was made."""
        self.began: float | None = None
        """When the agent started; None where nothing is recorded."""

    def begin(self) -> None:
        """The agent starts now."""
        clock = self._clock()
        if clock is not None:
            self.made_for, self.began = clock.made_for, clock.now

    @contextmanager
    def record(self, do: str, line: int, **content: Any) -> Iterator[None]:
        """Record a request while it is performed; a submission that is an action is one request.

        `line` is the number of its entry in the event log, which shows what was answered.
        """
        clock = self._clock() if self.began is not None else None
        if clock is None or getattr(self._within, "request", False):
            yield
            return
        entry = {"do": do, **content, "line": line, "at": round(clock.now, 3)}
        self.entries.append(entry)
        skipped = self._cluster.elapsed
        self._within.request = True
        try:
            yield
        finally:
            self._within.request = False
            self._end(entry, self._cluster.elapsed - skipped)

    def performed(self, action: str, line: int, seconds: float) -> None:
        """Record what has been done by other means than an action, has ended now, and took so many real seconds."""
        clock = self._clock() if self.began is not None else None
        if clock is not None:
            entry = {"do": "act", "action": action, "line": line, "at": round(clock.now - seconds, 3)}
            self.entries.append(entry)
            self._end(entry, 0.0)

    def _end(self, entry: dict[str, Any], skipped: float) -> None:
        clock = self._clock()
        now = clock.now if clock is not None else entry["at"] + skipped
        entry["until"] = round(now, 3)
        entry["flowed"] = round(max(0.0, now - entry["at"] - skipped), 3)

    def _clock(self) -> VirtualClock | None:
        try:
            return self._cluster.virtual_clock()
        except ClusterError:
            return None  # the cluster has failed, which the request itself reports
