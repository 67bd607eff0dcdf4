"""prometheus_query, prometheus_query_range, prometheus_labels, prometheus_alerts."""

from __future__ import annotations

from pydantic import Field

from sre_tools.live.context import LiveContext
from sre_tools.live.telemetry import matching, path_segment
from sre_tools.registry import NoArguments, ToolArguments, tool


class QueryArguments(ToolArguments):
    query: str = Field(description="PromQL")


@tool(order=100)
def prometheus_query(live: LiveContext, arguments: QueryArguments) -> str:
    """Ask Prometheus for present values."""
    return live.telemetry.query(arguments.query)


class RangeArguments(QueryArguments):
    minutes: float = Field(15, gt=0, le=1440, description="how far back from now")


@tool(order=110)
def prometheus_query_range(live: LiveContext, arguments: RangeArguments) -> str:
    """Ask Prometheus for values over time."""
    return live.telemetry.query(arguments.query, arguments.minutes)


class LabelArguments(ToolArguments):
    label: str = Field("", description="whose values; without one, the labels there are (__name__ for metric names)")
    contains: str = Field("", description="only values with this in them")


@tool(order=120)
def prometheus_labels(live: LiveContext, arguments: LabelArguments) -> str:
    """The labels there are, or the values of one."""
    path = f"/api/v1/label/{path_segment(arguments.label)}/values" if arguments.label else "/api/v1/labels"
    return matching(live.telemetry.get("prometheus", path)["data"], arguments.contains)


@tool(order=130)
def prometheus_alerts(live: LiveContext, arguments: NoArguments) -> str:
    """The alerts that are firing or pending."""
    return live.telemetry.alerts()
