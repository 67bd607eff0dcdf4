"""A recorded incident in the form of a running one: its end is the present, its beginning the baseline.

Requests, errors and latency are those of the recorded traces, which are samples: shares and
durations are right, rates are rates of samples.
"""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from srearena.snapshots.attributes import parse_attributes
from srearena.snapshots.snapshot import Snapshot, open_snapshot
from srearena.view.incidents import objects
from srearena.view.incidents.base import Incident, IncidentError, LogQuery
from srearena.view.incidents.signals import Key, Signals
from srearena.view.incidents.spans import TimedSpan, trace_row, waterfall
from srearena.view.incidents.summary import graph
from srearena.view.incidents.topology import Topology, TracedSpan

RECORDING = "recording"
_STEP = 30
_PRESENT_POINTS = 4
_FEWEST_SAMPLES = 10
"""Sampled requests of one interval below which their number tells nothing."""
_MOST_LEARNED = 20_000
_MOST_SPANS = 2_000
_LISTED_TRACES = 40
_MOST_EVENTS = 300
_KINDS = {
    "deployments": "Deployment",
    "statefulsets": "StatefulSet",
    "daemonsets": "DaemonSet",
    "services": "Service",
    "configmaps": "ConfigMap",
    "ingresses": "Ingress",
    "networkpolicies": "NetworkPolicy",
    "horizontalpodautoscalers": "HorizontalPodAutoscaler",
    "poddisruptionbudgets": "PodDisruptionBudget",
    "resourcequotas": "ResourceQuota",
    "persistentvolumeclaims": "PersistentVolumeClaim",
    "cronjobs": "CronJob",
    "jobs": "Job",
    "nodes": "Node",
    "pods": "Pod",
}
_SPAN_COLUMNS = (
    "trace_id, span_id, coalesce(parent_id, '') AS parent, coalesce(name, '') AS name, coalesce(kind, '') AS kind, "
    "coalesce(service, '') AS service, time, coalesce(duration_ns, 0) AS duration, status, "
    "coalesce(status_message, '') AS message, attributes"
)
_SIGNALS = (
    "SELECT coalesce(namespace, '') AS namespace, coalesce(service, '') AS service, coalesce(name, '') AS name, "
    "kind IN ('Client', 'Producer') AS sent, CAST(floor(epoch(time) / $step) * $step AS BIGINT) AS slot, "
    "count(*) AS calls, count(*) FILTER (status = 'Error') AS failed, "
    "quantile_cont(coalesce(duration_ns, 0), 0.95) / 1e6 AS latency "
    "FROM spans WHERE time IS NOT NULL AND kind IN ('Client', 'Producer', 'Server', 'Consumer') "
    "GROUP BY GROUPING SETS ((namespace, service, sent, slot), (namespace, service, name, sent, slot))"
)
T = TypeVar("T")


class RecordedIncident(Incident):
    """A recording in any layout that `srearena.snapshots` reads."""

    kind = RECORDING

    def __init__(self, identity: str, directory: Path) -> None:
        super().__init__(identity, directory.name)
        self._directory = directory
        self._opened: Snapshot | None = None
        self._answers: dict[str, Any] = {}
        self._lock = threading.RLock()

    def close(self) -> None:
        with self._lock:
            if self._opened is not None:
                self._opened.close()
                self._opened = None

    @property
    def _snapshot(self) -> Snapshot:
        with self._lock:
            if self._opened is None:
                self._opened = open_snapshot(self._directory)
            return self._opened

    def _once(self, name: str, compute: Callable[[], T]) -> T:
        with self._lock:
            if name not in self._answers:
                self._answers[name] = compute()
            answer: T = self._answers[name]
            return answer

    # Signals

    def overview(self) -> dict[str, Any]:
        return self._once("overview", self._overview)

    def _overview(self) -> dict[str, Any]:
        signals, topology = self._signals(), Topology()
        for spans in self._spans(f"SELECT {_SPAN_COLUMNS} FROM spans ORDER BY trace_id LIMIT {_MOST_LEARNED}").values():
            topology.learn(one.span for one in spans)
        alerts = self._alerts()
        return {
            **self.row(),
            "now": float(signals.times[-1]) if signals.times else 0.0,
            "clock": None,
            "baseline": signals.baseline_span,
            "step": _STEP,
            **graph(signals, topology),
            "alerts": alerts,
            "queries": False,
            "truth": self._snapshot.answer_key() is not None,
        }

    def _signals(self) -> Signals:
        values: defaultdict[tuple[str, Key], dict[int, float]] = defaultdict(dict)
        for row in self._snapshot.rows(_SIGNALS, {"step": _STEP}):
            slot = int(row["slot"])
            if row["sent"] and not row["name"]:
                continue
            key: Key
            if row["sent"]:
                key, names = (row["namespace"], row["service"], row["name"]), ("sent", "sent errors", "sent latency")
            elif row["name"]:
                continue
            else:
                key, names = (row["namespace"], row["service"]), ("requests", "errors", "latency")
            points = row["calls"] / _STEP, row["failed"] / _STEP, float(row["latency"])
            for name, point in zip(names, points, strict=True):
                values[name, key][slot] = point
        slots = [slot for points in values.values() for slot in points]
        signals = Signals(present=_PRESENT_POINTS, least_rate=_FEWEST_SAMPLES / _STEP)
        if slots:
            # The first and the last interval are cut off by the recording's window.
            times = range(min(slots) + _STEP, max(slots), _STEP)
            for (name, _), measured in values.items():
                if "latency" not in name:
                    measured.update({time: 0.0 for time in times if time not in measured})
            signals.extend(times, values)
        return signals

    def _alerts(self) -> list[dict[str, Any]]:
        """The alerts of the last capture."""
        rows = self._snapshot.rows("SELECT * FROM alerts WHERE observed_at = (SELECT max(observed_at) FROM alerts)")
        return [
            {
                "name": str(row["alertname"] or ""),
                "state": str(row["state"] or ""),
                "severity": str(row["severity"] or ""),
                "labels": _texts(row["labels"], without=("alertname", "severity")),
                "annotations": _texts(row["annotations"]),
                "since": row["active_at"].isoformat() if row["active_at"] else "",
            }
            for row in rows
        ]

    # Traces

    def _spans(self, sql: str, parameters: Any = ()) -> dict[str, list[TimedSpan]]:
        traces: defaultdict[str, list[TimedSpan]] = defaultdict(list)
        for row in self._snapshot.rows(sql, parameters):
            if row["time"] is not None:
                traces[str(row["trace_id"])].append(_span(row))
        return traces

    def traces(self, service: str, failed: bool) -> dict[str, Any]:
        return self._once(f"traces {service} {failed}", lambda: self._traces(service, failed))

    def _traces(self, service: str, failed: bool) -> dict[str, Any]:
        of_service = "service = $service" if service else "$service = ''"
        of_status = "HAVING count(*) FILTER (status = 'Error') > 0" if failed else ""
        found = (
            f"SELECT trace_id FROM spans WHERE {of_service} AND trace_id IS NOT NULL GROUP BY trace_id {of_status} "
            f"ORDER BY max(time) DESC LIMIT {_LISTED_TRACES}"
        )
        traces = self._spans(f"SELECT {_SPAN_COLUMNS} FROM spans WHERE trace_id IN ({found})", {"service": service})
        rows = [trace_row(identity, spans) for identity, spans in traces.items()]
        return {"traces": sorted(rows, key=lambda row: -row["start"])}

    def trace(self, identity: str) -> dict[str, Any]:
        sql = f"SELECT {_SPAN_COLUMNS} FROM spans WHERE trace_id = $trace LIMIT {_MOST_SPANS}"
        traces = self._spans(sql, {"trace": identity})
        if not traces:
            raise IncidentError(f"there is no trace {identity!r}")
        return waterfall(identity, traces[identity])

    # Logs

    def logs(self, query: LogQuery) -> dict[str, Any]:
        conditions = {
            "namespace = $namespace": query.namespace,
            "starts_with(coalesce(pod, service, ''), $workload)": query.workload,
            "contains(lower(body), lower($text))": query.text,
        }
        chosen = [condition for condition, value in conditions.items() if value]
        values = {"namespace": query.namespace, "workload": query.workload, "text": query.text}
        where = " AND ".join(["body IS NOT NULL", *chosen])
        rows = self._snapshot.rows(
            f"SELECT time, namespace, pod, service, body FROM logs WHERE {where} "
            f"ORDER BY time DESC NULLS LAST LIMIT {query.limit}",
            {name: value for name, value in values.items() if value} or (),
        )
        lines = [
            {
                "at": row["time"].timestamp() if row["time"] else 0.0,
                "namespace": row["namespace"] or "",
                "pod": row["pod"] or row["service"] or "",
                "container": "",
                "line": row["body"],
            }
            for row in rows
        ]
        return {"lines": lines, "query": where, "limited": len(lines) >= query.limit}

    # Objects

    def cluster(self) -> dict[str, Any]:
        return self._once("cluster", self._cluster)

    def _cluster(self) -> dict[str, Any]:
        events = self._snapshot.rows(
            "SELECT time, type, reason, message, count, lower(coalesce(kind, '')) AS kind, namespace, name FROM events "
            f"ORDER BY time DESC NULLS LAST LIMIT {_MOST_EVENTS}"
        )
        return {
            "nodes": list(map(objects.node_row, self._versions("nodes")[1].values())),
            "pods": list(map(objects.pod_row, self._versions("pods")[1].values())),
            "events": [
                {
                    "at": row["time"].isoformat() if row["time"] else "",
                    "object": f"{row['kind']}/{row['name'] or ''}",
                    "count": row["count"],
                    **{name: row[name] or "" for name in ("type", "reason", "namespace", "message")},
                }
                for row in events
            ],
        }

    def _versions(self, kind: str) -> tuple[dict[tuple[str, str], objects.Obj], dict[tuple[str, str], objects.Obj]]:
        """The objects of a kind as they were first and last observed; what was deleted is not among the last."""
        if kind not in _KINDS:
            raise IncidentError(f"{kind!r} is not one of {', '.join(_KINDS)}")
        return self._once(f"versions {kind}", lambda: self._read_versions(_KINDS[kind]))

    def _read_versions(self, kind: str) -> tuple[dict[tuple[str, str], Any], dict[tuple[str, str], Any]]:
        rows = self._snapshot.rows(
            "SELECT coalesce(namespace, '') AS namespace, name, arg_min(body, observed_at) AS first, "
            "arg_max(body, observed_at) AS last, min(observed_at) = (SELECT min(observed_at) FROM objects) AS early, "
            "count(deleted_at) > 0 AS deleted FROM objects WHERE kind = $kind AND name IS NOT NULL GROUP BY ALL",
            {"kind": kind},
        )
        before = {(row["namespace"], row["name"]): _body(row["first"]) for row in rows if row["early"]}
        after = {(row["namespace"], row["name"]): _body(row["last"]) for row in rows if not row["deleted"]}
        return before, after

    def objects(self, kind: str) -> dict[str, Any]:
        return self._once(f"objects {kind}", lambda: self._objects(kind))

    def _objects(self, kind: str) -> dict[str, Any]:
        since = self._snapshot.rows("SELECT min(observed_at) AS since FROM objects")[0]["since"]
        listed = {"kinds": list(_KINDS), "since": since.timestamp() if since else 0.0}
        if kind:
            names = sorted(self._versions(kind)[1])
            return {**listed, "objects": [{"kind": kind, "namespace": space, "name": name} for space, name in names]}
        rows: list[dict[str, Any]] = []
        for one in objects.COMPARED:
            before, after = self._versions(one)
            rows += objects.changes(one, before, after.values())
        return {**listed, "changes": rows}

    def object(self, kind: str, namespace: str, name: str) -> dict[str, Any]:
        before, after = (versions.get((namespace, name)) for versions in self._versions(kind))
        if before is None and after is None:
            raise IncidentError(f"there is no {kind} {name!r}")
        return objects.described(before if kind in objects.COMPARED else after, after)

    def truth(self) -> dict[str, Any]:
        """The ground truth of the recording, on request."""
        key = self._snapshot.answer_key()
        if key is None:
            return super().truth()
        roots = [group for group in key.groups if group.root]
        named = [f"{fault.kind or ''}/{fault.name}".strip("/") for fault in key.faults if fault.name]
        return {
            "roots": named or [root.name or root.id for root in roots],
            "faults": [fault.condition for fault in key.faults if fault.condition],
        }


def _span(row: dict[str, Any]) -> TimedSpan:
    traced = TracedSpan(
        str(row["span_id"]),
        row["parent"],
        row["service"],
        row["name"],
        row["kind"].lower() or "internal",
        {str(key): str(value) for key, value in parse_attributes(row["attributes"] or "").items()},
    )
    start = round(row["time"].timestamp() * 1e6)
    return TimedSpan(traced, start, row["duration"] // 1000, row["status"] == "Error", row["message"])


def _body(text: str) -> Any:
    try:
        document = json.loads(text)
    except (ValueError, TypeError):
        return {}
    return document if isinstance(document, dict) else {}


def _texts(text: str | None, without: Iterable[str] = ()) -> dict[str, str]:
    return {str(key): str(value) for key, value in _body(text or "").items() if key not in without}
