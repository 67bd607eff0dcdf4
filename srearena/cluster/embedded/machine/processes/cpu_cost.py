"""How much virtual time computing takes, and how coarsely endless computing is simulated.

Small amounts of work are gathered until they are worth an event on the clock. Whoever computes on and on without ever
waiting is charged ever more time per step, so that a busy loop costs the simulation a bounded effort per hour.
"""

from __future__ import annotations

from srearena.cluster.embedded.clock import Clock

COMMAND_COST = 0.001
"""Virtual seconds that starting a program takes."""
FORK_COST = 0.0005
"""Virtual seconds that a fork takes."""
STEP_COST = 0.00004
"""Virtual seconds that one step inside a program (a builtin, a loop iteration) takes."""
LONGEST_STEP = 0.25


class Effort:
    """How busy a family of processes has been lately: a bucket that computing fills and waiting empties."""

    __slots__ = ("_at", "_debt", "clock", "level")

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.level = 0.0
        self._debt = 0.0
        self._at = clock.now

    def charge(self, seconds: float) -> float:
        """Account for work, and return how long to sleep for it now; small amounts are gathered first."""
        self._debt += self._weighed(seconds)
        if self._debt < COMMAND_COST:
            return 0.0
        due, self._debt = self._debt, 0.0
        self.level += due
        self._at += due
        return due

    def take(self, seconds: float) -> bool:
        """Account for work that calls for no sleep yet; False, and nothing is charged, where it does."""
        weight = self._weighed(seconds)
        if self._debt + weight >= COMMAND_COST:
            return False
        self._debt += weight
        return True

    def _weighed(self, seconds: float) -> float:
        """How much work counts now, after the rest since the last."""
        now = self.clock.now
        if self.level:
            self.level = max(0.0, self.level - 10 * (now - self._at))
            seconds = max(seconds, min(LONGEST_STEP, seconds * (1 + self.level / 2) ** 2))
        self._at = now
        return seconds

    def held_up(self, seconds: float) -> None:
        """Work takes that much longer than its processor time: waiting for the processor is no rest."""
        self._at += seconds
