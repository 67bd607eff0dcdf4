"""Fault propagation derived from spans: components with errors, latency or no traffic, and the calls between them.

A component is affected where its spans after the fault differ from those before by more than the thresholds below. An
edge connects a caller to a callee where failing or slow calls belong to failing or slow requests of the caller.
Components are workloads: spans name theirs, and a called Service stands for the workload that it selects.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from srearena.observer.tables import Row
from srearena.observer.window import format_timestamp

# Thresholds. Chosen: high enough that the ordinary variation of a healthy application does not reach them.
_ERROR_SHARE_INCREASE = 0.03
_MIN_ERRORS = 3
_MIN_CALLS = 10
_LATENCY_FACTOR = 2.0
_LATENCY_INCREASE_US = 20_000
_SILENT_SHARE = 0.1
_SILENCE = "hardly any request reaches"
_ADDRESS = re.compile(r"[\d.]+|[0-9a-f:]*:[0-9a-f:]*")
_SERVING = ("server", "consumer")
_CALLING = ("client", "producer")

WorkloadOf = Callable[[str], str]


@dataclass(slots=True)
class Behaviour:
    """Requests of one component (or one component's calls of another) before and after the fault."""

    calls: list[int] = field(default_factory=lambda: [0, 0])
    errors: list[int] = field(default_factory=lambda: [0, 0])
    durations: tuple[list[int], list[int]] = field(default_factory=lambda: ([], []))

    def add(self, after: bool, failed: bool, duration: int) -> None:
        self.calls[after] += 1
        self.errors[after] += failed
        self.durations[after].append(duration)

    def error_share(self, after: bool) -> float:
        return self.errors[after] / self.calls[after] if self.calls[after] else 0.0

    def p95(self, after: bool) -> int:
        """The 95th percentile of the duration, in microseconds."""
        durations = sorted(self.durations[after])
        return durations[min(len(durations) - 1, int(0.95 * len(durations)))] if durations else 0

    def degradation(self, before_seconds: float, after_seconds: float) -> str:
        """The degradation after the fault, as text; "" where there is none."""
        if self.errors[1] >= _MIN_ERRORS and self.error_share(True) - self.error_share(False) > _ERROR_SHARE_INCREASE:
            return f"{self.error_share(True):.0%} of its requests end in errors (before: {self.error_share(False):.0%})"
        usual = self.calls[0] / before_seconds
        if self.calls[0] >= _MIN_CALLS and self.calls[1] / after_seconds < _SILENT_SHARE * usual:
            return f"{_SILENCE} it any more"
        was, now = self.p95(False), self.p95(True)
        if min(self.calls) >= _MIN_CALLS and now > _LATENCY_FACTOR * was and now - was > _LATENCY_INCREASE_US:
            return f"its requests are slow: 95th percentile {now / 1000:.0f} ms (before: {was / 1000:.0f} ms)"
        return ""


def _workload(row: Row, workload_of: WorkloadOf) -> str:
    return str(row["resource"].get("k8s.deployment.name") or workload_of(row["service"]))


def _peer(row: Row) -> str:
    """The Service that a client span names; "" where it names none, or an IP address."""
    peer = str(row["tags"].get("peer.service") or row["tags"].get("server.address", ""))
    return "" if _ADDRESS.fullmatch(peer) else peer.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Step:
    """Propagation from one component to another."""

    source: str
    target: str
    condition: str
    effect: str


class Propagation:
    """The affected components of a recording, and the calls through which the fault propagated."""

    def __init__(
        self,
        spans: Iterable[Row],
        fault: float,
        start: float,
        end: float,
        workload_of: WorkloadOf,
        unready: Mapping[str, str] | None = None,
        named_in_logs: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        """`unready`: workloads whose pods are not ready, with the reason; `named_in_logs`: components, with the
        workloads whose error logs name them after the fault."""
        self._lengths = (max(fault - start, 1.0), max(end - fault, 1.0))
        self._served: dict[str, Behaviour] = defaultdict(Behaviour)
        self._called: dict[tuple[str, str], Behaviour] = defaultdict(Behaviour)
        self._error_counts: dict[tuple[str, str], int] = defaultdict(int)
        self.workload_of_service: dict[str, str] = {}
        """The workload of each `service.name` in spans."""
        self._read(list(spans), format_timestamp(fault), workload_of)
        self._named_in_logs = named_in_logs or {}
        self.affected = {name: f"its pods are not ready: {reason}" for name, reason in (unready or {}).items()}
        self.affected |= {name: text for name, text in self._degraded().items() if name not in self.affected}

    def _read(self, spans: Sequence[Row], fault: str, workload_of: WorkloadOf) -> None:
        by_id = {(row["trace_id"], row["span_id"]): row for row in spans}
        server_of_span: dict[tuple[str, str], str] = {}
        usual_callee: dict[tuple[str, str], str] = {}
        for row in spans:
            workload = _workload(row, workload_of)
            self.workload_of_service.setdefault(row["service"], workload)
            parent = by_id.get((row["trace_id"], row["parent_span_id"]))
            if row["kind"] not in _SERVING:
                continue
            after = row["timestamp"] >= fault
            self._served[workload].add(after, row["status"] == "ERROR", row["duration_us"])
            if parent is None or (caller := _workload(parent, workload_of)) == workload:
                continue
            if parent["kind"] in _CALLING:
                server_of_span[parent["trace_id"], parent["span_id"]] = workload
                usual_callee[caller, parent["operation"]] = workload
            else:
                self._add_call(caller, workload, row, after, parent)
        for row in spans:
            if row["kind"] not in _CALLING:
                continue
            workload, peer = _workload(row, workload_of), _peer(row)
            # The server span's workload; else the peer that the call names; else the usual callee of that operation.
            callee = server_of_span.get((row["trace_id"], row["span_id"])) or (workload_of(peer) if peer else "")
            callee = callee or usual_callee.get((workload, row["operation"]), "")
            if callee and callee != workload:
                parent = by_id.get((row["trace_id"], row["parent_span_id"]))
                self._add_call(workload, callee, row, row["timestamp"] >= fault, parent)

    def _add_call(self, caller: str, callee: str, row: Row, after: bool, parent: Row | None) -> None:
        failed = row["status"] == "ERROR"
        self._called[caller, callee].add(after, failed, row["duration_us"])
        if after and failed and (parent is None or parent["status"] == "ERROR"):
            self._error_counts[caller, callee] += 1

    def _degraded(self) -> dict[str, str]:
        called: dict[str, Behaviour] = defaultdict(Behaviour)
        for (_, callee), calls in self._called.items():
            if callee not in self._served:  # a store that emits no spans is judged by its callers' spans
                for after in (False, True):
                    called[callee].calls[after] += calls.calls[after]
                    called[callee].errors[after] += calls.errors[after]
                    called[callee].durations[after].extend(calls.durations[after])
        behaviours = [*sorted(self._served.items()), *sorted(called.items())]
        return {name: text for name, seen in behaviours if (text := seen.degradation(*self._lengths))}

    def affected_callers(self, callee: str, *, strict: bool = False) -> list[str]:
        """The affected callers whose calls of a component fail, are slow or, unless `strict`, are missing."""
        callers = []
        for (caller, called), calls in sorted(self._called.items()):
            if called != callee or caller == callee or caller not in self.affected:
                continue
            # A call that cannot be made may leave no span: then the calls are missing from failing requests.
            text = calls.degradation(*self._lengths)
            cut_off = not strict and _SILENCE in text and _SILENCE not in self.affected[caller]
            if self._error_counts[caller, callee] >= _MIN_ERRORS or "slow" in text or cut_off:
                callers.append(caller)
        named_by = sorted(self._named_in_logs.get(callee, ()))
        return callers + [name for name in named_by if name in self.affected and name not in callers]

    def starved_callees(self, caller: str) -> list[str]:
        """The components that receive no requests any more because a caller fails."""
        return sorted(
            called
            for (source, called) in self._called
            if source == caller and called != caller and _SILENCE in self.affected.get(called, "")
        )

    def origins(self) -> list[str]:
        """Affected components whose degradation does not come from a component they call."""
        through = {caller for callee in self.affected for caller in self.affected_callers(callee, strict=True)}
        starved = {called for caller in self.affected for called in self.starved_callees(caller)}
        return [name for name in self.affected if name not in through and name not in starved]

    def steps_from(self, roots: Collection[str], cause: str) -> list[Step]:
        """The propagation from these components, breadth first; each component is reached once."""
        steps: list[Step] = []
        reached = set(roots)
        pending = [(root, self.affected.get(root) or cause) for root in roots]
        while pending:
            source, text = pending.pop(0)
            targets = [*self.affected_callers(source)]
            if source not in roots:
                targets += self.starved_callees(source)
            for target in targets:
                if target in reached:
                    continue
                reached.add(target)
                effect = f"{target}: {self.affected[target]}"
                steps.append(Step(source, target, f"{source}: {text}" if text != cause else cause, effect))
                pending.append((target, self.affected[target]))
        return steps
