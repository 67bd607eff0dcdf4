"""Reads metrics, traces and alerts for an agent, through the HTTP APIs of Prometheus and Jaeger."""

from __future__ import annotations

from time import time as wall_now  # noqa: TID251 - where the environment has no Prometheus
from typing import Any
from urllib.parse import urlencode

import orjson
import urllib3

from srearena.cluster import Cluster, ClusterError
from srearena.conductor.errors import BadAction

_TIMEOUT = 30.0
_MOST_SERIES = 60
_MOST_TRACES = 20


class Telemetry:
    """A client for one cluster's Prometheus and Jaeger."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._pool = urllib3.PoolManager(timeout=_TIMEOUT, retries=False)

    def close(self) -> None:
        self._pool.clear()

    def _get(self, backend: str, path: str, **query: Any) -> Any:
        try:
            endpoints = self._cluster.telemetry
        except ClusterError as problem:
            raise BadAction(f"there is no telemetry in this environment: {problem}") from problem
        base = getattr(endpoints, backend)
        if not base:
            raise BadAction(f"this environment has no {backend}")
        headers = {"authorization": f"Bearer {endpoints.token}"} if endpoints.token else {}
        parameters = urlencode({key: value for key, value in query.items() if value is not None})
        try:
            response = self._pool.request("GET", f"{base.rstrip('/')}{path}?{parameters}", headers=headers)
        except urllib3.exceptions.HTTPError as problem:
            raise BadAction(f"{backend} does not respond: {problem}") from problem
        if response.status >= 400:
            raise BadAction(f"{backend} responded {response.status}: {response.data.decode('utf-8', 'replace')[:500]}")
        return orjson.loads(response.data)

    def now(self) -> float:
        """The present in the cluster, where time may stand still or begin at another moment."""
        try:
            return float(self._get("prometheus", "/api/v1/query", query="time()")["data"]["result"][1])
        except (BadAction, LookupError, TypeError, ValueError):
            return wall_now()

    def query(self, query: str, minutes: float = 0.0) -> str:
        """Run a PromQL query, now or over the last minutes, and format the result."""
        if minutes > 0:
            span = minutes * 60
            end = self.now()
            data = self._get(
                "prometheus",
                "/api/v1/query_range",
                query=query,
                start=end - span,
                end=end,
                step=max(15, round(span / 40)),
            )["data"]
        else:
            data = self._get("prometheus", "/api/v1/query", query=query)["data"]
        result = data["result"]
        if data["resultType"] in ("scalar", "string"):
            return str(result[1])
        if not result:
            return "(no data)"
        lines = [_series(entry) for entry in result[:_MOST_SERIES]]
        if len(result) > _MOST_SERIES:
            lines.append(f"... and {len(result) - _MOST_SERIES} more series: narrow the query with labels or topk()")
        return "\n".join(lines)

    def values(self, query: str, label: str = "service_name") -> dict[str, float]:
        """The current values of a query, by one label."""
        result = self._get("prometheus", "/api/v1/query", query=query)["data"]["result"]
        values = {entry["metric"].get(label, ""): float(entry["value"][1]) for entry in result}
        return {name: value for name, value in values.items() if name and value == value}  # without NaN

    def samples(
        self, query: str, start: float, end: float, step: float, label: str = "service_name"
    ) -> dict[str, list[tuple[float, float]]]:
        """The values of a query between two moments as pairs of time and value, by one label."""
        return {metric.get(label, ""): points for metric, points in self.series(query, start, end, step)}

    def series(
        self, query: str, start: float, end: float, step: float
    ) -> list[tuple[dict[str, str], list[tuple[float, float]]]]:
        """The series of a query between two moments: labels, and pairs of time and value."""
        data = self._get("prometheus", "/api/v1/query_range", query=query, start=start, end=end, step=step)["data"]
        return [
            (entry["metric"], [(float(at), float(value)) for at, value in entry["values"]]) for entry in data["result"]
        ]

    def calls(self, minutes: float = 30.0) -> list[tuple[str, str]]:
        """The edges of the call graph, caller and callee, by recent traces."""
        lookback = int(minutes * 60_000)
        edges = self._get("jaeger", "/api/dependencies", endTs=int(self.now() * 1000), lookback=lookback)["data"]
        return [(edge["parent"], edge["child"]) for edge in edges or ()]

    def trace_documents(self, start: float, end: float, limit: int) -> list[dict[str, Any]]:
        """Up to `limit` traces of each service that no other calls, between two moments, as Jaeger returns them."""
        lookback = int((end - start) * 1000)
        edges = self._get("jaeger", "/api/dependencies", endTs=int(end * 1000), lookback=lookback)["data"] or ()
        called = {edge["child"] for edge in edges}
        found: dict[str, dict[str, Any]] = {}
        for service in self._get("jaeger", "/api/services")["data"] or ():
            if service not in called:
                period = {"start": int(start * 1e6), "end": int(end * 1e6)}
                traces = self._get("jaeger", "/api/traces", service=service, limit=limit, **period)["data"]
                found.update((trace["traceID"], trace) for trace in traces or ())
        return list(found.values())

    def alerts(self) -> str:
        alerts = self._get("prometheus", "/api/v1/alerts")["data"]["alerts"]
        if not alerts:
            return "(no alerts)"
        lines = []
        for alert in alerts:
            labels = dict(alert.get("labels", {}))
            name = labels.pop("alertname", "?")
            annotations = alert.get("annotations", {})
            text = annotations.get("summary") or annotations.get("description") or ""
            lines.append(
                f"{alert.get('state', '?')} {name} since {alert.get('activeAt', '?')} {labels} {text}".rstrip()
            )
        return "\n".join(lines)

    def firing(self) -> list[dict[str, Any]]:
        """The firing alerts, as Prometheus returns them."""
        alerts = self._get("prometheus", "/api/v1/alerts")["data"]["alerts"]
        return [alert for alert in alerts if alert.get("state") == "firing"]

    def traces(self, service: str, minutes: float, limit: int) -> str:
        names = self._get("jaeger", "/api/services")["data"] or []
        if not service:
            return f"services with traces: {', '.join(sorted(names)) or '(none)'}"
        if service not in names:
            raise BadAction(f"no traces of {service!r}: there are some of {', '.join(sorted(names)) or 'no service'}")
        end = self.now()
        traces = self._get(
            "jaeger",
            "/api/traces",
            service=service,
            start=int((end - minutes * 60) * 1e6),
            end=int(end * 1e6),
            limit=max(1, min(limit, _MOST_TRACES)),
        )["data"]
        return self.format_traces(traces)

    @staticmethod
    def format_traces(traces: list[dict[str, Any]] | None) -> str:
        """Format traces as trees of calls."""
        return "\n\n".join(_trace(trace) for trace in traces or ()) or "(no traces in this time)"


def _series(entry: dict[str, Any]) -> str:
    labels = dict(entry["metric"])
    name = labels.pop("__name__", "")
    inside = ", ".join(f'{key}="{value}"' for key, value in sorted(labels.items()))
    if "values" in entry:
        return f"{name}{{{inside}}} " + " ".join(f"{float(value):g}" for _, value in entry["values"])
    return f"{name}{{{inside}}} {entry['value'][1]}"


def _trace(trace: dict[str, Any]) -> str:
    """Format a trace as an indented tree: service, operation, duration, and error."""
    processes = trace.get("processes", {})
    spans = {span["spanID"]: span for span in trace.get("spans", ())}
    children: dict[str, list[dict[str, Any]]] = {}
    for span in spans.values():
        parents = [ref["spanID"] for ref in span.get("references", ()) if ref.get("refType") == "CHILD_OF"]
        parent = parents[0] if parents and parents[0] in spans else ""
        children.setdefault(parent, []).append(span)
    lines = [f"trace {trace.get('traceID', '')}"]
    stack = [(span, 1) for span in sorted(children.get("", ()), key=lambda s: s["startTime"], reverse=True)]
    while stack:
        span, depth = stack.pop()
        service = processes.get(span.get("processID"), {}).get("serviceName", "?")
        tags = {tag["key"]: tag["value"] for tag in span.get("tags", ())}
        failed = tags.get("error") in (True, "true") or tags.get("otel.status_code") == "ERROR"
        message = tags.get("otel.status_description") or tags.get("error.message") or ""
        mark = f"  ERROR {message}".rstrip() if failed else ""
        lines.append(f"{'  ' * depth}{service} {span['operationName']} {span['duration'] / 1000:.1f} ms{mark}")
        calls = sorted(children.get(span["spanID"], ()), key=lambda s: s["startTime"], reverse=True)
        stack += [(child, depth + 1) for child in calls]
    return "\n".join(lines)
