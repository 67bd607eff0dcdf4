"""Prometheus, Loki and Jaeger as tools, over the HTTP APIs that real ones have."""

from __future__ import annotations

import json
from time import time as now  # noqa: TID251 - questions are about the present
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field

from sre_tools.errors import ToolError
from sre_tools.live.connection import Connection
from sre_tools.live.toolset import LiveTool
from srearena.conductor.actions.telemetry import Telemetry


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


class QueryArguments(_Arguments):
    query: str = Field(description="PromQL")


class RangeArguments(QueryArguments):
    minutes: float = Field(15, gt=0, le=1440, description="how far back from now")


class LabelArguments(_Arguments):
    label: str = Field("", description="whose values; without one, the labels there are (__name__ for metric names)")
    contains: str = Field("", description="only values with this in them")


class NoArguments(_Arguments):
    pass


class LogArguments(_Arguments):
    query: str = Field(description='LogQL, e.g. {namespace="shop"} |= "error"')
    minutes: float = Field(15, gt=0, le=1440, description="how far back from now")
    limit: int = Field(200, gt=0, le=5000, description="lines at most, the latest")


class ServiceArguments(_Arguments):
    service: str = Field(description="as jaeger_services names it")


class TraceArguments(_Arguments):
    service: str = Field("", description="whose traces")
    trace_id: str = Field("", description="one trace by its id, instead")
    operation: str = ""
    tags: dict[str, str] = Field(default_factory=dict, description='of one span, e.g. {"error": "true"}')
    min_duration: str = Field("", description="e.g. 200ms")
    minutes: float = Field(15, gt=0, le=1440, description="how far back from now")
    limit: int = Field(10, gt=0, le=100)


class BackArguments(_Arguments):
    minutes: float = Field(30, gt=0, le=1440, description="how far back from now")


class TelemetryTools(Telemetry):
    """The reader that agents' actions use, and what only tools offer."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)  # type: ignore[arg-type]  # of a cluster, only its `telemetry` is asked for

    def tools(self) -> list[LiveTool]:
        table: list[tuple[str, str, type[BaseModel], Any]] = [
            ("prometheus_query", "Ask Prometheus for present values.", QueryArguments, self.instant),
            ("prometheus_query_range", "Ask Prometheus for values over time.", RangeArguments, self.over_time),
            ("prometheus_labels", "The labels there are, or the values of one.", LabelArguments, self.labels),
            ("prometheus_alerts", "The alerts that are firing or pending.", NoArguments, lambda given: self.alerts()),
            ("loki_query", "Ask Loki for log lines, or for numbers from them.", LogArguments, self.logs),
            ("loki_labels", "The labels of log streams, or the values of one.", LabelArguments, self.log_labels),
            ("jaeger_services", "The services with traces.", NoArguments, self.services),
            ("jaeger_operations", "The operations of a service.", ServiceArguments, self.operations),
            ("jaeger_traces", "Traces as trees of calls, by service or by id.", TraceArguments, self.found_traces),
            ("jaeger_dependencies", "Who calls whom, and how often.", BackArguments, self.dependencies),
        ]
        return [LiveTool(name, text, arguments, run, reads=True) for name, text, arguments, run in table]

    def instant(self, given: QueryArguments) -> str:
        return self.query(given.query)

    def over_time(self, given: RangeArguments) -> str:
        return self.query(given.query, given.minutes)

    def labels(self, given: LabelArguments) -> str:
        path = f"/api/v1/label/{_part(given.label)}/values" if given.label else "/api/v1/labels"
        return _chosen(self._get("prometheus", path)["data"], given.contains)

    def log_labels(self, given: LabelArguments) -> str:
        path = f"/loki/api/v1/label/{_part(given.label)}/values" if given.label else "/loki/api/v1/labels"
        return _chosen(self._get("loki", path).get("data") or [], given.contains)

    def logs(self, given: LogArguments) -> str:
        end = now()
        data = self._get(
            "loki",
            "/loki/api/v1/query_range",
            query=given.query,
            start=int((end - given.minutes * 60) * 1e9),
            end=int(end * 1e9),
            limit=given.limit,
            direction="backward",
            step=max(15, round(given.minutes * 60 / 40)),
        )["data"]
        if data["resultType"] != "streams":
            return "\n".join(
                f"{json.dumps(entry['metric'])} " + " ".join(str(value) for _, value in entry["values"])
                for entry in data["result"]
            )
        lines = [
            (int(at), f"{entry['stream'].get('pod', entry['stream'].get('job', ''))}: {line}")
            for entry in data["result"]
            for at, line in entry["values"]
        ]
        return "\n".join(line for _, line in sorted(lines)[-given.limit :]) or "(no lines)"

    def services(self, given: NoArguments) -> str:
        return "\n".join(sorted(self._get("jaeger", "/api/services")["data"] or [])) or "(none)"

    def operations(self, given: ServiceArguments) -> str:
        found = self._get("jaeger", f"/api/services/{_part(given.service)}/operations")["data"]
        return "\n".join(sorted(found or [])) or "(none)"

    def found_traces(self, given: TraceArguments) -> str:
        if bool(given.service) == bool(given.trace_id):
            raise ToolError("give either service or trace_id; jaeger_services lists the services")
        if given.trace_id:
            return self.shown(self._get("jaeger", f"/api/traces/{_part(given.trace_id)}")["data"])
        end = now()
        found = self._get(
            "jaeger",
            "/api/traces",
            service=given.service,
            operation=given.operation or None,
            tags=json.dumps(given.tags) if given.tags else None,
            minDuration=given.min_duration or None,
            start=int((end - given.minutes * 60) * 1e6),
            end=int(end * 1e6),
            limit=given.limit,
        )["data"]
        return self.shown(found)

    def dependencies(self, given: BackArguments) -> str:
        found = self._get("jaeger", "/api/dependencies", endTs=int(now() * 1000), lookback=int(given.minutes * 60_000))[
            "data"
        ]
        edges = sorted(found or (), key=lambda edge: (edge["parent"], edge["child"]))
        return (
            "\n".join(f"{edge['parent']} -> {edge['child']} ({edge['callCount']} calls)" for edge in edges) or "(none)"
        )


def _part(text: str) -> str:
    """A text as one part of a path, whatever is in it."""
    return quote(text, safe="")


def _chosen(values: list[str], contains: str) -> str:
    return "\n".join(value for value in values if contains in value) or "(none)"
