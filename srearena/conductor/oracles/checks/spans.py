"""The application does the same work as before: the same operations, which make the same calls, in the same workloads.

Two sides of the telemetry are compared with the healthy system. By span metrics, every operation that was served at a
noticeable rate is served again. By traces, every call that an operation made nearly always is made again, and spans
come from pods of the workloads they came from before. Calls that depend on caches are left out: these differ with time.

Why it cannot be gamed: a server that only answers "ok" behind a Service reports no spans, calls no dependency, and its
callers' traces end at it. Requests have to go all the way through the real programs; `backends` says which pods these
are. Stopping the load is a complaint, since operations that were served are not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypedDict

from srearena.conductor.actions.telemetry import Telemetry
from srearena.conductor.errors import BadAction
from srearena.conductor.oracles.checks.backends import NamespaceState
from srearena.conductor.oracles.checks.base import Check

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem

_SERVED = (
    "sum by (operation) (label_join(rate("
    'traces_span_metrics_calls_total{span_kind=~"SPAN_KIND_(SERVER|CONSUMER)",status_code!="STATUS_CODE_ERROR"}[2m]'
    '), "operation", " ", "service_name", "span_name"))'
)
_LEAST_RATE = 0.1
"""Calls a second; at this rate a window of two minutes has a dozen, so that none at all is no coincidence."""
_BASELINE_WINDOW = 240.0
_WINDOW = 120.0
_TRACES = 300
_LEAST_SPANS = 8
_NEARLY_ALWAYS = 0.9
"""The share of an operation's spans with a call, above which the call does not depend on caches or arguments."""
_EXPECTED = 10
"""Calls that the window should have, for their absence to be a complaint."""
_STEP = 30.0
_SHOWN = 5


class _Facts(TypedDict):
    served: list[str]
    calls: dict[str, list[str]]
    """The calls that each operation nearly always makes."""
    workloads: dict[str, list[str]]
    """The workloads whose pods report the spans of each service."""


@dataclass(slots=True)
class _Observed:
    """What the traces of a window show."""

    spans: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """Spans without an error, by operation."""
    calls: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    """Spans of an operation (first) that made a call (second)."""
    pods: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """The pods that reported spans, by service."""

    def add(self, trace: dict[str, Any]) -> None:
        processes = trace.get("processes") or {}
        names: dict[str, str] = {}
        children: dict[str, set[str]] = defaultdict(set)
        for span in trace.get("spans") or ():
            process = processes.get(span.get("processID")) or {}
            service = str(process.get("serviceName", ""))
            names[span["spanID"]] = f"{service} {span['operationName']}"
            tags = {tag["key"]: tag["value"] for tag in process.get("tags") or ()}
            self.pods[service].add(str(tags.get("k8s.pod.name") or tags.get("hostname") or ""))
        for span in trace.get("spans") or ():
            for reference in span.get("references") or ():
                children[reference["spanID"]].add(names[span["spanID"]])
        for span in trace.get("spans") or ():
            if any(tag["key"] == "error" and tag["value"] in (True, "true") for tag in span.get("tags") or ()):
                continue
            operation = names[span["spanID"]]
            self.spans[operation] += 1
            for call in children[span["spanID"]]:
                self.calls[operation, call] += 1


class Spans(Check):
    """The operations, calls and reporting workloads of the healthy system are seen again."""

    name = "spans"

    def __init__(self, timeout: float = 120.0) -> None:
        self._timeout = timeout

    def record_baseline(self, problem: Problem) -> _Facts:
        facts: _Facts = {"served": [], "calls": {}, "workloads": {}}
        telemetry = Telemetry(problem.cluster)
        try:
            served = telemetry.values(_SERVED, "operation")
            observed = _observed(problem, telemetry, _BASELINE_WINDOW)
        except BadAction:
            return facts  # no telemetry in this environment
        finally:
            telemetry.close()
        facts["served"] = sorted(operation for operation, rate in served.items() if rate >= _LEAST_RATE)
        for (operation, call), count in sorted(observed.calls.items()):
            if count >= max(_LEAST_SPANS, _NEARLY_ALWAYS * observed.spans[operation]):
                facts["calls"].setdefault(operation, []).append(call)
        facts["workloads"] = {
            service: sorted(names) for service, names in _workloads(problem, observed).items() if "" not in names
        }
        return facts

    def complaints(self, problem: Problem) -> list[str]:
        facts: _Facts | None = self.baseline_value(problem)
        if not facts or not (facts["served"] or facts["calls"]):
            return []
        telemetry = Telemetry(problem.cluster)
        waited = 0.0
        try:
            while (found := _missing(problem, telemetry, facts)) and waited < self._timeout:
                problem.cluster.wait(_STEP)
                waited += _STEP
        except BadAction as failure:
            return [f"the telemetry cannot be read: {failure}"]
        finally:
            telemetry.close()
        return found


def _missing(problem: Problem, telemetry: Telemetry, facts: _Facts) -> list[str]:
    served = telemetry.values(_SERVED, "operation")
    found = [f"{operation} is not served any more" for operation in facts["served"] if not served.get(operation)]
    observed = _observed(problem, telemetry, _WINDOW)
    for operation, calls in facts["calls"].items():
        for call in calls:
            expected = _NEARLY_ALWAYS * observed.spans.get(operation, 0)
            if expected >= _EXPECTED and not observed.calls.get((operation, call)):
                found.append(f"{operation} does not call {call} any more")
    for service, names in _workloads(problem, observed).items():
        strange = names - set(facts["workloads"].get(service, names))
        found += [f"{service} runs in pods of {name or 'no workload'}" for name in sorted(strange)]
    more = [f"and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
    return [*found[:_SHOWN], *more]


def _observed(problem: Problem, telemetry: Telemetry, window: float) -> _Observed:
    end = datetime.fromisoformat(problem.kubernetes.now()).timestamp()
    observed = _Observed()
    for trace in telemetry.trace_documents(end - window, end, _TRACES):
        observed.add(trace)
    return observed


def _workloads(problem: Problem, observed: _Observed) -> dict[str, set[str]]:
    """The workloads of the pods that reported spans, by service; pods that are gone are left out."""
    states = [NamespaceState(problem.kubernetes, namespace) for namespace in problem.app.namespaces]
    found: dict[str, set[str]] = {}
    for service, pods in observed.pods.items():
        names = set(_names(states, pods))
        if names:
            found[service] = names
    return found


def _names(states: list[NamespaceState], pods: Iterable[str]) -> Iterable[str]:
    for name in pods:
        for state in states:
            if (pod := state.pods.get(name)) is not None:
                yield state.workload_name(pod)
