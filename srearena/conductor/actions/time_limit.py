"""The time limit of one action. A thread cannot be killed, so everything that may take long checks its limit."""

from __future__ import annotations

from threading import Event
from time import monotonic

from srearena.conductor.errors import BadAction

ACTION_SECONDS = 120.0
"""Real seconds; chosen: two of the longest kubectl commands."""


class TimeLimit:
    """A limit in real seconds, which another thread can end early."""

    def __init__(self, seconds: float = ACTION_SECONDS) -> None:
        self._seconds = seconds
        self._end = monotonic() + seconds
        self._stopped = Event()

    @property
    def reached(self) -> bool:
        return self._stopped.is_set() or monotonic() >= self._end

    def check(self) -> None:
        """Raise BadAction where the limit is reached."""
        if self.reached:
            raise BadAction(f"the action was stopped: one action may take at most {self._seconds:g} s")

    def extend(self, seconds: float) -> None:
        """Add time that the action has waited on request."""
        self._end += seconds

    def stop(self) -> None:
        """End the time from another thread."""
        self._stopped.set()
