"""When the next request may leave: rate limits, pauses asked for by the server, back-off with jitter.

One `Pace` is shared by all requests to an endpoint, so that a 429 to one quietens all. Clock and sleeper are given,
which lets tests run hours of waiting in no time. Jitter comes from a generator seeded by the request's own key.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

MAX_WAIT = 300.0  # seconds; a server that asks for more is obeyed only this far, then asked again

Sleeper = Callable[[float], Awaitable[object]]
Clock = Callable[[], float]


def retry_after(value: str | None, now: datetime | None = None) -> float | None:
    """Seconds to wait by a Retry-After header: a number, or a date."""
    if not value:
        return None
    try:
        return min(MAX_WAIT, max(0.0, float(value)))
    except ValueError:
        pass
    try:
        until = parsedate_to_datetime(value)
    except ValueError:
        return None
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return min(MAX_WAIT, max(0.0, (until - (now or datetime.now(UTC))).total_seconds()))


def backoff(base: float, attempt: int, seed: str) -> float:
    """Exponential, with the upper half of the wait left to chance so that clients do not return in step."""
    ceiling = min(60.0, math.ldexp(base, attempt))
    return ceiling * (0.5 + random.Random(f"{seed}:{attempt}").random() / 2)


class Pace:
    """Gate that every request passes."""

    def __init__(
        self, requests_per_minute: float | None = None, sleep: Sleeper = asyncio.sleep, clock: Clock = time.monotonic
    ) -> None:
        self._gap = 60.0 / requests_per_minute if requests_per_minute else 0.0
        self._sleep = sleep
        self._clock = clock
        self._next = 0.0

    async def turn(self) -> None:
        """Wait for the next free place."""
        while True:
            now = self._clock()
            if now >= self._next:
                self._next = now + self._gap
                return
            await self._sleep(self._next - now)

    def quiet_for(self, seconds: float) -> None:
        """Nobody sends for a while: the server said so."""
        self._next = max(self._next, self._clock() + seconds)

    async def rest(self, seconds: float) -> None:
        await self._sleep(seconds)
