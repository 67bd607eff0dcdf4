"""The numbers: each a float in [0, 1], never undefined, computed from components and graphs alone.

Predictions are the distinct components an agent blames, in its order. With no roots in the truth (nothing was wrong)
every metric is 1 for blaming nothing and 0 otherwise. Where a truth has no propagations, its paths are its roots.
`docs/judge.md` works an example of each by hand; the tests hold the code to it.
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
    """The same for the first k blamed components."""
    return entity_scores(predicted[:k], roots)


def itbench_aa(predicted: Sequence[str], roots: Collection[str]) -> float:
    """ITBench-AA's rule: nothing if any root is missed, else precision."""
    precision, recall, _ = entity_scores(predicted, roots)
    return precision if recall == 1.0 else 0.0


def propagation_chain(predicted: ComponentGraph, truth: ComponentGraph) -> float:
    """F1 of longest common subsequences: each predicted path against its best true one, and the other way round."""
    true_paths, said_paths = truth.paths(), predicted.paths()
    if truth.edges and not predicted.edges:
        return 0.0  # naming a cause is not a chain where there is one to name
    if not true_paths or not said_paths:
        return 1.0 if not true_paths and not said_paths else 0.0
    common = {said: [lcs_length(said, true) for true in true_paths] for said in dict.fromkeys(said_paths)}
    precision = math.fsum(max(common[said]) / len(said) for said in said_paths) / len(said_paths)
    recall = math.fsum(
        max(common[said][index] for said in said_paths) / len(true) for index, true in enumerate(true_paths)
    ) / len(true_paths)
    return f1(precision, recall)


def proximity(predicted: Sequence[str], roots: Collection[str], truth: ComponentGraph, *, by_length: bool) -> Triple:
    """How near the blamed components are to the roots; `by_length` measures hops against the longest true path."""
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


# --- the first component to suffer ------------------------------------------------------------------------------------

_SUFFERING = re.compile(
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
        if _SUFFERING.search(edge.effect):
            return _sufferer(edge, matcher, component(edge.target))
    after_root = (target for source, target in graph.edges if source in graph.roots)
    return next(after_root, None) or (graph.roots[0] if graph.roots else None)


def _sufferer(edge: Propagation, matcher: Matcher, target: str) -> str:
    """The one named in the effect, else the target; chaos experiments and flagd only pass trouble on."""
    named: list[tuple[int, int, str]] = []
    for group in matcher.truth.groups:
        for stem in matcher.stems_of(group.id):
            place = re.search(rf"(?<![\w-]){re.escape(stem)}(?![\w-])", edge.effect, re.IGNORECASE)
            if place:
                named.append((place.start(), -len(stem), matcher.component_of[group.id]))
    if named and min(named)[2] not in matcher.root_components:
        return min(named)[2]
    return target


def fault_localization(predicted: ComponentGraph, impacted: str | None) -> float:
    if impacted is None:
        return 0.0 if predicted.nodes else 1.0
    return 1.0 if impacted in predicted.nodes else 0.0


# --- NTAM -------------------------------------------------------------------------------------------------------------

NTAM_K1 = 1.2
NTAM_B = 0.75


def ntam(predicted: Collection[str], wanted: Mapping[str, float], truth: ComponentGraph) -> float:
    """Normalised topology-aware match: near misses earn by distance, and saying more than there is costs.

    Each wanted component, weighted, contributes its best similarity 1/(1+hops) through BM25's saturation, whose length
    term grows with the number of predictions beyond the number wanted; the sum is divided by what the truth earns.
    """
    said = set(predicted)
    if not wanted:
        return 0.0 if said else 1.0
    length = max(1.0, len(said) / len(wanted))
    damping = NTAM_K1 * (1 - NTAM_B + NTAM_B * length)
    earned = []
    for component, weight in wanted.items():
        hops = truth.hops_from(component)
        nearest = max((1 / (1 + hops[node]) for node in said if node in hops), default=0.0)
        earned.append(weight * (nearest * (NTAM_K1 + 1) / (nearest + damping)))
    # Rounding may leave a hair more than the whole; the bound is part of the contract.
    return min(1.0, math.fsum(earned) / math.fsum(wanted.values()))


def chain_weights(truth: ComponentGraph) -> dict[str, float]:
    """Importance of a component in the chain: a root weighs 1, a component n steps downstream 1/(1+n)."""
    depth = truth.depth_from_roots()
    far = max(depth.values(), default=0) + 1
    return {node: 1 / (1 + depth.get(node, far)) for node in truth.nodes}
