"""How fast a controller may create objects: the client of a controller manager lets through so many requests a second.

Nobody notices with sets of a few dozen pods. A set that is asked for a hundred thousand of them grows for hours, as it
would in life, instead of filling the cluster within one look. (In life it is 20 requests a second, of which creating
a pod takes several: the pod, its events, the status of the set.)
"""

from __future__ import annotations

from srearena.cluster.embedded.clock import Clock

PER_SECOND = 5.0
BURST = 100.0
_OBJECTS_PER_LOOK_SECOND = 100
"""Looking at a large set takes a while: one second for that many pods."""


class CreationPace:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._allowed = BURST
        self._counted_at = clock.now
        self._resting: dict[str, float] = {}
        """Until when a set that has used up its allowance is left alone."""

    def allows(self, key: str, size: int) -> bool:
        """Whether one more may be created for a set that has `size` already; where not, the set has to rest."""
        now = self._clock.now
        self._allowed = min(BURST, self._allowed + (now - self._counted_at) * PER_SECOND)
        self._counted_at = now
        if self._allowed >= 1:
            self._allowed -= 1
            return True
        self._resting[key] = now + max(1.0, size / _OBJECTS_PER_LOOK_SECOND)
        return False

    def rest(self, key: str) -> float:
        """Seconds for which a set has still to be left alone."""
        until = self._resting.get(key)
        if until is None:
            return 0.0
        if until <= self._clock.now:
            del self._resting[key]
            return 0.0
        return until - self._clock.now
