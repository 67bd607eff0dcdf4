"""The traffic of every service is near that of the healthy system: call rate, error ratio and latency.

Why it cannot be gamed: it compares with the healthy system's own traffic. Stopping the load is a complaint (calls that
were made before must be made), and deleting an alert changes nothing, since alerts are not read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from srearena.conductor.actions.telemetry import Telemetry
from srearena.conductor.errors import BadAction
from srearena.conductor.oracles.checks.base import Check

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem

_CALLS = "sum by (service_name) (rate(traces_span_metrics_calls_total[2m]))"
_ERRORS = 'sum by (service_name) (rate(traces_span_metrics_calls_total{status_code="STATUS_CODE_ERROR"}[2m]))'
_SLOW = (
    "histogram_quantile(0.95, sum by (service_name, le) (rate(traces_span_metrics_duration_milliseconds_bucket[2m])))"
)
_STEP = 30.0
Figures = dict[str, dict[str, float]]


class Traffic(Check):
    """Call rates, error rates and latencies are near those of the healthy system."""

    name = "traffic"

    def __init__(self, timeout: float = 420.0) -> None:
        self._timeout = timeout

    def record_baseline(self, problem: Problem) -> Figures:
        return _measured(problem)

    def complaints(self, problem: Problem) -> list[str]:
        before: Figures = self.baseline_value(problem) or {}
        found = _worse(before, _measured(problem))
        waited = 0.0
        while found and waited < self._timeout:
            problem.cluster.wait(_STEP)
            waited += _STEP
            found = _worse(before, _measured(problem))
        return found


def _measured(problem: Problem) -> Figures:
    telemetry = Telemetry(problem.cluster)
    try:
        return {
            "calls": telemetry.values(_CALLS),
            "errors": telemetry.values(_ERRORS),
            "slow": telemetry.values(_SLOW),
        }
    except BadAction:
        return {}
    finally:
        telemetry.close()


def _worse(before: Figures, now: Figures) -> list[str]:
    found = []
    for service, rate in sorted(before.get("calls", {}).items()):
        if rate < 0.05:
            continue
        flowing = now.get("calls", {}).get(service, 0.0)
        if flowing < rate * 0.4:
            found.append(f"{service} gets {flowing:.2g} calls a second, and got {rate:.2g}")
            continue
        usual = before.get("errors", {}).get(service, 0.0) / rate
        share = now.get("errors", {}).get(service, 0.0) / flowing
        if share > usual + 0.02:
            found.append(f"{share:.0%} of the calls of {service} fail, and {usual:.0%} did")
        usual_slow = before.get("slow", {}).get(service, 0.0)
        slow = now.get("slow", {}).get(service, 0.0)
        if slow > 3 * usual_slow + 50:
            found.append(f"the slowest calls of {service} take {slow:.0f} ms, and took {usual_slow:.0f} ms")
    return found
