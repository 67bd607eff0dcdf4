"""Rate limits, pauses requested by the server, and back-off with jitter.

One `Pace` is shared by all requests to an endpoint, so that a 429 response to one request delays all. Clock and sleep
function are parameters, so that tests run hours of waiting in no time. Jitter comes from a generator seeded with the
request's key.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

MAX_WAIT = 300.0  # seconds; chosen: a longer Retry-After is cut to this, and the request sent again after it

Sleeper = Callable[[float], Awaitable[object]]
Clock = Callable[[], float]


def retry_after(value: str | None, now: datetime | None = None) -> float | None:
    """Seconds to wait according to a Retry-After header, which holds a number or a date."""
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
    """Exponential delay whose upper half is random, so that clients do not retry in step.

    It stops growing at 60 seconds (chosen: rate limits of providers count per minute).
    """
    ceiling = min(60.0, math.ldexp(base, attempt))
    return ceiling * (0.5 + random.Random(f"{seed}:{attempt}").random() / 2)


class Pace:
    """Rate limiter for all requests to one endpoint."""

    def __init__(
        self, requests_per_minute: float | None = None, sleep: Sleeper = asyncio.sleep, clock: Clock = time.monotonic
    ) -> None:
        self._gap = 60.0 / requests_per_minute if requests_per_minute else 0.0
        self._sleep = sleep
        self._clock = clock
        self._next = 0.0

    async def turn(self) -> None:
        """Wait until the next request may be sent."""
        while True:
            now = self._clock()
            if now >= self._next:
                self._next = now + self._gap
                return
            await self._sleep(self._next - now)

    def pause(self, seconds: float) -> None:
        """Send no request for this long, as the server asked."""
        self._next = max(self._next, self._clock() + seconds)

    async def sleep(self, seconds: float) -> None:
        """Sleep in the caller only; other requests go on."""
        await self._sleep(seconds)
