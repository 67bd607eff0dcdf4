"""How virtual time follows the wall clock: the only place in the simulator that knows the latter.

`speed` virtual seconds pass per real second; at speed 0 time stands still until somebody advances it, which is what
makes a run repeatable to the byte. Somebody in a hurry lets it fly from event to event for as long as a client's
request waits for something to happen, and to that very instant. Long stretches are simulated in slices of a few
milliseconds, and between two slices the API answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic
from time import time as wall_now  # noqa: TID251 - a new cluster's now is the real now

from srearena.cluster.embedded.clock import Clock

__all__ = ["Pacer", "wall_now"]

_SLICE_SECONDS = 0.005
_LONGEST_NAP = 0.5
_OUTSIDE_POLL = 0.001


class Pacer:
    def __init__(self, clock: Clock, speed: float = 1.0, wall: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._wall = wall
        self._speed = speed
        self._anchor_wall = wall()
        self._anchor_virtual = clock.now
        self._woken = asyncio.Event()
        self._advancing = 0
        self._hurries: dict[int, float] = {}
        """Who is in a hurry, and the instant by which it gives up."""
        self._hurried = 0
        self.flown = 0.0
        """How much more time has passed because of hurries than would have without."""

    @property
    def speed(self) -> float:
        return self._speed

    @speed.setter
    def speed(self, value: float) -> None:
        self._anchor(self._due())
        self._speed = value
        self._woken.set()

    def _anchor(self, virtual: float) -> None:
        self._anchor_wall = self._wall()
        self._anchor_virtual = virtual

    def _due(self) -> float:
        """The virtual instant that ought to be now."""
        return self._anchor_virtual + (self._wall() - self._anchor_wall) * self._speed

    def catch_up(self) -> None:
        """Let time flow up to the present, for one slice at most; called before each request is answered."""
        if self._advancing:
            return
        if self._speed:
            self._run_slice(self._due())
        else:
            # What previous requests led to at this instant comes before the next one, however long it takes us.
            self._clock.run_until(self._due())

    def _run_slice(self, until: float) -> bool:
        pause_at = self._wall() + _SLICE_SECONDS
        return self._clock.run_until(until, lambda: self._wall() >= pause_at or self._is_held())

    def _is_held(self) -> bool:
        """Whether time must not fly on: an answer from outside the simulation takes the time it takes."""
        return bool(self._advancing and self._clock.awaited)

    async def advance(self, seconds: float) -> None:
        """Let that many virtual seconds pass at full speed."""
        until = max(self._due(), self._clock.now) + seconds
        self._advancing += 1
        try:
            while self._is_held() or not self._run_slice(until):
                await asyncio.sleep(_OUTSIDE_POLL if self._is_held() else 0)
        finally:
            self._advancing -= 1
            self._anchor(self._clock.now)

    def hurry(self, limit: float) -> int:
        """Let time fly while requests wait, for so many seconds of it at most; the number to `ease` it by."""
        self._hurried += 1
        self._hurries[self._hurried] = max(self._due(), self._clock.now) + limit
        self._woken.set()
        return self._hurried

    def ease(self, number: int) -> None:
        self._hurries.pop(number, None)

    def _fly(self) -> None:
        """From event to event until nobody waits any more; who still waits at the last instant does so in vain."""
        clock, pause_at = self._clock, self._wall() + _SLICE_SECONDS
        last = max(self._hurries.values())

        def landed() -> bool:
            return not clock.wanted or bool(clock.awaited) or self._wall() >= pause_at

        while not landed():
            upcoming = clock.next_event_at()
            if upcoming is not None and upcoming <= last:
                clock.run_until(upcoming, landed)
                continue
            clock.run_until(last)
            for give_up in tuple(clock.wanted):
                clock.served(give_up)
                give_up()
        due = self._due()
        self.flown += max(0.0, clock.now - due)
        self._anchor(max(due, clock.now))

    async def run(self) -> None:
        """Keep time flowing until cancelled."""
        self._clock.on_earlier = self._woken.set
        try:
            while True:
                if self._advancing:
                    await asyncio.sleep(_SLICE_SECONDS)
                    continue
                if self._hurries and self._clock.wanted:
                    self._fly()
                    await asyncio.sleep(_OUTSIDE_POLL if self._clock.awaited else 0)
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
