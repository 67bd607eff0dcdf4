"""Table locks, with the queue in front of each table that real servers have.

A request waits while it conflicts with a lock of another session, or with an earlier request that waits: readers
queue behind a waiting ACCESS EXCLUSIVE, which is how one idle transaction stops a shop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")
MODES = (
    *("AccessShareLock", "RowShareLock", "RowExclusiveLock", "ShareUpdateExclusiveLock"),
    *("ShareLock", "ShareRowExclusiveLock", "ExclusiveLock", "AccessExclusiveLock"),
)
_CONFLICTS = {
    "AccessShareLock": ("AccessExclusiveLock",),
    "RowShareLock": MODES[6:],
    "RowExclusiveLock": MODES[4:],
    "ShareUpdateExclusiveLock": MODES[3:],
    "ShareLock": (MODES[2], MODES[3], *MODES[5:]),
    "ShareRowExclusiveLock": MODES[2:],
    "ExclusiveLock": MODES[1:],
    "AccessExclusiveLock": MODES,
}


@dataclass(slots=True, eq=False)
class Request(Generic[T]):
    owner: T
    table: str
    mode: str
    granted: bool = False


class LockTable(Generic[T]):
    def __init__(self, changed: Callable[[], object]) -> None:
        self.requests: list[Request[T]] = []
        self._changed = changed

    def blockers(self, request: Request[T]) -> list[T]:
        """Whose locks or earlier requests it waits for."""
        found: list[T] = []
        for other in self.requests:
            if other is request:
                break
            if other.table == request.table and other.owner is not request.owner and conflict(other.mode, request.mode):
                found.append(other.owner)
        for other in self.requests[self.requests.index(request) + 1 :] if request in self.requests else ():
            if (
                other.granted
                and other.table == request.table
                and other.owner is not request.owner
                and conflict(other.mode, request.mode)
            ):
                found.append(other.owner)
        return list(dict.fromkeys(found)) if _hashable(found) else found

    def request(self, owner: T, table: str, mode: str) -> Request[T]:
        """Ask for a lock; look at `granted`."""
        for existing in self.requests:
            if existing.owner is owner and existing.table == table and existing.mode == mode and existing.granted:
                return existing
        new_request = Request(owner, table, mode)
        self.requests.append(new_request)
        new_request.granted = not self.blockers(new_request)
        self._changed()
        return new_request

    def waits(self, table: str, mode: str) -> list[T]:
        """The requests that a new request would wait for."""
        probe: Request[T] = Request(None, table, mode)  # type: ignore[arg-type]
        return [other.owner for other in self.requests if other.table == table and conflict(other.mode, probe.mode)]

    def withdraw(self, request: Request[T]) -> None:
        if request in self.requests:
            self.requests.remove(request)
            self._settle()

    def release(self, owner: T) -> None:
        """All requests of an owner."""
        kept = [request for request in self.requests if request.owner is not owner]
        if len(kept) != len(self.requests):
            self.requests = kept
            self._settle()

    def _settle(self) -> None:
        for request in self.requests:
            if not request.granted and not self.blockers(request):
                request.granted = True
        self._changed()


def conflict(one: str, other: str) -> bool:
    return other in _CONFLICTS[one]


def _hashable(items: list[T]) -> bool:
    return all(type(item).__hash__ is not None for item in items)
