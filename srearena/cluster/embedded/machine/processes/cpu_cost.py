"""The virtual time that computing takes, and the granularity of long-running computations.

Small amounts of work are accumulated until they are worth an event on the clock. A process that computes without ever
waiting is charged increasing time per step, so that a busy loop has a bounded cost per simulated hour.
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
    """The recent CPU use of a family of processes: a leaky bucket that computing fills and waiting empties."""

    __slots__ = ("_at", "_debt", "clock", "level")

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.level = 0.0
        self._debt = 0.0
        self._at = clock.now

    def charge(self, seconds: float) -> float:
        """Account for work, and return how long to sleep for it now; small amounts are accumulated first."""
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
        """The weighted amount of work, after the idle time since the last call."""
        now = self.clock.now
        if self.level:
            self.level = max(0.0, self.level - 10 * (now - self._at))
            seconds = max(seconds, min(LONGEST_STEP, seconds * (1 + self.level / 2) ** 2))
        self._at = now
        return seconds

    def held_up(self, seconds: float) -> None:
        """Account for throttling: waiting for the CPU is not idle time."""
        self._at += seconds
