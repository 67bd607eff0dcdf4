"""The rate limit of object creation by a controller, as of the controller manager's client.

It has no effect on sets of a few dozen pods. A set of a hundred thousand replicas grows for hours, as on a real
cluster, instead of filling the cluster in one reconciliation. (The real limit is 20 requests a second; creating a
pod takes several: the pod, its events, the status of the set.)
"""

from __future__ import annotations

from srearena.cluster.embedded.clock import Clock

PER_SECOND = 5.0
BURST = 100.0
_OBJECTS_PER_LOOK_SECOND = 100
"""The reconciliation of a large set takes one second per this many pods."""


class CreationPace:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._allowed = BURST
        self._counted_at = clock.now
        self._resting: dict[str, float] = {}
        """When a rate-limited set may continue."""

    def allows(self, key: str, size: int) -> bool:
        """Whether one more pod may be created for a set of `size`; otherwise the set must wait."""
        now = self._clock.now
        self._allowed = min(BURST, self._allowed + (now - self._counted_at) * PER_SECOND)
        self._counted_at = now
        if self._allowed >= 1:
            self._allowed -= 1
            return True
        self._resting[key] = now + max(1.0, size / _OBJECTS_PER_LOOK_SECOND)
        return False

    def rest(self, key: str) -> float:
        """Remaining wait of a rate-limited set in seconds."""
        until = self._resting.get(key)
        if until is None:
            return 0.0
        if until <= self._clock.now:
            del self._resting[key]
            return 0.0
        return until - self._clock.now
