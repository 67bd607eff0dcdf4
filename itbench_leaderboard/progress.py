"""Progress of a campaign: a line for every run that ends, with remaining time, cost and passes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic
from typing import Any

from itbench_evaluations.estimates import passed
from zero.record import printable


class Progress:
    """A thread-safe counter; `say` prints a line."""

    def __init__(self, total: int, say: Callable[[str], None]) -> None:
        self.total = total
        self.done = 0
        self.spent = 0.0
        self._ended_now = 0
        self._scores: list[float] = []
        self._start = monotonic()
        self._say = say
        self._lock = threading.Lock()

    def add_finished(self, cost: float, score: float | None) -> None:
        """Count a run that was finished before this campaign."""
        with self._lock:
            self.done += 1
            self.spent += cost
            if score is not None:
                self._scores.append(score)

    def add_cost(self, cost: float) -> None:
        with self._lock:
            self.spent += cost

    def report_run(self, label: str, outcome: str, verdict: dict[str, Any] | None, reason: str = "") -> None:
        score = None if verdict is None else verdict["flat_scores"].get("score")
        with self._lock:
            self.done += 1
            self._ended_now += 1
            if score is not None:
                self._scores.append(float(score))
            shown = "-" if score is None else f"{score:.2f}"
            why = f" ({printable(reason)[:120]})" if reason else ""
            self._say(f"[{self.done}/{self.total}] {label}: {outcome}, score {shown}{why}; {self._summary()}")

    def _summary(self) -> str:
        left = self.total - self.done
        pace = (monotonic() - self._start) / self._ended_now
        parts = [f"{_duration(left * pace)} left" if left else "all done", f"{self.spent:.2f} USD"]
        if self._scores:
            good = sum(passed(score) for score in self._scores)
            parts.append(f"{good} of {len(self._scores)} passed")
        return ", ".join(parts)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
