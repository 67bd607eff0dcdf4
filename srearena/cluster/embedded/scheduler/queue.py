"""The scheduling queue: active pods by priority, and unschedulable pods until an event may help them.

A pod that did not fit waits until an event of a kind that could help it, or a sweep that finds it idle for five
minutes, brings it back. If its back-off (1 s, doubling to 10 s, counted in whole seconds) is not over by then it yields
to every pod that need not back off, and is tried when there is none: a back-off orders pods, it does not idle the
scheduler. A pod that failed for an error rather than for want of a node sits its back-off out.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from math import floor

from srearena.cluster.embedded.clock import Clock, Timer

BACKOFF_FIRST = 1.0
BACKOFF_LAST = 10.0
IDLE_LIMIT = 300.0
SWEEP_INTERVAL = 30.0


@dataclass(slots=True)
class Waiting:
    """A queued pod, by namespace and name."""

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
        self._started = clock.now
        self._active: list[tuple[int, float, int, Waiting]] = []
        self._backing_off: list[tuple[float, int, float, int, Waiting]] = []
        self._aside: dict[str, Waiting] = {}
        self._returning: dict[str, Timer] = {}
        self._serial = 0

    def add(self, pod: Waiting) -> None:
        self._serial += 1
        self._aside.pop(pod.uid, None)
        heapq.heappush(self._active, (-pod.priority, pod.since, self._serial, pod))
        self._wake()

    def depths(self) -> dict[str, int]:
        """The number of pods by queue name."""
        return {"active": len(self._active), "backoff": len(self._backing_off), "unschedulable": len(self._aside)}

    def pop(self) -> Waiting | None:
        while self._backing_off and not self._backs_off(self._backing_off[0][-1]):
            self.add(heapq.heappop(self._backing_off)[-1])
        if self._active:
            return heapq.heappop(self._active)[-1]
        return heapq.heappop(self._backing_off)[-1] if self._backing_off else None

    def set_aside(self, pod: Waiting, helped_by: frozenset[str]) -> None:
        """Add an unschedulable pod; it returns on an event of `helped_by`, or after a timeout."""
        self._count_attempt(pod)
        pod.helped_by = helped_by
        self._aside[pod.uid] = pod
        sweeps = floor((pod.since + IDLE_LIMIT - self._started) / SWEEP_INTERVAL) + 1
        self._schedule_return(pod, self._started + sweeps * SWEEP_INTERVAL)

    def retry(self, pod: Waiting) -> None:
        """Add a pod whose attempt failed with an error: retry after the back-off."""
        self._count_attempt(pod)
        self._aside[pod.uid] = pod
        self._schedule_return(pod, pod.ready_at + 1)

    def happened(self, kind: str) -> None:
        """Move the pods that a cluster event may help back to the active queue."""
        for pod in list(self._aside.values()):
            if kind in pod.helped_by:
                self._bring_back(pod)

    def changed(self, uid: str) -> None:
        """Retry a pod that was changed."""
        pod = self._aside.get(uid)
        if pod is not None:
            self._bring_back(pod)

    def forget(self, uid: str) -> None:
        self._aside.pop(uid, None)
        timer = self._returning.pop(uid, None)
        if timer is not None:
            timer.cancel()

    def _count_attempt(self, pod: Waiting) -> None:
        pod.attempts += 1
        pod.since = self._clock.now
        pod.ready_at = floor(pod.since + min(BACKOFF_FIRST * 2.0 ** (pod.attempts - 1), BACKOFF_LAST))

    def _backs_off(self, pod: Waiting) -> bool:
        return pod.ready_at >= floor(self._clock.now)

    def _bring_back(self, pod: Waiting) -> None:
        self.forget(pod.uid)
        if not self._backs_off(pod):
            self.add(pod)
            return
        self._serial += 1
        heapq.heappush(self._backing_off, (pod.ready_at, -pod.priority, pod.since, self._serial, pod))
        self._wake()

    def _schedule_return(self, pod: Waiting, when: float) -> None:
        planned = self._returning.pop(pod.uid, None)
        if planned is not None:
            planned.cancel()
        self._returning[pod.uid] = self._clock.at(when, self._come_back, pod)

    def _come_back(self, pod: Waiting) -> None:
        self._returning.pop(pod.uid, None)
        if self._aside.get(pod.uid) is pod:
            self.add(pod)
