"""A client of one model: attempts, retries, and what they cost.

`attempt` sends one request. `complete` retries transient failures with growing delays, or with the delay the server
asks for. Tokens of replies that broke off are counted. A rejected optional parameter is left out from then on, and the
request is sent again at once.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from time import monotonic

from srearena.llm.errors import ModelUnavailable, ParameterRejected, TransientError
from srearena.llm.messages import ModelRequest, Reply, Usage
from srearena.llm.pacing import backoff

OnText = Callable[[str], None]
Sleep = Callable[[float], Awaitable[object]]


def ignore_text(text: str) -> None:
    """An `OnText` that shows nothing."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Number of tries and timeouts of one request. The defaults are chosen: most outages of a provider are shorter."""

    tries: int = 6
    first_wait: float = 1.0
    """Seconds before the second try; the delay doubles with each further one."""
    silence: float = 120.0
    """Seconds without a byte after which a connection counts as dead."""
    whole: float = 900.0
    """Seconds for one whole reply."""


@dataclass(slots=True)
class CallStats:
    """What one request took besides its reply."""

    tries: int = 0
    failures: list[str] = field(default_factory=list)
    lost: Usage = field(default_factory=Usage)
    """Usage of replies that broke off, as far as it was reported."""
    seconds: float = 0.0


class ModelClient(ABC):
    """Base class of clients: subclasses implement `attempt`, and `complete` retries it."""

    def __init__(self, policy: RetryPolicy | None = None, sleep: Sleep = asyncio.sleep) -> None:
        self._policy = policy or RetryPolicy()
        self._sleep = sleep

    @abstractmethod
    async def attempt(self, request: ModelRequest, stats: CallStats, on_text: OnText = ignore_text) -> Reply:
        """Send a request once; raises a `TransientError` if a retry may help, else another `ModelError`."""

    @abstractmethod
    async def preflight(self) -> None:
        """Raise a `ModelError` where no request can succeed: no connection, a refused key. Costs no tokens."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close the connections."""

    async def complete(self, request: ModelRequest, stats: CallStats, on_text: OnText = ignore_text) -> Reply:
        """Return the model's reply, or raise a `ModelError`. `stats` is updated in both cases."""
        start = monotonic()
        failed = 0
        try:
            while True:
                stats.tries += 1
                try:
                    return await self.attempt(request, stats, on_text)
                except ParameterRejected as problem:
                    stats.failures.append(str(problem))
                except TransientError as problem:
                    stats.failures.append(str(problem))
                    failed += 1
                    if failed >= self._policy.tries:
                        raise ModelUnavailable(
                            f"the model did not answer in {failed} tries; last: {problem}",
                            status=problem.status,
                            detail=problem.detail,
                        ) from problem
                    wait = problem.wait
                    if wait is None:
                        wait = backoff(self._policy.first_wait, failed - 1, str(id(stats)))
                    await self._sleep(wait)
        finally:
            stats.seconds += monotonic() - start
