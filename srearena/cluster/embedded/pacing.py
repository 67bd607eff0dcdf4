"""How virtual time follows the wall clock. The only module of the simulator that reads the wall clock.

`speed` virtual seconds pass per real second; at speed 0 time stands still until `advance`, which makes a run
repeatable to the byte. While fast-forwarding is on (`hurry`), time jumps from event to event as long as a client's
request waits for an event, and stops at that instant. Long periods are simulated in slices of a few milliseconds, and
between two slices the API serves requests.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from time import monotonic
from time import time as wall_now  # noqa: TID251 - a new cluster's now is the real now

from srearena.cluster.embedded.clock import Clock

__all__ = ["Pacer", "wall_now"]

_SLICE_SECONDS = 0.005
_LONGEST_NAP = 0.5


class Pacer:
    def __init__(self, clock: Clock, speed: float = 1.0, wall: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._wall = wall
        self._speed = speed
        self._anchor_wall = wall()
        self._anchor_virtual = clock.now
        self._woken = asyncio.Event()
        self.until = math.inf
        """The instant at which time stops to flow, whatever the speed."""
        self._advancing = 0
        self._hurries: dict[int, float] = {}
        """Active fast-forwards, and the instant at which each ends."""
        self._hurried = 0
        self.flown = 0.0
        """Virtual seconds gained by fast-forwarding."""

    @property
    def speed(self) -> float:
        return self._speed

    @speed.setter
    def speed(self, value: float) -> None:
        self._anchor(self._due())
        self._speed = value
        self._woken.set()

    @property
    def now(self) -> float:
        """The virtual instant, also between two events."""
        return max(self._due(), self._clock.now)

    def resume(self) -> None:
        """Let time flow from where it stood: none has passed since."""
        self._anchor(self._clock.now)

    def _anchor(self, virtual: float) -> None:
        self._anchor_wall = self._wall()
        self._anchor_virtual = virtual

    def _due(self) -> float:
        """The virtual instant that corresponds to the wall clock."""
        flowed = (self._wall() - self._anchor_wall) * self._speed
        return self._anchor_virtual + min(flowed, max(0.0, self.until - self._anchor_virtual))

    def catch_up(self) -> None:
        """Advance to the present, for one slice at most; called before each request is served."""
        if self._advancing:
            return
        if self._speed:
            self._run_slice(self._due())
        else:
            # Effects of previous requests at this instant are processed before the next request.
            self._clock.run_until(self._due())

    def _run_slice(self, until: float) -> bool:
        pause_at = self._wall() + _SLICE_SECONDS
        return self._clock.run_until(until, lambda: self._wall() >= pause_at)

    async def advance(self, seconds: float) -> None:
        """Advance by that many virtual seconds at full speed."""
        until = max(self._due(), self._clock.now) + seconds
        self._advancing += 1
        try:
            while not self._run_slice(until):
                await asyncio.sleep(0)
        finally:
            self._advancing -= 1
            self._anchor(self._clock.now)

    def hurry(self, limit: float) -> int:
        """Fast-forward while requests wait, by `limit` virtual seconds at most; returns the number for `ease`."""
        self._hurried += 1
        self._hurries[self._hurried] = max(self._due(), self._clock.now) + limit
        self._woken.set()
        return self._hurried

    def ease(self, number: int) -> None:
        self._hurries.pop(number, None)

    def _fly(self) -> None:
        """Run from event to event until no client waits; clients that still wait at the limit give up."""
        clock, pause_at = self._clock, self._wall() + _SLICE_SECONDS
        last = max(self._hurries.values())

        def landed() -> bool:
            return not clock.external_waits or self._wall() >= pause_at

        while not landed():
            upcoming = clock.next_event_at()
            if upcoming is not None and upcoming <= last:
                clock.run_until(upcoming, landed)
                continue
            clock.run_until(last)
            for give_up in tuple(clock.external_waits):
                clock.served(give_up)
                give_up()
        due = self._due()
        self.flown += max(0.0, clock.now - due)
        self._anchor(max(due, clock.now))

    async def run(self) -> None:
        """Advance time until cancelled."""
        self._woken = asyncio.Event()  # of the loop that runs this
        self._clock.on_earlier = self._woken.set
        try:
            while True:
                if self._advancing:
                    await asyncio.sleep(_SLICE_SECONDS)
                    continue
                if self._hurries and self._clock.external_waits:
                    self._fly()
                    await asyncio.sleep(0)
                    continue
                done = self._run_slice(self._due())
                await self._nap(0.0 if not done else self._time_to_next_event())
        finally:
            self._clock.on_earlier = None

    def _time_to_next_event(self) -> float:
        upcoming = self._clock.next_event_at()
        if upcoming is None or not self._speed:
            return _LONGEST_NAP
        return min(max(0.0, (upcoming - self._due()) / self._speed), _LONGEST_NAP)

    async def _nap(self, seconds: float) -> None:
        if not seconds:
            await asyncio.sleep(0)
            return
        # Not wait_for: before Python 3.12 it swallows a cancellation that comes together with what it waits for.
        self._woken.clear()
        alarm = asyncio.get_running_loop().call_later(seconds, self._woken.set)
        try:
            await self._woken.wait()
        finally:
            alarm.cancel()
