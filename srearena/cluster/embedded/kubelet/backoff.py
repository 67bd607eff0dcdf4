"""Exponential back-off, as client-go's flowcontrol.Backoff counts it.

An entry that was not updated for twice the longest delay is dropped, so that a container which ran well for
ten minutes starts again from the shortest delay.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from srearena.cluster.embedded.clock import Clock

FIRST_SECONDS = 10.0
LAST_SECONDS = 300.0


@dataclass(slots=True)
class _Entry:
    seconds: float
    updated_at: float


class BackOff:
    __slots__ = ("_clock", "_entries", "_first", "_last")

    def __init__(self, clock: Clock, first: float = FIRST_SECONDS, last: float = LAST_SECONDS) -> None:
        self._clock = clock
        self._first = first
        self._last = last
        self._entries: dict[Hashable, _Entry] = {}

    def seconds(self, key: Hashable) -> float:
        """The current delay."""
        found = self._entries.get(key)
        return found.seconds if found is not None else 0.0

    def waits_since(self, key: Hashable, event: float) -> bool:
        """Whether the delay after something that happened at `event` is still running."""
        found = self._entries.get(key)
        if found is None or self._expired(found, event):
            return False
        return self._clock.now - event < found.seconds

    def waits(self, key: Hashable) -> bool:
        """Whether the delay since the last failure is still running."""
        found = self._entries.get(key)
        if found is None or self._expired(found, self._clock.now):
            return False
        return self._clock.now - found.updated_at < found.seconds

    def next(self, key: Hashable, event: float) -> None:
        """Count a failure at `event`: the delay begins, or doubles."""
        found = self._entries.get(key)
        if found is None or self._expired(found, event):
            self._entries[key] = _Entry(self._first, self._clock.now)
        else:
            found.seconds = min(found.seconds * 2, self._last)
            found.updated_at = self._clock.now

    def forget(self, key: Hashable) -> None:
        self._entries.pop(key, None)

    def _expired(self, entry: _Entry, event: float) -> bool:
        return event - entry.updated_at > 2 * self._last
