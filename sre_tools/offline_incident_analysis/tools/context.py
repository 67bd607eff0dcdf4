"""get_context_contract: the results of the other tools for one object, and its dependencies on further pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import Field

from sre_tools.errors import ToolError
from sre_tools.offline_incident_analysis.arguments import TimeRangeArguments
from sre_tools.offline_incident_analysis.calls import Call
from sre_tools.offline_incident_analysis.event_counts import EVENTS, integer_sum
from sre_tools.offline_incident_analysis.identity import parse_identifier
from sre_tools.offline_incident_analysis.object_versions import all_changes, change_text
from sre_tools.offline_incident_analysis.replies import Answer, Row, fit, reply_schema
from sre_tools.offline_incident_analysis.tools.alerts import SummaryArguments, alert_summary
from sre_tools.offline_incident_analysis.tools.anomalies import AnomalyArguments, get_metric_anomalies
from sre_tools.offline_incident_analysis.tools.logs import LogArguments, log_analysis
from sre_tools.offline_incident_analysis.tools.objects import SpecArguments, get_k8_spec
from sre_tools.offline_incident_analysis.tools.topology import TopologyArguments, app_side, resolve, topology_analysis
from sre_tools.offline_incident_analysis.tools.traces import TraceArguments, get_trace_error_tree
from sre_tools.offline_incident_analysis.topology import Topology, topology_of
from sre_tools.offline_incident_analysis.trace_onsets import extent
from sre_tools.registry import tool

_CHARS_PER_PART = 2500


class ContextArguments(TimeRangeArguments):
    k8_object: str = Field(description="namespace/Kind/name, Kind/name or name; exact")
    snapshot_dir: str | None = Field(None, description="leave out for the server's snapshot")
    topology_file: str | None = Field(None, description="not needed; the graph is built from the snapshot")
    page: int = Field(1, ge=0, description="1: the object itself; 2 and on: its dependencies; 0: everything")
    deps_per_page: int = Field(3, ge=1, le=20)


def dependencies(graph: Topology, node: str) -> tuple[list[str], list[str]]:
    """The direct dependencies of an object (called or used), and the dependencies of those."""

    def uses(start: str) -> list[str]:
        members = graph.aliases(start)
        targets = graph.targets(app_side(graph, start), "calls")
        targets += [target for member in members for target in graph.targets(member, "depends_on")]
        return [target for target in dict.fromkeys(targets) if target not in members]

    direct = uses(node)
    transitive = [far for near in direct for far in uses(near)]
    return direct, [far for far in dict.fromkeys(transitive) if far not in direct and far != node]


def _members(graph: Topology, node: str) -> tuple[list[str], list[str]]:
    members = graph.aliases(node)
    return members, sorted({graph.nodes[member].name for member in members})


def _events(call: Call, names: list[str]) -> list[Row]:
    marks = ", ".join("?" for _ in names)
    return call.snapshot.rows(
        f"""SELECT type, reason, kind, name, {integer_sum("count")} AS count, min(first) AS first,
            max(last) AS last, arg_max(message, last) AS message
            FROM ({EVENTS}) WHERE name IN ({marks}) GROUP BY type, reason, kind, name
            ORDER BY type DESC NULLS LAST, last DESC LIMIT 20""",
        names,
    )


def _changes(call: Call, names: list[str]) -> list[Row]:
    return [
        {"entity": f"{c.kind}/{c.name}", "type": c.type, "time": c.time, "change": change_text(c)}
        for c in all_changes(call.snapshot)
        if c.name in names
    ][:20]


def _alerts(call: Call, names: list[str]) -> list[Row]:
    lowered = {name.lower() for name in names}
    rows = alert_summary(call, SummaryArguments.model_validate({})).rows
    return [row for row in rows if str(row["entity"]).lower() in lowered]


def _main_parts(call: Call, arguments: ContextArguments, graph: Topology, node: str) -> dict[str, Callable[[], Any]]:
    _, names = _members(graph, node)
    times: dict[str, Any] = {"start_time": arguments.start_time, "end_time": arguments.end_time}
    services = extent(call.snapshot).services
    traced = next((name for name in names if name in services), None)

    def traces() -> Any:
        if traced is None:
            return []
        trace_arguments = TraceArguments.model_validate({"service_name": traced, "pivot_time": arguments.start_time})
        answer = get_trace_error_tree(call, trace_arguments)
        return {"summary": answer.summary, "paths": answer.rows[:8]}

    topology = topology_analysis(call, TopologyArguments.model_validate({"entity": node})).summary
    return {
        "topology": lambda: topology,
        "alerts": lambda: _alerts(call, names),
        "events": lambda: _events(call, names),
        "spec_changes": lambda: _changes(call, names),
        "trace_errors": traces,
        "metric_anomalies": lambda: get_metric_anomalies(
            call, AnomalyArguments.model_validate({"k8_object_name": node, **times})
        ).rows[:8],
        "log_patterns": lambda: log_analysis(
            call, LogArguments.model_validate({"k8_object": node, "max_patterns": 15, **times})
        ).rows[:8],
        "k8s_spec": lambda: get_k8_spec(call, SpecArguments.model_validate({"k8_object_name": node})).rows[:1],
    }


def _part(name: str, make: Callable[[], Any]) -> Row:
    """One part of the reply; if it fails, the reason instead, so that the other parts are still returned."""
    try:
        content = make()
    except ToolError as problem:
        return {"part": name, "unavailable": str(problem)}
    return {"part": name, "content": fit(content, _CHARS_PER_PART)}


@tool(
    title="All about one object",
    order=120,
    output_schema=reply_schema(
        {
            "part": "topology, alerts, events, spec_changes, trace_errors, metric_anomalies, log_patterns, k8s_spec, "
            "or a dependency",
            "content": "the most telling of it; the tool of that name gives more",
            "unavailable": "why there is none",
        }
    ),
)
def get_context_contract(call: Call, arguments: ContextArguments) -> Answer:
    """Everything about one object: topology, alerts, events, changes, failing traces, metric anomalies, log patterns
    and manifest (page 1), then events and changes of its dependencies (page 2 and on).
    Example: get_context_contract(k8_object="otel-demo/Service/checkout")."""
    graph = topology_of(call.snapshot)
    node = resolve(graph, arguments.k8_object)
    direct, transitive = dependencies(graph, node)
    every = [*direct, *transitive]
    pages = 1 + -(-len(every) // arguments.deps_per_page)
    if arguments.page > pages:
        raise ToolError(f"there are {pages} pages about {node}")
    rows: list[Row] = []
    if arguments.page in (0, 1):
        rows += [_part(name, make) for name, make in _main_parts(call, arguments, graph, node).items()]
    if arguments.page != 1:
        begin = (arguments.page - 2) * arguments.deps_per_page if arguments.page else 0
        chosen = every[begin : begin + arguments.deps_per_page] if arguments.page else every
        for other in chosen:
            _, names = _members(graph, other)
            content = {"events": _events(call, names), "spec_changes": _changes(call, names)}
            content["alerts"] = _alerts(call, names)
            rows.append({"part": f"dependency {other}", "content": fit(content, _CHARS_PER_PART)})
    summary: Row = {
        "entity": node,
        "dependency_breakdown": {"direct": direct, "transitive": transitive},
        "pagination": {
            "current_page": arguments.page,
            "total_pages": pages,
            "total_dependencies": len(every),
            "deps_per_page": arguments.deps_per_page,
        },
    }
    notes = (
        []
        if parse_identifier(arguments.k8_object).exact
        else ["say namespace/Kind/name to be sure which object is meant"]
    )
    return Answer(rows, summary, notes)
