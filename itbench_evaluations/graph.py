"""The propagation of a failure as a graph of components: contraction, paths, distances, longest common subsequences.

The same code builds the graphs of the ground truth and of a prediction, so identical answers give identical graphs.
Edges within one component are removed (a Deployment and its own Pod), repeated edges are merged, and the number of
paths is bounded, because predictions are untrusted input.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

MAX_PATHS = 256  # chosen: far more than any published ground truth has
MAX_PATH_LENGTH = 64  # chosen: keeps the longest common subsequence cheap


@dataclass(slots=True)
class ComponentGraph:
    """Nodes in order of first mention; edges without loops or repeats."""

    nodes: list[str] = field(default_factory=list)
    edges: list[tuple[str, str]] = field(default_factory=list)
    roots: tuple[str, ...] = ()
    stated: tuple[str, ...] = ()
    """The nodes of propagations, also of those within one component, which are no edges."""
    truncated: bool = False
    _out: dict[str, list[str]] = field(default_factory=dict)
    _in: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def build(cls, roots: Iterable[str], edges: Iterable[tuple[str, str]]) -> ComponentGraph:
        ordered_roots = tuple(dict.fromkeys(roots))
        pairs = list(edges)
        graph = cls(
            nodes=list(dict.fromkeys([*ordered_roots, *(end for pair in pairs for end in pair)])),
            edges=list(dict.fromkeys(pair for pair in pairs if pair[0] != pair[1])),
            roots=ordered_roots,
            stated=tuple(dict.fromkeys(end for pair in pairs for end in pair)),
        )
        for source, target in graph.edges:
            graph._out.setdefault(source, []).append(target)
            graph._in.setdefault(target, []).append(source)
        return graph

    def starts(self) -> list[str]:
        """Start nodes of paths: nodes without incoming edges, then a root or the first node of each remaining cycle.

        A node without edges is a path of its own only if the graph has no edges at all.
        """
        linked = [n for n in self.nodes if n in self._in or n in self._out] if self.edges else self.nodes
        starts = [node for node in linked if node not in self._in]
        reached = self._reachable(starts)
        for node in [*self.roots, *linked]:
            if node not in reached and node in linked:
                starts.append(node)
                reached |= self._reachable([node])
        return starts

    def _reachable(self, starts: Iterable[str]) -> set[str]:
        seen = set(starts)
        waiting = deque(seen)
        while waiting:
            for target in self._out.get(waiting.popleft(), ()):
                if target not in seen:
                    seen.add(target)
                    waiting.append(target)
        return seen

    def paths(self) -> list[tuple[str, ...]]:
        """The maximal simple paths, at most `MAX_PATHS`; `truncated` is set if there are more."""
        paths: list[tuple[str, ...]] = []
        steps = 0
        for start in self.starts():
            stack: list[tuple[str, ...]] = [(start,)]
            while stack:
                steps += 1
                if len(paths) >= MAX_PATHS or steps > 50 * MAX_PATHS:
                    self.truncated = True
                    return paths
                path = stack.pop()
                following = [node for node in self._out.get(path[-1], ()) if node not in path]
                if not following or len(path) >= MAX_PATH_LENGTH:
                    paths.append(path)
                else:
                    stack.extend((*path, node) for node in reversed(following))
        return paths

    def longest_path(self) -> int:
        return max((len(path) for path in self.paths()), default=0)

    def hops_from(self, origin: str) -> dict[str, int]:
        """Distances from a component to all others, along edges in either direction."""
        distance = {origin: 0}
        waiting = deque([origin])
        while waiting:
            node = waiting.popleft()
            for other in [*self._out.get(node, ()), *self._in.get(node, ())]:
                if other not in distance:
                    distance[other] = distance[node] + 1
                    waiting.append(other)
        return distance

    def depth_from_roots(self) -> dict[str, int]:
        """Distance downstream of the nearest root; components that no root reaches are omitted."""
        depth = dict.fromkeys(self.roots, 0)
        waiting = deque(self.roots)
        while waiting:
            node = waiting.popleft()
            for other in self._out.get(node, ()):
                if other not in depth:
                    depth[other] = depth[node] + 1
                    waiting.append(other)
        return depth


def lcs_length(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """Length of the longest common subsequence."""
    if first == second:
        return len(first)
    row = [0] * (len(second) + 1)
    for left in first:
        diagonal = 0
        for column, right in enumerate(second, start=1):
            above = row[column]
            row[column] = diagonal + 1 if left == right else max(above, row[column - 1])
            diagonal = above
    return row[-1]
