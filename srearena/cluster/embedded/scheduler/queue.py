"""Pods waiting for a node: the most important first, and the hopeless set aside until something changes.

A pod that did not fit waits until an event of a kind that could help it, or five minutes, brings it back; then its
back-off must have passed too (1 s, doubling to 10 s).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

from srearena.cluster.embedded.clock import Clock, Timer

BACKOFF_FIRST = 1.0
BACKOFF_LAST = 10.0
FLUSH_AFTER = 300.0


@dataclass(slots=True)
class Waiting:
    """A pod in the queue, by its place in the store."""

    namespace: str
    name: str
    uid: str
    priority: int
    since: float
    attempts: int = 0
    helped_by: frozenset[str] = field(default_factory=frozenset)
    ready_at: float = 0.0


class SchedulingQueue:
    def __init__(self, clock: Clock, wake: Callable[[], None]) -> None:
        self._clock = clock
        self._wake = wake
        self._active: list[tuple[int, float, int, Waiting]] = []
        self._aside: dict[str, Waiting] = {}
        self._returning: dict[str, Timer] = {}
        self._serial = 0

    def add(self, pod: Waiting) -> None:
        self._serial += 1
        self._aside.pop(pod.uid, None)
        heapq.heappush(self._active, (-pod.priority, pod.since, self._serial, pod))
        self._wake()

    def pop(self) -> Waiting | None:
        return heapq.heappop(self._active)[3] if self._active else None

    def set_aside(self, pod: Waiting, helped_by: frozenset[str]) -> None:
        """The pod found no node; it comes back when one of `helped_by` happens, or after a while anyway."""
        pod.attempts += 1
        pod.helped_by = helped_by
        pod.ready_at = self._clock.now + min(BACKOFF_FIRST * 2.0 ** (pod.attempts - 1), BACKOFF_LAST)
        self._aside[pod.uid] = pod
        self._schedule_return(pod, self._clock.now + FLUSH_AFTER)

    def happened(self, kind: str) -> None:
        """Something changed in the cluster: bring back whom it may help."""
        for pod in list(self._aside.values()):
            if kind in pod.helped_by or kind == "any":
                self._schedule_return(pod, max(pod.ready_at, self._clock.now))

    def changed(self, uid: str) -> None:
        """The pod itself was changed: try again."""
        pod = self._aside.get(uid)
        if pod is not None:
            self._schedule_return(pod, max(pod.ready_at, self._clock.now))

    def forget(self, uid: str) -> None:
        self._aside.pop(uid, None)
        timer = self._returning.pop(uid, None)
        if timer is not None:
            timer.cancel()

    def _schedule_return(self, pod: Waiting, when: float) -> None:
        planned = self._returning.get(pod.uid)
        if planned is not None and planned.pending:
            if planned.when <= when:
                return
            planned.cancel()
        self._returning[pod.uid] = self._clock.at(when, self._come_back, pod)

    def _come_back(self, pod: Waiting) -> None:
        self._returning.pop(pod.uid, None)
        if self._aside.get(pod.uid) is pod:
            self.add(pod)
