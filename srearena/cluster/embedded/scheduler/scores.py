"""Which of the nodes that would do is best: the default scores and weights of the real scheduler.

Every score is a number from 0 to 100 per node; the weighted sum decides, chance breaks ties.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log, sqrt

from srearena.cluster.embedded.objects import dig, labels_of, namespace_of
from srearena.cluster.embedded.registry.placement import matches_term, tolerated
from srearena.cluster.embedded.registry.selectors import LabelSelector, label_set_selector
from srearena.cluster.embedded.scheduler.filters import Cycle
from srearena.cluster.embedded.scheduler.node_state import NodeState
from srearena.cluster.embedded.scheduler.topology import resolve

_BEST = 100.0
_MEGABYTE = 1024 * 1024
_SMALL_IMAGE = 23 * _MEGABYTE
_LARGE_IMAGE = 1000 * _MEGABYTE

Scores = list[float]


def best(cycle: Cycle, nodes: list[NodeState], everywhere: list[NodeState]) -> list[NodeState]:
    """The nodes with the highest score; more than one where they tie."""
    if len(nodes) == 1:
        return nodes
    totals = [0.0] * len(nodes)
    for weight, score in _SCORES:
        for index, value in enumerate(score(cycle, nodes, everywhere)):
            totals[index] += weight * value
    top = max(totals)
    return [node for node, total in zip(nodes, totals, strict=True) if total >= top - 1e-9]


def _share(cycle: Cycle, node: NodeState, resource: str) -> float:
    """The part of the node's resource that would be asked for with this pod on it."""
    room = node.allocatable.get(resource, 0)
    if not room:
        return 1.0
    return min(1.0, (node.scored.get(resource, 0) + cycle.info.scoring.get(resource, 0)) / room)


def _least_allocated(cycle: Cycle, nodes: list[NodeState], everywhere: list[NodeState]) -> Scores:
    return [
        int((1 - _share(cycle, node, "cpu")) * _BEST) // 2 + int((1 - _share(cycle, node, "memory")) * _BEST) // 2
        for node in nodes
    ]


def _balanced(cycle: Cycle, nodes: list[NodeState], everywhere: list[NodeState]) -> Scores:
    scores: Scores = []
    for node in nodes:
        shares = [_share(cycle, node, resource) for resource in ("cpu", "memory")]
        mean = sum(shares) / len(shares)
        deviation = sqrt(sum((share - mean) ** 2 for share in shares) / len(shares))
        scores.append(int((1 - deviation) * _BEST))
    return scores


def _image_locality(cycle: Cycle, nodes: list[NodeState], everywhere: list[NodeState]) -> Scores:
    images = [container.get("image", "") for container in dig(cycle.info.pod, "spec", "containers", default=())]
    if not images:
        return [0.0] * len(nodes)
    spread = {image: sum(1 for node in everywhere if image in node.images) / len(everywhere) for image in images}
    low, high = _SMALL_IMAGE, _LARGE_IMAGE * len(images)
    scores: Scores = []
    for node in nodes:
        local = sum(node.images[image] * spread[image] for image in images if image in node.images)
        scores.append(int(_BEST * (min(max(local, low), high) - low) / (high - low)))
    return scores


def _taints(cycle: Cycle, nodes: list[NodeState], everywhere: list[NodeState]) -> Scores:
    tolerations = [
        toleration
        for toleration in dig(cycle.info.pod, "spec", "tolerations", default=())
        if toleration.get("effect") in (None, "", "PreferNoSchedule")
    ]
    counts = [
        sum(
            1.0
            for taint in dig(node.node, "spec", "taints", default=())
            if taint.get("effect") == "PreferNoSchedule" and not tolerated(tolerations, taint)
        )
        for node in nodes
    ]
    return _normalised(counts, reverse=True)


def _node_affinity(cycle: Cycle, nodes: list[NodeState], everywhere: list[NodeState]) -> Scores:
    preferred = dig(
        cycle.info.pod,
        "spec",
        "affinity",
        "nodeAffinity",
        "preferredDuringSchedulingIgnoredDuringExecution",
        default=(),
    )
    if not preferred:
        return [0.0] * len(nodes)
    counts = [
        float(sum(term.get("weight", 0) for term in preferred if matches_term(term.get("preference") or {}, node.node)))
        for node in nodes
    ]
    return _normalised(counts)


def _pod_affinity(cycle: Cycle, nodes: list[NodeState], everywhere: list[NodeState]) -> Scores:
    key = "preferredDuringSchedulingIgnoredDuringExecution"
    pod = cycle.info.pod

    def namespace_labels(name: str) -> dict[str, str]:
        return labels_of(cycle.store.get("namespaces", "", name) or {})

    terms = [
        (sign, resolve(entry.get("podAffinityTerm") or {}, pod, entry.get("weight", 0)))
        for sign, group in ((1, "podAffinity"), (-1, "podAntiAffinity"))
        for entry in dig(pod, "spec", "affinity", group, key, default=())
    ]
    if not terms:
        return [0.0] * len(nodes)
    domains: dict[tuple[str, str], float] = {}
    for node in everywhere:
        labels = labels_of(node.node)
        for other in node.pods.values():
            for sign, term in terms:
                if term.topology_key in labels and term.matches(other.pod, namespace_labels):
                    domain = (term.topology_key, labels[term.topology_key])
                    domains[domain] = domains.get(domain, 0.0) + sign * term.weight
    counts = [
        sum(weight for domain, weight in domains.items() if labels_of(node.node).get(domain[0]) == domain[1])
        for node in nodes
    ]
    low, high = min(counts), max(counts)
    return [_BEST * (count - low) / (high - low) if high > low else 0.0 for count in counts]


def _spread(cycle: Cycle, nodes: list[NodeState], everywhere: list[NodeState]) -> Scores:
    """Even spreading over hosts and zones: of the pod's soft constraints, or else of its siblings."""
    if any(spread.hard for spread in cycle.spreads):
        return [0.0] * len(nodes)
    wanted: list[tuple[str, int, Callable[[NodeState], int]]]
    if cycle.spreads:
        wanted = [(spread.key, spread.max_skew, _selected(cycle, spread.selector)) for spread in cycle.spreads]
    else:
        siblings = _siblings(cycle)
        if siblings is None:
            return [0.0] * len(nodes)
        wanted = [("kubernetes.io/hostname", 5, siblings), ("topology.kubernetes.io/zone", 3, siblings)]
    costs = [0.0] * len(nodes)
    for key, skew, count in wanted:
        counts: dict[str, int] = {}
        for node in everywhere:
            value = labels_of(node.node).get(key)
            if value is not None:
                counts[value] = counts.get(value, 0) + count(node)
        weight = log(len(counts) + 2)
        for index, node in enumerate(nodes):
            value = labels_of(node.node).get(key)
            if value is not None:
                costs[index] += counts[value] * weight + (skew - 1)
    low, high = min(costs), max(costs)
    return [_BEST * (high + low - cost) / high if high else _BEST for cost in costs]


def _selected(cycle: Cycle, selector: LabelSelector) -> Callable[[NodeState], int]:
    namespace = namespace_of(cycle.info.pod)
    return lambda node: sum(
        1
        for other in node.pods.values()
        if namespace_of(other.pod) == namespace and selector.matches(labels_of(other.pod))
    )


def _siblings(cycle: Cycle) -> Callable[[NodeState], int] | None:
    """How many pods of the same controller, or behind the same service, a node has."""
    owner = cycle.info.owner
    if owner:
        return lambda node: node.siblings.get(owner, 0)
    pod = cycle.info.pod
    for service in cycle.store.objects("services", namespace_of(pod)):
        selector = dig(service, "spec", "selector")
        if selector and label_set_selector(selector).matches(labels_of(pod)):
            return _selected(cycle, label_set_selector(selector))
    return None


def _normalised(counts: Scores, reverse: bool = False) -> Scores:
    high = max(counts)
    if not high:
        return [_BEST if reverse else 0.0] * len(counts)
    return [_BEST - _BEST * count / high if reverse else _BEST * count / high for count in counts]


_SCORES: tuple[tuple[int, Callable[[Cycle, list[NodeState], list[NodeState]], Scores]], ...] = (
    (3, _taints),
    (2, _node_affinity),
    (2, _spread),
    (2, _pod_affinity),
    (1, _least_allocated),
    (1, _balanced),
    (1, _image_locality),
)
