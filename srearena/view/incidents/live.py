"""A running cluster, reached through what every environment has: the Kubernetes API and the telemetry APIs.

Everything is read when a page asks for it, and at most once in a few seconds for all pages together. Metrics are read
incrementally: after the first time, one or two points per series.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

from srearena.cluster.base import TelemetryEndpoints
from srearena.cluster.launcher import advance, clock_of, set_speed
from srearena.observer.errors import ObserverError
from srearena.observer.source import Source
from srearena.service.errors import ServiceError
from srearena.service.kubernetes import Kubernetes, Obj
from srearena.service.telemetry import golden_signals
from srearena.view.incidents import objects
from srearena.view.incidents.base import Incident, IncidentError, LogQuery
from srearena.view.incidents.signals import STEP, Key, Signals, finite
from srearena.view.incidents.spans import jaeger_spans, trace_row, waterfall
from srearena.view.incidents.summary import graph
from srearena.view.incidents.topology import Topology

CLUSTER, EPISODE = "cluster", "episode"
_FRESH = 5.0
"""Real seconds during which an answer is given again."""
_TOPOLOGY_FRESH = 30.0
_HISTORY = 1800
_LONGEST_GAP = 3600
_FIRST_TRACES, _MORE_TRACES, _LISTED_TRACES = 80, 20, 40
_MOST_EVENTS = 300
_LONGEST_ADVANCE = 3600.0
_FASTEST = 60.0
_QUERY_POINTS = 200
_MOST_SERIES = 100
_QUERIES = golden_signals.measures("1m")
T = TypeVar("T")


@dataclass(slots=True, frozen=True)
class Access:
    """How a running incident is reached."""

    kubeconfig: Path
    telemetry: TelemetryEndpoints
    directory: Path | None = None
    """Of an embedded cluster whose clock may be set."""
    speed: float = 1.0
    facts: Mapping[str, Any] = field(default_factory=dict)
    """For the list of incidents."""
    truth: Mapping[str, Any] = field(default_factory=dict)
    """What is wrong, where the operator may know it."""


class LiveIncident(Incident):
    """A running cluster or episode."""

    def __init__(self, identity: str, name: str, kind: str, access: Access) -> None:
        super().__init__(identity, name)
        self.kind = kind
        self.access = access
        token = access.telemetry.token
        self._prometheus = Source("Prometheus", access.telemetry.prometheus, token)
        self._loki = Source("Loki", access.telemetry.loki, token)
        self._jaeger = Source("Jaeger", access.telemetry.jaeger, token)
        self._api = Kubernetes(access.kubeconfig, timeout=20.0)
        self._signals = Signals()
        self._history: float = _HISTORY
        """Seconds of the cluster's time that are read first."""
        self._topology = Topology()
        self._topology_read: float | None = None
        self._entries: list[str] = []
        self._observed: dict[str, dict[tuple[str, str], Obj]] | None = None
        self._observed_at = 0.0
        self._answers: dict[str, tuple[float, Any]] = {}
        self._lock = threading.RLock()

    def row(self) -> dict[str, Any]:
        return {**super().row(), **self.access.facts}

    def close(self) -> None:
        for source in (self._prometheus, self._loki, self._jaeger):
            source.close()
        self._api.close()

    def _once(self, name: str, compute: Callable[[], T], fresh: float = _FRESH) -> T:
        """The answer of the last seconds, or a new one; one thread computes, the others wait for it."""
        with self._lock:
            known = self._answers.get(name)
            if known is None or monotonic() - known[0] >= fresh:
                value = compute()
                self._answers[name] = (monotonic(), value)
                return value
            answer: T = known[1]
            return answer

    # Signals

    def overview(self) -> dict[str, Any]:
        return self._once("overview", self._overview)

    def _overview(self) -> dict[str, Any]:
        now = self._now()
        self._read_metrics(now)
        self._read_topology(now)
        return {
            **self.row(),
            "now": now,
            "clock": self._clock(),
            "baseline": self._signals.baseline_span,
            "step": STEP,
            **graph(self._signals, self._topology),
            "alerts": self._alerts(),
            "queries": True,
            **({"truth": True} if self.access.truth else {}),
        }

    def truth(self) -> dict[str, Any]:
        """What was opened with the operator's key; its fields may be of any type, if another program sealed them."""
        known = self.access.truth
        if not known:
            return super().truth()
        fault, roots = known.get("fault"), known.get("roots")
        return {
            "problem": str(known.get("problem", "")),
            "faults": [str(known.get("explanation") or "Nothing is wrong.")],
            "roots": [str(root) for root in roots] if isinstance(roots, list) else [],
            **({"at": fault} if isinstance(fault, int | float) else {}),
        }

    def _now(self) -> float:
        return float(self._prometheus.data("/api/v1/query", {"query": "time()"})["result"][1])

    def _read_metrics(self, now: float) -> None:
        end = int(now) // STEP * STEP
        last = self._signals.times[-1] if self._signals.times else end - int(self._history) // STEP * STEP - STEP
        start = max(last + STEP, end - _LONGEST_GAP)
        if start > end:
            return
        values: dict[tuple[str, Key], dict[int, float]] = {}
        for measure, (query, labels) in _QUERIES.items():
            for metric, points in self._range(query, start, end, STEP):
                key = tuple(str(metric.get(label, "")) for label in labels)
                values[measure, key] = {round(time): value for time, value in points if value is not None}
        self._signals.extend(range(start, end + 1, STEP), values)

    def _range(
        self, query: str, start: float, end: float, step: float
    ) -> list[tuple[Mapping[str, str], list[tuple[float, float | None]]]]:
        params = {"query": query, "start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step:g}"}
        result = self._prometheus.data("/api/v1/query_range", params)["result"]
        return [
            (series["metric"], [(float(time), finite(float(value))) for time, value in series["values"]])
            for series in result
        ]

    def _alerts(self) -> list[dict[str, Any]]:
        alerts = self._prometheus.data("/api/v1/alerts", {})["alerts"]
        return [
            {
                "name": str(alert["labels"].get("alertname", "")),
                "state": str(alert.get("state", "")),
                "severity": str(alert["labels"].get("severity", "")),
                "labels": {k: v for k, v in alert["labels"].items() if k not in ("alertname", "severity")},
                "annotations": alert.get("annotations") or {},
                "since": str(alert.get("activeAt", "")),
            }
            for alert in alerts
        ]

    # Traces

    def _read_topology(self, now: float) -> None:
        first = self._topology_read is None
        if not first and monotonic() - (self._topology_read or 0.0) < _TOPOLOGY_FRESH:
            return
        lookback = self._history if first else 120
        try:
            params = {"endTs": str(round(now * 1000)), "lookback": str(round(lookback * 1000))}
            pairs = [(str(d["parent"]), str(d["child"])) for d in self._jaeger.data("/api/dependencies", params) or []]
            called = {child for parent, child in pairs if parent != child}
            self._entries = sorted({parent for parent, _ in pairs} - called) or self._entries
            for service in self._entries[:8]:
                self._learn(service, now, lookback, _FIRST_TRACES if first else _MORE_TRACES)
            if first:
                # Rare calls are in few traces: services that none of these touched are asked for by name.
                missing = {name for pair in pairs for name in pair} - set(self._topology.kinds)
                for service in sorted(missing)[:40]:
                    self._learn(service, now, lookback, _MORE_TRACES)
        except ObserverError:
            if not first:
                return  # the graph stays as it is
            raise
        self._topology_read = monotonic()

    def _learn(self, service: str, now: float, lookback: float, limit: int) -> None:
        for _, spans in self._search(service, now, lookback, limit, {}):
            self._topology.learn(one.span for one in spans)

    def _search(
        self, service: str, now: float, lookback: float, limit: int, tags: Mapping[str, str]
    ) -> list[tuple[str, list[Any]]]:
        params = {
            "service": service,
            "start": str(round((now - lookback) * 1e6)),
            "end": str(round(now * 1e6)),
            "limit": str(limit),
            **({"tags": json.dumps(dict(tags))} if tags else {}),
        }
        traces = self._jaeger.data("/api/traces", params) or []
        return [(str(trace["traceID"]), jaeger_spans(trace)) for trace in traces if trace.get("spans")]

    def traces(self, service: str, failed: bool) -> dict[str, Any]:
        return self._once(f"traces {service} {failed}", lambda: self._traces(service, failed))

    def _traces(self, service: str, failed: bool) -> dict[str, Any]:
        now = self._now()
        tags = {"error": "true"} if failed else {}
        names = [service] if service else self._entries[:4] or list(self._jaeger.data("/api/services", {}) or [])[:4]
        rows = [
            trace_row(identity, spans)
            for name in names
            for identity, spans in self._search(name, now, self._history, _LISTED_TRACES, tags)
        ]
        rows.sort(key=lambda row: (-row["start"], row["id"]))
        return {"traces": rows[:_LISTED_TRACES]}

    def trace(self, identity: str) -> dict[str, Any]:
        if not identity or len(identity) > 64 or not identity.isalnum():
            raise IncidentError("a trace's id is of letters and digits")
        traces = self._jaeger.data(f"/api/traces/{identity}", {}) or []
        if not traces:
            raise IncidentError(f"there is no trace {identity}")
        return waterfall(identity, jaeger_spans(traces[0]))

    # Logs

    def logs(self, query: LogQuery) -> dict[str, Any]:
        selector = {"namespace": f"={json.dumps(query.namespace)}"} if query.namespace else {"job": '=~".+"'}
        if query.workload:
            selector["pod"] = f"=~{json.dumps(_escaped(query.workload) + '.*')}"
        expression = "{" + ", ".join(f"{label}{match}" for label, match in selector.items()) + "}"
        if query.text:
            expression += f" |~ {json.dumps('(?i)' + _escaped(query.text))}"
        params = {"query": expression, "limit": str(query.limit), "direction": "backward"}
        data = self._loki.data("/loki/api/v1/query_range", params)
        lines: list[dict[str, Any]] = [
            {
                "at": int(time) / 1e9,
                "namespace": str(labels.get("namespace", "")),
                "pod": str(labels.get("pod", "")),
                "container": str(labels.get("container", "")),
                "line": str(line),
            }
            for stream in data["result"]
            for labels in [stream.get("stream") or {}]
            for time, line, *_ in stream["values"]
        ]
        lines.sort(key=lambda line: -line["at"])
        return {"lines": lines, "query": expression, "limited": len(lines) >= query.limit}

    # Objects

    def cluster(self) -> dict[str, Any]:
        return self._once("cluster", self._cluster)

    def _cluster(self) -> dict[str, Any]:
        self._observe()
        events = sorted(map(objects.event_row, self._list("events")), key=lambda event: event["at"], reverse=True)
        return {
            "nodes": list(map(objects.node_row, self._list("nodes"))),
            "pods": list(map(objects.pod_row, self._list("pods"))),
            "events": events[:_MOST_EVENTS],
        }

    def _list(self, kind: str) -> list[Obj]:
        try:
            return self._api.list(kind)
        except ServiceError as problem:
            if getattr(problem, "code", 0) in (403, 404):
                return []  # the identity may not read it, or the cluster does not serve it
            raise

    def _observe(self) -> None:
        """Keep the objects as they are first seen."""
        if self._observed is None:
            self._observed_at = self._now()
            self._observed = {
                kind: {objects.identity(obj): obj for obj in self._list(kind)} for kind in objects.COMPARED
            }

    def objects(self, kind: str) -> dict[str, Any]:
        return self._once(f"objects {kind}", lambda: self._objects(kind))

    def _objects(self, kind: str) -> dict[str, Any]:
        self._observe()
        assert self._observed is not None
        if not kind:
            rows = [
                row for one in objects.COMPARED for row in objects.changes(one, self._observed[one], self._list(one))
            ]
            return {"kinds": list(objects.KINDS), "since": self._observed_at, "changes": rows}
        found = sorted(map(objects.identity, self._list(self._known_kind(kind))))
        rows = [{"kind": kind, "namespace": namespace, "name": name} for namespace, name in found]
        return {"kinds": list(objects.KINDS), "since": self._observed_at, "objects": rows}

    def object(self, kind: str, namespace: str, name: str) -> dict[str, Any]:
        with self._lock:
            self._observe()
            assert self._observed is not None
            compared = self._observed.get(self._known_kind(kind))
        before = compared.get((namespace, name)) if compared is not None else None
        after = self._api.find(kind, name, namespace or None)
        if before is None and after is None:
            raise IncidentError(f"there is no {kind} {name!r}")
        return objects.described(before if compared is not None else after, after)

    def _known_kind(self, kind: str) -> str:
        if kind not in objects.KINDS:
            raise IncidentError(f"{kind!r} is not one of {', '.join(objects.KINDS)}")
        return kind

    # Expressions and the clock

    def query(self, expression: str, seconds: float) -> dict[str, Any]:
        now = self._now()
        seconds = min(max(seconds, 60.0), 6 * 3600.0)
        step = max(STEP, round(seconds / _QUERY_POINTS))
        end = int(now) // step * step
        times = range(end - int(seconds) // step * step, end + 1, step)
        found = self._range(expression, times.start, end, step)
        series = []
        for labels, points in found[:_MOST_SERIES]:
            by_time = {round(time): value for time, value in points}
            series.append({"labels": dict(labels), "values": [by_time.get(time) for time in times]})
        return {"times": list(times), "series": series, "left_out": max(0, len(found) - _MOST_SERIES)}

    def _clock(self) -> dict[str, Any] | None:
        if self.access.directory is None:
            return None
        state = clock_of(self.access.directory)
        return {"speed": state["speed"], "usual": self.access.speed or 1.0}

    def set_clock(self, action: str, value: float) -> dict[str, Any]:
        directory = self.access.directory
        if directory is None:
            return super().set_clock(action, value)
        if action == "speed" and 0 <= value <= _FASTEST:
            set_speed(directory, value)
        elif action == "advance" and 0 < value <= _LONGEST_ADVANCE:
            advance(directory, value)
        else:
            raise IncidentError(
                f"the speed is 0 to {_FASTEST:g}, and time is advanced by at most {_LONGEST_ADVANCE:g} s at once"
            )
        with self._lock:
            self._answers.clear()
        return {"clock": self._clock()}


def _escaped(text: str) -> str:
    """Text as a regular expression that matches it: Go's syntax, where an escaped letter has a meaning."""
    return "".join(c if c.isalnum() or ord(c) > 127 or c in " _-/=:,\"'<>@%&~`!#;" else f"\\{c}" for c in text)
