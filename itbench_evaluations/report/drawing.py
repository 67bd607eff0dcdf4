"""Draw a component graph: columns by distance from the start; roots and wrong nodes are marked.

The SVG has classes but no style attributes, so that the page's content policy can forbid inline styles.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from itbench_evaluations.graph import ComponentGraph
from itbench_evaluations.report.text import as_html, visible

MAX_NODES = 40
_WIDTH, _HEIGHT, _GAP_X, _GAP_Y = 168, 26, 44, 12


def plain_name(component: str) -> str:
    """The display name of a component: ids outside the ground truth start with a question mark."""
    return component[1:].strip("/").replace("/workload/", "/") if component.startswith("?") else component


def _graph(drawn: Mapping[str, Any]) -> ComponentGraph:
    edges = [(str(source), str(target)) for source, target in drawn["edges"]]
    return ComponentGraph.build([str(root) for root in drawn["roots"]], edges)


def _columns(graph: ComponentGraph) -> dict[str, int]:
    """Longest distance from a start node, bounded by the number of nodes because of cycles."""
    column = dict.fromkeys(graph.nodes, 0)
    for _ in range(min(len(graph.nodes), MAX_NODES)):
        moved = False
        for source, target in graph.edges:
            if column[target] < column[source] + 1 <= min(len(graph.nodes) - 1, MAX_NODES):
                column[target] = column[source] + 1
                moved = True
        if not moved:
            break
    return column


def _node_class(node: str, roots: set[str], truth_nodes: set[str]) -> str:
    if node in roots:
        return "root"
    return "known" if node in truth_nodes else "unknown"


def svg(drawn: Mapping[str, Any], truth: Mapping[str, Any], title: str) -> str:
    """The graph as inline SVG; `truth` determines which nodes are roots and which are outside the ground truth."""
    graph = _graph(drawn)
    if not graph.nodes:
        return f'<p class="empty">{as_html(title)}: nothing to draw.</p>'
    nodes = graph.nodes[:MAX_NODES]
    columns = _columns(graph)
    roots, known = set(truth["roots"]), {str(node) for node in truth["nodes"]}
    ranks = {column: rank for rank, column in enumerate(sorted({columns[node] for node in nodes}))}
    rows: dict[int, int] = {}
    positions: dict[str, tuple[int, int]] = {}
    for node in nodes:
        rank = ranks[columns[node]]
        row = rows.get(rank, 0)
        rows[rank] = row + 1
        positions[node] = (8 + rank * (_WIDTH + _GAP_X), 8 + row * (_HEIGHT + _GAP_Y))
    width = max(x for x, _ in positions.values()) + _WIDTH + 8
    height = max(y for _, y in positions.values()) + _HEIGHT + 8
    parts = [
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-label="{as_html(title)}">'
    ]
    for source, target in graph.edges:
        if source in positions and target in positions:
            x1, y1 = positions[source][0] + _WIDTH, positions[source][1] + _HEIGHT // 2
            x2, y2 = positions[target][0], positions[target][1] + _HEIGHT // 2
            bend = max(20, abs(x2 - x1) // 2)
            parts.append(f'<path class="edge" d="M{x1} {y1} C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}"/>')
            parts.append(f'<path class="tip" d="M{x2} {y2} l-7 -4 v8 z"/>')
    for node, (x, y) in positions.items():
        label, full = as_html(plain_name(node), 24), as_html(plain_name(node))
        parts.append(
            f'<g class="{_node_class(node, roots, known)}"><title>{full}</title>'
            f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="4"/>'
            f'<text x="{x + 8}" y="{y + 17}">{label}</text></g>'
        )
    parts.append("</svg>")
    if len(graph.nodes) > MAX_NODES:
        parts.append(f'<p class="empty">{len(graph.nodes) - MAX_NODES} more components are not drawn.</p>')
    return "".join(parts)


_MERMAID = str.maketrans(
    {'"': "#quot;", "<": "#lt;", ">": "#gt;", "#": "#35;", "&": "#amp;", "`": "#96;", "\\": "#92;"}
)


def mermaid(drawn: Mapping[str, Any], truth: Mapping[str, Any]) -> list[str]:
    """The graph as lines of Mermaid; labels are quoted and stripped of characters that Mermaid or HTML interprets."""
    graph = _graph(drawn)
    nodes = graph.nodes[:MAX_NODES]
    index = {node: f"n{number}" for number, node in enumerate(nodes)}
    roots, known = set(truth["roots"]), {str(node) for node in truth["nodes"]}
    lines = ["flowchart LR"]
    for node in nodes:
        label = visible(plain_name(node), 60).translate(_MERMAID)
        mark = {"root": "ROOT ", "known": "", "unknown": "? "}[_node_class(node, roots, known)]
        lines.append(f'  {index[node]}["{mark}{label}"]')
    lines += [f"  {index[a]} --> {index[b]}" for a, b in graph.edges if a in index and b in index]
    return lines
