"""The metrics: each a float in [0, 1], always defined, computed from components and graphs only.

Predictions are the distinct components that an agent blames, in its order. If the ground truth has no roots (nothing
was wrong), every metric is 1 for blaming nothing and 0 otherwise. Without propagations, the paths are the roots.
`docs/judge.md` has an example of each, computed by hand, which tests compare with this code.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence

from itbench_evaluations.graph import ComponentGraph, lcs_length
from itbench_evaluations.matching import Matcher
from srearena.ground_truth import GroundTruth, Propagation

KS = (1, 2, 3, 4, 5)

Triple = tuple[float, float, float]


def f1(precision: float, recall: float) -> float:
    total = precision + recall
    return 2 * precision * recall / total if total else 0.0


def _triple(precision: float, recall: float) -> Triple:
    return precision, recall, f1(precision, recall)


def entity_scores(predicted: Sequence[str], roots: Collection[str]) -> Triple:
    """Precision, recall, F1 of the blamed components against the root components."""
    if not roots:
        return (0.0, 0.0, 0.0) if predicted else (1.0, 1.0, 1.0)
    if not predicted:
        return 0.0, 0.0, 0.0
    right = sum(component in roots for component in predicted)
    return _triple(right / len(predicted), right / len(roots))


def entity_scores_at(k: int, predicted: Sequence[str], roots: Collection[str]) -> Triple:
    """Precision, recall, F1 of the first k blamed components."""
    return entity_scores(predicted[:k], roots)


def itbench_aa(predicted: Sequence[str], roots: Collection[str]) -> float:
    """The score of ITBench-AA: 0 if any root is missed, else precision."""
    precision, recall, _ = entity_scores(predicted, roots)
    return precision if recall == 1.0 else 0.0


def propagation_chain(predicted: ComponentGraph, truth: ComponentGraph) -> float:
    """F1 of longest common subsequences: each predicted path against the best true one, and vice versa."""
    true_paths, predicted_paths = truth.paths(), predicted.paths()
    if truth.edges and not predicted.stated:
        return 0.0  # a root alone is no chain if there is one to find
    if predicted.stated and not predicted.edges:
        predicted_paths = [(node,) for node in predicted.stated]  # all steps lie within components
    if not true_paths or not predicted_paths:
        return 1.0 if not true_paths and not predicted_paths else 0.0
    common = {path: [lcs_length(path, true) for true in true_paths] for path in dict.fromkeys(predicted_paths)}
    precision = math.fsum(max(common[path]) / len(path) for path in predicted_paths) / len(predicted_paths)
    recall = math.fsum(
        max(common[path][index] for path in predicted_paths) / len(true) for index, true in enumerate(true_paths)
    ) / len(true_paths)
    return f1(precision, recall)


def proximity(predicted: Sequence[str], roots: Collection[str], truth: ComponentGraph, *, by_length: bool) -> Triple:
    """Proximity of the blamed components to the roots; `by_length` divides hops by the longest true path."""
    if not roots:
        return (0.0, 0.0, 0.0) if predicted else (1.0, 1.0, 1.0)
    if not predicted:
        return 0.0, 0.0, 0.0
    scale = max(1, truth.longest_path()) if by_length else 1
    near: dict[str, dict[str, float]] = {
        root: {node: 1 / (1 + hops / scale) for node, hops in truth.hops_from(root).items()} for root in roots
    }
    precision = math.fsum(max(near[root].get(node, 0.0) for root in roots) for node in predicted) / len(predicted)
    recall = math.fsum(max(near[root].get(node, 0.0) for node in predicted) for root in sorted(roots)) / len(roots)
    return _triple(precision, recall)


# --- the first affected component -----------------------------------------------------------------------------------

_FAILURE = re.compile(
    r"""error|fail|latenc|slow|delay|timeout|timed?\s?out|unavailab|unreachab|crash|backoff|oom|kill|restart|saturat|
    high\s(?:cpu|memory|load)|memory\s(?:usage|pressure)|throttl|degrad|evict|pending|notready|not\sready|unable|cannot|
    can't|refus|reject|denied|drop|loss|no\s(?:healthy\s)?(?:endpoint|request|traffic|event|response|order)|
    stuck|starv|overload|down\b|outage|above\sthreshold|exhaust|receives?\sno|40[0-9]|50[0-9]""",
    re.IGNORECASE | re.VERBOSE,
)


def first_impacted(truth: GroundTruth, matcher: Matcher, graph: ComponentGraph) -> str | None:
    """The component that first shows a performance failure, by the documented order of preference."""
    depth = graph.depth_from_roots()
    far = len(graph.nodes) + 1

    def component(group_id: str) -> str:
        return matcher.component_of.get(group_id, f"?{group_id}")

    ordered = sorted(truth.propagations, key=lambda edge: depth.get(component(edge.source), far))
    for edge in ordered:
        if _FAILURE.search(edge.effect):
            return _affected(edge, matcher, component(edge.target))
    after_root = (target for source, target in graph.edges if source in graph.roots)
    return next(after_root, None) or (graph.roots[0] if graph.roots else None)


def _affected(edge: Propagation, matcher: Matcher, target: str) -> str:
    """The component named in the effect, else the target; a root is not affected by itself."""
    named: list[tuple[int, int, str]] = []
    for group in matcher.truth.groups:
        for stem in matcher.stems_of(group.id):
            match = re.search(rf"(?<![\w-]){re.escape(stem)}(?![\w-])", edge.effect, re.IGNORECASE)
            if match:
                named.append((match.start(), -len(stem), matcher.component_of[group.id]))
    if named and min(named)[2] not in matcher.root_components:
        return min(named)[2]
    return target


def fault_localization(predicted: ComponentGraph, impacted: str | None) -> float:
    if impacted is None:
        return 0.0 if predicted.nodes else 1.0
    return 1.0 if impacted in predicted.nodes else 0.0


# --- NTAM -------------------------------------------------------------------------------------------------------------

NTAM_K1 = 1.2  # the usual constants of BM25; the ITBench paper publishes none for NTAM
NTAM_B = 0.75


def ntam(predicted: Collection[str], expected: Mapping[str, float], truth: ComponentGraph) -> float:
    """Normalised topology-aware match: near misses score by distance, and too many predictions are penalised.

    Each expected component, weighted, contributes its best similarity 1/(1+hops) through BM25's saturation, whose
    length term grows with the number of predictions beyond the number expected; the sum is divided by its maximum.
    """
    components = set(predicted)
    if not expected:
        return 0.0 if components else 1.0
    length = max(1.0, len(components) / len(expected))
    damping = NTAM_K1 * (1 - NTAM_B + NTAM_B * length)
    earned = []
    for component, weight in expected.items():
        hops = truth.hops_from(component)
        nearest = max((1 / (1 + hops[node]) for node in components if node in hops), default=0.0)
        earned.append(weight * (nearest * (NTAM_K1 + 1) / (nearest + damping)))
    # Rounding may exceed 1 slightly; every metric is in [0, 1].
    return min(1.0, math.fsum(earned) / math.fsum(expected.values()))


def chain_weights(truth: ComponentGraph) -> dict[str, float]:
    """Weights of components in the chain: 1 for a root, 1/(1+n) for a component n steps downstream."""
    depth = truth.depth_from_roots()
    far = max(depth.values(), default=0) + 1
    return {node: 1 / (1 + depth.get(node, far)) for node in truth.nodes}
