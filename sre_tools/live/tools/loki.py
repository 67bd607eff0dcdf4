"""loki_query, loki_labels."""

from __future__ import annotations

import json
from time import time as now  # noqa: TID251 - queries are about the present

from pydantic import Field

from sre_tools.live.context import LiveContext
from sre_tools.live.telemetry import matching, path_segment
from sre_tools.live.tools.prometheus import LabelArguments
from sre_tools.registry import ToolArguments, tool


class LogArguments(ToolArguments):
    query: str = Field(description='LogQL, e.g. {namespace="shop"} |= "error"')
    minutes: float = Field(15, gt=0, le=1440, description="how far back from now")
    limit: int = Field(200, gt=0, le=5000, description="lines at most, the latest")


@tool(order=200)
def loki_query(live: LiveContext, arguments: LogArguments) -> str:
    """Ask Loki for log lines, or for numbers from them."""
    end = now()
    data = live.telemetry.get(
        "loki",
        "/loki/api/v1/query_range",
        query=arguments.query,
        start=int((end - arguments.minutes * 60) * 1e9),
        end=int(end * 1e9),
        limit=arguments.limit,
        direction="backward",
        step=max(15, round(arguments.minutes * 60 / 40)),
    )["data"]
    if data["resultType"] != "streams":
        return "\n".join(
            f"{json.dumps(entry['metric'])} " + " ".join(str(value) for _, value in entry["values"])
            for entry in data["result"]
        )
    lines = [
        (int(time), f"{entry['stream'].get('pod', entry['stream'].get('job', ''))}: {line}")
        for entry in data["result"]
        for time, line in entry["values"]
    ]
    return "\n".join(line for _, line in sorted(lines)[-arguments.limit :]) or "(no lines)"


@tool(order=210)
def loki_labels(live: LiveContext, arguments: LabelArguments) -> str:
    """The labels of log streams, or the values of one."""
    path = f"/loki/api/v1/label/{path_segment(arguments.label)}/values" if arguments.label else "/loki/api/v1/labels"
    return matching(live.telemetry.get("loki", path).get("data"), arguments.contains)
