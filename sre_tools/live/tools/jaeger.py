"""jaeger_services, jaeger_operations, jaeger_traces, jaeger_dependencies."""

from __future__ import annotations

import json
from time import time as now  # noqa: TID251 - queries are about the present

from pydantic import Field

from sre_tools.errors import ToolError
from sre_tools.live.context import LiveContext
from sre_tools.live.telemetry import matching, path_segment
from sre_tools.registry import NoArguments, ToolArguments, tool


@tool(order=300)
def jaeger_services(live: LiveContext, arguments: NoArguments) -> str:
    """The services with traces."""
    return matching(sorted(live.telemetry.get("jaeger", "/api/services")["data"] or []))


class ServiceArguments(ToolArguments):
    service: str = Field(description="as jaeger_services names it")


@tool(order=310)
def jaeger_operations(live: LiveContext, arguments: ServiceArguments) -> str:
    """The operations of a service."""
    path = f"/api/services/{path_segment(arguments.service)}/operations"
    return matching(sorted(live.telemetry.get("jaeger", path)["data"] or []))


class TraceArguments(ToolArguments):
    service: str = Field("", description="whose traces")
    trace_id: str = Field("", description="one trace by its id, instead")
    operation: str = ""
    tags: dict[str, str] = Field(default_factory=dict, description='of one span, e.g. {"error": "true"}')
    min_duration: str = Field("", description="e.g. 200ms")
    minutes: float = Field(15, gt=0, le=1440, description="how far back from now")
    limit: int = Field(10, gt=0, le=100)


@tool(order=320)
def jaeger_traces(live: LiveContext, arguments: TraceArguments) -> str:
    """Traces as trees of calls, by service or by id."""
    if bool(arguments.service) == bool(arguments.trace_id):
        raise ToolError("give either service or trace_id; jaeger_services lists the services")
    telemetry = live.telemetry
    if arguments.trace_id:
        found = telemetry.get("jaeger", f"/api/traces/{path_segment(arguments.trace_id)}")
        return telemetry.format_traces(found["data"])
    end = now()
    traces = telemetry.get(
        "jaeger",
        "/api/traces",
        service=arguments.service,
        operation=arguments.operation or None,
        tags=json.dumps(arguments.tags) if arguments.tags else None,
        minDuration=arguments.min_duration or None,
        start=int((end - arguments.minutes * 60) * 1e6),
        end=int(end * 1e6),
        limit=arguments.limit,
    )["data"]
    return telemetry.format_traces(traces)


class DependencyArguments(ToolArguments):
    minutes: float = Field(30, gt=0, le=1440, description="how far back from now")


@tool(order=330)
def jaeger_dependencies(live: LiveContext, arguments: DependencyArguments) -> str:
    """Who calls whom, and how often."""  # wording: allow (the description that agents read)
    lookback = int(arguments.minutes * 60_000)
    edges = live.telemetry.get("jaeger", "/api/dependencies", endTs=int(now() * 1000), lookback=lookback)["data"]
    edges = sorted(edges or (), key=lambda edge: (edge["parent"], edge["child"]))
    return matching([f"{edge['parent']} -> {edge['child']} ({edge['callCount']} calls)" for edge in edges])
