"""The moment a system recovered, as seen from outside: by objects and telemetry, in the cluster's time.

An agent says when it is done; that is not when the system works again. The system has recovered at the latest of three
moments: the last effective write to an object that now differs from what the agent found, the last pod of the
application that became ready, and the last sample in which calls of the application failed more than on the healthy
system. A rollout that was under way at the submission and completes by itself therefore counts with its end.

The first two have the resolution of Kubernetes timestamps, one second; the last that of the samples. A removed object
or field leaves no timestamp: where that is all that can be seen of a repair, the submission is the upper bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from srearena.conductor.actions.telemetry import Telemetry
from srearena.conductor.errors import BadAction
from srearena.conductor.grading.baseline import Baseline
from srearena.conductor.problems.base import Problem
from srearena.service.kubernetes import Obj

STEP = 15.0
"""Seconds between samples of telemetry: Prometheus's usual scrape interval."""
_OBJECTS = 1.0
"""The resolution of timestamps in Kubernetes objects, in seconds."""
_CALLS = "traces_span_metrics_calls_total"
_ERRORS = 'traces_span_metrics_calls_total{status_code="STATUS_CODE_ERROR"}'
_MARGIN = 0.05
"""Share of failing calls above the healthy system's; chosen above the variation of one sample."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """When the system recovered, and by what that was seen."""

    at: float
    """Unix seconds of the cluster's clock."""
    source: str
    """`writes`, `readiness`, `telemetry`; `submission` if a repair left no timestamp, `start` where there was none."""
    resolution: float
    """Seconds."""


def measure_recovery(problem: Problem, found: Baseline, left: Baseline, since: str, submitted: str) -> Recovery:
    """Measure on a system that works again; `found` and `left` are its objects at `since` and at the submission."""
    start = _seconds(since)
    moments = [Recovery(start, "start", _OBJECTS)]
    moments += [Recovery(at, "writes", _OBJECTS) for at in _writes(found, left)]
    moments += [Recovery(at, "readiness", _OBJECTS) for at in _readiness(problem)]
    moments += [Recovery(at, "telemetry", STEP) for at in _failures(problem, start)]
    latest = max(moments, key=lambda moment: moment.at)
    if latest.at <= start and found.differences(left):
        return Recovery(_seconds(submitted), "submission", _OBJECTS)
    return latest


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _writes(found: Baseline, now: Baseline) -> Iterator[float]:
    """The last writes of objects whose content differs; an object that was removed has none."""
    for difference in found.differences(now):
        obj = now.objects.get(difference.key)
        for entry in ((obj or {}).get("metadata") or {}).get("managedFields") or ():
            if entry.get("time") and entry.get("subresource") != "status":
                yield _seconds(str(entry["time"]))


def _readiness(problem: Problem) -> Iterator[float]:
    """When the pods of the application became ready."""
    for namespace in problem.app.namespaces:
        for pod in problem.kubernetes.list("pods", namespace):
            if any(owner.get("controller") for owner in pod["metadata"].get("ownerReferences", ())):
                yield from (_seconds(str(condition["lastTransitionTime"])) for condition in _ready(pod))


def _ready(pod: Obj) -> Iterator[Obj]:
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition["type"] == "Ready" and condition["status"] == "True" and condition.get("lastTransitionTime"):
            yield condition


def _failures(problem: Problem, start: float) -> Iterator[float]:
    """The ends of the samples in which more calls of some service failed than on the healthy system."""
    end = _seconds(problem.kubernetes.now())
    telemetry = Telemetry(problem.cluster)
    try:
        calls, errors = (
            telemetry.samples(f"sum by (service_name) ({counter})", start, end, STEP) for counter in (_CALLS, _ERRORS)
        )
        usual = _usual(problem, telemetry)
    except BadAction:
        return  # no telemetry: objects are all there is to see
    finally:
        telemetry.close()
    for service, counts in errors.items():
        total = dict(calls.get(service, ()))
        for (_, before), (at, after) in pairwise(counts):
            new_calls = total.get(at, 0.0) - total.get(at - STEP, 0.0)
            failed = after - before
            if failed >= 1 and new_calls > 0 and failed / new_calls > usual.get(service, 0.0) + _MARGIN:
                yield at


def _usual(problem: Problem, telemetry: Telemetry) -> dict[str, float]:
    """The share of failing calls of each service in the two minutes before the fault."""
    if not problem.injected_at:
        return {}
    at = f"[2m] @ {_seconds(problem.injected_at):.0f}"
    calls, errors = (
        telemetry.values(f"sum by (service_name) (increase({counter}{at}))") for counter in (_CALLS, _ERRORS)
    )
    return {service: count / calls[service] for service, count in errors.items() if calls.get(service)}
