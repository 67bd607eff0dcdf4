"""How trouble spread, as the spans show it: who failed, slowed down or fell silent, and through whose calls.

Nothing is declared here. A component is affected where its spans after the fault differ from those before by more than
chance would make them; an edge is drawn where the caller's failing or slow requests made the failing or slow calls.
Components are workloads: spans name theirs, a called Service stands for the workload that it selects.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from srearena.observer.tables import Row
from srearena.observer.window import moment

_ERRORS_ROSE = 0.03
_FEWEST_ERRORS = 3
_FEWEST_CALLS = 10
_SLOWER = 2.0
_SLOWER_BY_US = 20_000
_SILENT = 0.1
_SILENCE = "hardly any request reaches"
_ADDRESS = re.compile(r"[\d.]+|[0-9a-f:]*:[0-9a-f:]*")
_SERVING = ("server", "consumer")
_CALLING = ("client", "producer")

WorkloadOf = Callable[[str], str]


@dataclass(slots=True)
class Behaviour:
    """One component (or one component's calls of another) before and after the fault."""

    calls: list[int] = field(default_factory=lambda: [0, 0])
    errors: list[int] = field(default_factory=lambda: [0, 0])
    durations: tuple[list[int], list[int]] = field(default_factory=lambda: ([], []))

    def add(self, after: bool, failed: bool, duration: int) -> None:
        self.calls[after] += 1
        self.errors[after] += failed
        self.durations[after].append(duration)

    def share(self, after: bool) -> float:
        return self.errors[after] / self.calls[after] if self.calls[after] else 0.0

    def slow(self, after: bool) -> int:
        """The 95th percentile, in microseconds."""
        found = sorted(self.durations[after])
        return found[min(len(found) - 1, int(0.95 * len(found)))] if found else 0

    def trouble(self, before_seconds: float, after_seconds: float) -> str:
        """What is wrong with it after the fault, in words; "" where nothing is."""
        if self.errors[1] >= _FEWEST_ERRORS and self.share(True) - self.share(False) > _ERRORS_ROSE:
            return f"{self.share(True):.0%} of its requests end in errors (before: {self.share(False):.0%})"
        usual = self.calls[0] / before_seconds
        if self.calls[0] >= _FEWEST_CALLS and self.calls[1] / after_seconds < _SILENT * usual:
            return f"{_SILENCE} it any more"
        was, now = self.slow(False), self.slow(True)
        if min(self.calls) >= _FEWEST_CALLS and now > _SLOWER * was and now - was > _SLOWER_BY_US:
            return f"its requests are slow: 95th percentile {now / 1000:.0f} ms (before: {was / 1000:.0f} ms)"
        return ""


def _workload(row: Row, workload_of: WorkloadOf) -> str:
    return str(row["resource"].get("k8s.deployment.name") or workload_of(row["service"]))


def _peer(row: Row) -> str:
    """The Service that a span says it calls; "" where it does not say, or says an address."""
    named = str(row["tags"].get("peer.service") or row["tags"].get("server.address", ""))
    return "" if _ADDRESS.fullmatch(named) else named.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Step:
    """Trouble passed from one component to another."""

    source: str
    target: str
    condition: str
    effect: str


class Spread:
    """Everything the spans of a recording say about components and their calls."""

    def __init__(
        self,
        spans: Iterable[Row],
        fault: float,
        start: float,
        end: float,
        workload_of: WorkloadOf,
        unready: Mapping[str, str] | None = None,
        accused: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        """`unready`: workloads whose pods are not ready, and why; `accused`: components that others' errors in logs
        name since the fault, and who those others are."""
        self._lengths = (max(fault - start, 1.0), max(end - fault, 1.0))
        self._served: dict[str, Behaviour] = defaultdict(Behaviour)
        self._called: dict[tuple[str, str], Behaviour] = defaultdict(Behaviour)
        self._blamed: dict[tuple[str, str], int] = defaultdict(int)
        self.workload_of_service: dict[str, str] = {}
        """The workloads behind the names by which programs call themselves in spans."""
        self._read(list(spans), moment(fault), workload_of)
        self._accused = accused or {}
        self.affected = {who: f"its pods are not ready: {why}" for who, why in (unready or {}).items()}
        self.affected |= {who: words for who, words in self._affected().items() if who not in self.affected}

    def _read(self, spans: Sequence[Row], fault: str, workload_of: WorkloadOf) -> None:
        by_id = {(row["trace_id"], row["span_id"]): row for row in spans}
        answered: dict[tuple[str, str], str] = {}
        usual: dict[tuple[str, str], str] = {}
        for row in spans:
            who = _workload(row, workload_of)
            self.workload_of_service.setdefault(row["service"], who)
            parent = by_id.get((row["trace_id"], row["parent_span_id"]))
            if row["kind"] not in _SERVING:
                continue
            after = row["timestamp"] >= fault
            self._served[who].add(after, row["status"] == "ERROR", row["duration_us"])
            if parent is None or (caller := _workload(parent, workload_of)) == who:
                continue
            if parent["kind"] in _CALLING:
                answered[parent["trace_id"], parent["span_id"]] = usual[caller, parent["operation"]] = who
            else:
                self._note_call(caller, who, row, after, parent)
        for row in spans:
            if row["kind"] not in _CALLING:
                continue
            who, peer = _workload(row, workload_of), _peer(row)
            # Whoever answered; else whom the call names; else who usually answers calls of that name.
            callee = answered.get((row["trace_id"], row["span_id"])) or (workload_of(peer) if peer else "")
            callee = callee or usual.get((who, row["operation"]), "")
            if callee and callee != who:
                parent = by_id.get((row["trace_id"], row["parent_span_id"]))
                self._note_call(who, callee, row, row["timestamp"] >= fault, parent)

    def _note_call(self, caller: str, callee: str, row: Row, after: bool, parent: Row | None) -> None:
        failed = row["status"] == "ERROR"
        self._called[caller, callee].add(after, failed, row["duration_us"])
        if after and failed and (parent is None or parent["status"] == "ERROR"):
            self._blamed[caller, callee] += 1

    def _affected(self) -> dict[str, str]:
        found = {who: words for who, seen in sorted(self._served.items()) if (words := seen.trouble(*self._lengths))}
        called: dict[str, Behaviour] = defaultdict(Behaviour)
        for (_, callee), seen in self._called.items():
            if callee not in self._served:  # a store that sends no spans is known by its callers
                for after in (False, True):
                    called[callee].calls[after] += seen.calls[after]
                    called[callee].errors[after] += seen.errors[after]
                    called[callee].durations[after].extend(seen.durations[after])
        found.update((who, words) for who, seen in sorted(called.items()) if (words := seen.trouble(*self._lengths)))
        return found

    def callers_hit_through(self, callee: str, *, strict: bool = False) -> list[str]:
        """The affected callers whose calls of a component fail, are slow or, unless `strict`, are gone."""
        hit = []
        for (caller, called), seen in sorted(self._called.items()):
            if called != callee or caller == callee or caller not in self.affected:
                continue
            # A call that cannot be made at all may leave no span: then the calls are missing from failing requests.
            trouble = seen.trouble(*self._lengths)
            cut_off = not strict and _SILENCE in trouble and _SILENCE not in self.affected[caller]
            if self._blamed[caller, callee] >= _FEWEST_ERRORS or "slow" in trouble or cut_off:
                hit.append(caller)
        return hit + [who for who in sorted(self._accused.get(callee, ())) if who in self.affected and who not in hit]

    def starved_by(self, caller: str) -> list[str]:
        """The components that a failing caller no longer gets to call."""
        return sorted(
            called
            for (who, called) in self._called
            if who == caller and called != caller and _SILENCE in self.affected.get(called, "")
        )

    def origins(self) -> list[str]:
        """Affected components whose trouble does not come through their own calls."""
        through = {caller for callee in self.affected for caller in self.callers_hit_through(callee, strict=True)}
        starved = {called for caller in self.affected for called in self.starved_by(caller)}
        return [who for who in self.affected if who not in through and who not in starved]

    def steps_from(self, roots: Collection[str], cause: str) -> list[Step]:
        """How trouble went on from these components, nearest first; each component is reached once."""
        steps: list[Step] = []
        reached = set(roots)
        waiting = [(root, self.affected.get(root) or cause) for root in roots]
        while waiting:
            source, words = waiting.pop(0)
            onward = [*self.callers_hit_through(source)]
            if source not in roots:
                onward += self.starved_by(source)
            for target in onward:
                if target in reached:
                    continue
                reached.add(target)
                effect = f"{target}: {self.affected[target]}"
                steps.append(Step(source, target, f"{source}: {words}" if words != cause else cause, effect))
                waiting.append((target, self.affected[target]))
        return steps
