"""The connections that applications keep to a server, as it lists them: whose they are, and which are busy.

A pool is known by its client's name; sessions that people opened have none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar


class PooledSession(Protocol):
    client: str


class BusySession(PooledSession, Protocol):
    target: str
    """What its statement works on; "" for one that is idle."""


P = TypeVar("P", bound=PooledSession)
B = TypeVar("B", bound=BusySession)


def pool_of(sessions: Iterable[P], client: str) -> list[P]:
    return [session for session in sessions if session.client == client]


def cut_down(sessions: Iterable[P], client: str, size: int, close: Callable[[P], object]) -> int:
    """Close what a pool has beyond its size; the result says how many it lacks."""
    client_pool = pool_of(sessions, client)
    for session in client_pool[max(0, size) :]:
        close(session)
    return max(0, size - len(client_pool))


def occupied(sessions: Iterable[B], client: str, busy: int, target: str) -> Iterator[tuple[B, bool]]:
    """Let so many sessions of a pool work on a target, and no more; each that this concerns, and whether it is busy.

    It does not concern those that are busy with something else, or with nothing at all.
    """
    for number, session in enumerate(pool_of(sessions, client)):
        works = number < busy
        if works or session.target == target:
            session.target = target if works else ""
            yield session, works
