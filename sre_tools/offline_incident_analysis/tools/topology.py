"""build_topology and topology_analysis."""

from __future__ import annotations

from collections import Counter
from typing import Any

import orjson
from pydantic import Field

from sre_tools.errors import ToolError
from sre_tools.offline_incident_analysis.arguments import Arguments
from sre_tools.offline_incident_analysis.calls import Call
from sre_tools.offline_incident_analysis.identity import nearest
from sre_tools.offline_incident_analysis.replies import Answer, reply_schema
from sre_tools.offline_incident_analysis.topology import Topology, build, topology_of
from sre_tools.registry import tool

_MAX_DEPTH, _MAX_CHAINS = 10, 20
_EDGE_SCHEMA = reply_schema(
    {
        "source": "node id",
        "relation": "contains, selects, depends_on, targets, is_alias, calls",
        "target": "node id",
        "meta": "calls and errors seen in traces",
    }
)


class BuildArguments(Arguments):
    arch_file: str | None = Field(None, description="architecture JSON; that of the snapshot is found by itself")
    k8s_objects_file: str | None = Field(None, description="the objects table; leave out for the server's snapshot")
    output_file: str | None = Field(None, description="not needed: topology_analysis builds the graph itself")


def _architecture(call: Call, file: str | None) -> Any:
    if not file:
        return None
    path = call.workspace.architecture_file(file)
    try:
        return orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError) as problem:
        raise ToolError(
            f"arch_file {file} cannot be read as JSON; leave it out to use what the traces show"
        ) from problem


@tool(
    title="Graph of the system",
    order=80,
    read_only=False,
    destructive=False,
    output_schema=_EDGE_SCHEMA,
)
def build_topology(call: Call, arguments: BuildArguments) -> Answer:
    """The graph of the whole system from the snapshot's objects and traces (and its architecture file): counts by
    kind and relation, and the edges, calls first. Example: build_topology(). Then topology_analysis(entity=...)."""
    graph = (
        build(call.snapshot, _architecture(call, arguments.arch_file))
        if arguments.arch_file
        else topology_of(call.snapshot)
    )
    notes = []
    if arguments.output_file:
        notes.append(_write(call, arguments.output_file, graph))
    order = {"calls": 0, "depends_on": 1, "targets": 1, "selects": 2, "is_alias": 2}
    edges = sorted(graph.document()["edges"], key=lambda e: (order.get(e["relation"], 3), e["source"], e["target"]))
    summary = {
        "nodes": len(graph.nodes),
        "edges": len(graph.edges),
        "nodes_by_kind": dict(Counter(node.kind for node in graph.nodes.values()).most_common()),
        "edges_by_relation": dict(Counter(relation for _, relation, _ in graph.edges).most_common()),
    }
    return Answer(edges, summary, notes)


def _write(call: Call, file: str, graph: Topology) -> str:
    output = call.workspace.output
    if output is None:
        return "output_file was not written: this server keeps the graph itself; call topology_analysis(entity=...)"
    path = (output / file).resolve()
    if not path.is_relative_to(output) or path.suffix != ".json":
        raise ToolError("output_file must be a .json file in the server's output directory")
    path.write_bytes(orjson.dumps(graph.document()))
    return f"written: {path.name}"


class TopologyArguments(Arguments):
    entity: str = Field(description="namespace/Kind/name, Kind/name or name of a Service, workload, Pod or App")
    topology_file: str | None = Field(None, description="not needed; the graph is built from the snapshot")
    snapshot_dir: str | None = Field(None, description="leave out for the server's snapshot")


def _chains(graph: Topology, start: str, forward: bool) -> list[str]:
    """Call chains from a node to the leaves or roots, without repeated nodes."""
    chains: list[str] = []

    def walk(node: str, way: tuple[str, ...]) -> None:
        if len(chains) >= _MAX_CHAINS:
            return
        following = graph.targets(node, "calls") if forward else graph.sources(node, "calls")
        following = [other for other in following if other not in way]
        if not following or len(way) >= _MAX_DEPTH:
            if len(way) > 1:
                chains.append(" → ".join(graph.nodes[n].name for n in (way if forward else reversed(way))))
            return
        for other in following:
            walk(other, (*way, other))

    walk(start, (start,))
    return chains


def resolve(graph: Topology, text: str) -> str:
    """The best match of an identifier; ToolError with the nearest names if there is none."""
    hits = graph.find(text)
    if not hits:
        near = nearest(text.split("/")[-1], (node.name for node in graph.nodes.values()))
        raise ToolError(f"nothing named {text!r} in this snapshot; nearest: {', '.join(near) or 'none'}")
    return hits[0]


def app_side(graph: Topology, node: str) -> str:
    """The alias of a node that calls or is called, or else the node itself."""
    members = graph.aliases(node)
    calling = [m for m in members if graph.targets(m, "calls") or graph.sources(m, "calls")]
    return calling[0] if calling else node


@tool(
    title="What an object is connected to",
    order=90,
    output_schema=_EDGE_SCHEMA,
)
def topology_analysis(call: Call, arguments: TopologyArguments) -> Answer:
    """Callers, callees, chains to the edge and to the leaves, aliases (Service, Deployment, ReplicaSet, Pod) and what
    it uses. Example: topology_analysis(entity="Service/checkout")."""
    graph = topology_of(call.snapshot)
    node = resolve(graph, arguments.entity)
    obj = graph.nodes[node]
    members = graph.aliases(node)
    centre = app_side(graph, node)
    uses = sorted({t for m in members for t in graph.targets(m, "depends_on")})
    summary = {
        "entity": node,
        "kind": obj.kind,
        "name": obj.name,
        "namespace": obj.namespace,
        "aliases": [member for member in members if member != node],
        "callers": graph.sources(centre, "calls"),
        "callees": graph.targets(centre, "calls"),
        "uses": uses,
        "used_by": sorted({s for m in members for s in graph.sources(m, "depends_on")}),
        "targeted_by": sorted({s for m in members for s in graph.sources(m, "targets")}),
        "call_chains_to_root": _chains(graph, centre, forward=False),
        "call_chains_to_leaf": _chains(graph, centre, forward=True),
    }
    order = {"calls": 0, "depends_on": 1, "targets": 1}
    edges = {(s, r, t): m for member in members for s, r, t, m in graph.edges_of(member)}
    rows: list[dict[str, Any]] = [
        {"source": s, "relation": r, "target": t, **({"meta": m} if m else {})} for (s, r, t), m in edges.items()
    ]
    rows.sort(key=lambda row: (order.get(row["relation"], 2), row["source"], row["target"]))
    others = graph.find(arguments.entity)[1:]
    notes = [f"the name also means {', '.join(others[:5])}"] if others else []
    return Answer(rows, summary, notes)
