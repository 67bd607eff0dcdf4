"""A metric in Prometheus is near its value on the healthy system, such as a request rate or CPU usage.

Why it cannot be gamed: too low is a complaint as well as too high, so stopping the source or the exporter does not
help; and the metrics are counters of nodes and proxies, which a restart of the faulty program does not reset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from srearena.conductor.actions.telemetry import Telemetry
from srearena.conductor.errors import BadAction
from srearena.conductor.oracles.checks.base import Check

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem

_STEP = 15.0


class MetricRange(Check):
    """The value of `query` is between `least` and `most` times the healthy one, give or take `slack`."""

    name = "measure"

    def __init__(
        self, description: str, query: str, *, least: float, most: float, slack: float = 0.0, timeout: float = 240.0
    ) -> None:
        self._description = description
        self._query = query
        self._least = least
        self._most = most
        self._slack = slack
        self._timeout = timeout

    def record_baseline(self, problem: Problem) -> float | None:
        return self._value(problem)

    def complaints(self, problem: Problem) -> list[str]:
        healthy = self.baseline_value(problem)
        if healthy is None:
            return []
        low, high = healthy * self._least - self._slack, healthy * self._most + self._slack
        waited = 0.0
        while True:
            value = self._value(problem)
            if value is not None and low <= value <= high:
                return []
            if waited >= self._timeout:
                break
            problem.cluster.wait(_STEP)
            waited += _STEP
        now = "cannot be measured" if value is None else f"is {value:.3g}"
        return [f"{self._description} {now}, and was {healthy:.3g} on the healthy system"]

    def _value(self, problem: Problem) -> float | None:
        telemetry = Telemetry(problem.cluster)
        try:
            answer = telemetry.query(self._query.replace("{ns}", problem.namespace))
        except BadAction:
            return None
        finally:
            telemetry.close()
        return None if answer == "(no data)" else float(answer.split()[-1])
