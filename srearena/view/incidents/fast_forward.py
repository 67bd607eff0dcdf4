"""`FastForward`: whether the clock of a watched cluster is being advanced, which is when every question delays it.

While it runs, pages get the answers they had: half an hour passes in seconds, and none of the states in between would
be looked at for longer than a blink. What they missed is read once, at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

_RECENT = 1.0
"""Real seconds during which what was found is taken again."""
_ROUNDING = 1.0


class FastForward:
    """Two readings of a clock, one after the other, tell how fast it runs at this moment."""

    def __init__(self, now: Callable[[], float], fastest: float, real_time: Callable[[], float] = monotonic) -> None:
        """`now` reads the cluster's clock, which runs at most `fastest` times as fast as real time on its own."""
        self._now = now
        self._fastest = fastest
        self._real_time = real_time
        self._found: tuple[float, bool] | None = None
        self._last: tuple[float, float] | None = None

    def runs(self) -> bool:
        if self._found is None or self._real_time() - self._found[0] >= _RECENT:
            self._found = (self._real_time(), self._jumped() and self._jumped())
        return self._found[1]

    def _jumped(self) -> bool:
        """Whether more time has passed since the last reading than the clock's own speed allows."""
        last, begun = self._last, self._real_time()
        self._last = self._now(), begun
        # The answer may be as late as this instant.
        passed = self._real_time() - (last[1] if last else begun)
        return last is not None and self._last[0] - last[0] > passed * self._fastest + _ROUNDING
