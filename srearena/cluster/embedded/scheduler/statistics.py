"""What the scheduler counts about its own work, as its metrics show it."""

from __future__ import annotations

from srearena.cluster.embedded.instruments import Histogram

ATTEMPT_BOUNDS = tuple(0.001 * 2**power for power in range(15))
SLI_BOUNDS = tuple(0.01 * 2**power for power in range(20))
"""Bounds of kube-scheduler's histograms."""
RESULTS = ("error", "scheduled", "unschedulable")
_ALGORITHM_SHARE = 0.4
"""Share of an attempt that the choice of a node takes; the rest is binding, which waits for the API server."""
_MAX_ATTEMPTS_LABEL = 15
"""More attempts share one label, `15+`, as in kube-scheduler."""


class Statistics:
    def __init__(self, decision_seconds: float) -> None:
        self._decision_seconds = decision_seconds
        self.attempts = {result: Histogram(ATTEMPT_BOUNDS) for result in RESULTS}
        self.algorithm = Histogram(ATTEMPT_BOUNDS)
        self.waited: dict[str, Histogram] = {}
        """From the first sight of a pod to its binding, by the number of attempts."""
        self._waiting: dict[str, tuple[float, int]] = {}
        """By pod UID: when it was first queued, and the attempts since."""

    def queued(self, uid: str, now: float) -> None:
        self._waiting.setdefault(uid, (now, 0))

    def forget(self, uid: str) -> None:
        self._waiting.pop(uid, None)

    def began(self, uid: str) -> None:
        """Count an attempt, in which the nodes are filtered and scored."""
        self.algorithm.observe_spread(1, self._decision_seconds * _ALGORITHM_SHARE)
        found = self._waiting.get(uid)
        if found is not None:
            self._waiting[uid] = (found[0], found[1] + 1)

    def failed(self, result: str) -> None:
        self.attempts[result].observe_spread(1, self._decision_seconds)

    def bound(self, uid: str, now: float) -> None:
        self.attempts["scheduled"].observe_spread(1, self._decision_seconds)
        since, attempts = self._waiting.pop(uid, (now, 1))
        label = str(attempts) if attempts < _MAX_ATTEMPTS_LABEL else f"{_MAX_ATTEMPTS_LABEL}+"
        self.waited.setdefault(label, Histogram(SLI_BOUNDS)).observe(now - since)
