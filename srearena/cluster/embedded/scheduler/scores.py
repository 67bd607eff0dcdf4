"""Score plugins with the default weights of the real scheduler.

Every score is from 0 to 100 per node; the weighted sum decides, ties are broken at random.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log

from srearena.cluster.embedded.objects import controller_of, dig, is_terminating, labels_of, namespace_of
from srearena.cluster.embedded.registry.placement import matches_term, tolerated
from srearena.cluster.embedded.registry.selectors import label_set_selector
from srearena.cluster.embedded.scheduler.filters import Cycle
from srearena.cluster.embedded.scheduler.node_state import NodeState, PodInfo, preferences
from srearena.cluster.embedded.scheduler.topology import resolve

_BEST = 100
_WEIGHED = ("cpu", "memory")
_DEFAULT_SPREAD = (("kubernetes.io/hostname", 3), ("topology.kubernetes.io/zone", 5))
_SPREAD_OWNERS = frozenset({"ReplicationController", "ReplicaSet", "StatefulSet"})
_MEGABYTE = 1024 * 1024
_SMALL_IMAGE = 23 * _MEGABYTE
_LARGE_IMAGE = 1000 * _MEGABYTE

Scores = list[int]


def best(cycle: Cycle, nodes: list[NodeState], everywhere: list[NodeState]) -> list[NodeState]:
    """The nodes with the highest score; more than one where they tie."""
    if len(nodes) == 1:
        return nodes
    totals = [0] * len(nodes)
    for weight, score in _SCORES:
        for index, value in enumerate(score(cycle, nodes, everywhere)):
            totals[index] += weight * value
    top = max(totals)
    return [node for node, total in zip(nodes, totals, strict=True) if total == top]


def _least_allocated(cycle: Cycle, nodes: list[NodeState], everywhere: list[NodeState]) -> Scores:
    """LeastAllocated: the free share of the node; containers without requests count with defaults."""
    return [scores[0] for scores in _by_resources(cycle, nodes)]


def _balanced(cycle: Cycle, nodes: list[NodeState], everywhere: list[NodeState]) -> Scores:
    """BalancedAllocation: how close the CPU and memory shares are; not applied to pods without requests."""
    return [scores[1] for scores in _by_resources(cycle, nodes)]


def _by_resources(cycle: Cycle, nodes: list[NodeState]) -> list[tuple[int, int]]:
    """LeastAllocated and BalancedAllocation: of many equal pods, each changes what one node scores for the next."""
    info = cycle.info
    kind = tuple(amounts.get(resource, 0) for amounts in (info.scoring, info.requests) for resource in _WEIGHED)
    found = []
    for node in nodes:
        scores = node.scores.get(kind)
        if scores is None:
            scores = node.scores[kind] = _free_share(info, node), _balance(info, node)
        found.append(scores)
    return found


def _free_share(info: PodInfo, node: NodeState) -> int:
    free: list[int] = []
    for resource in _WEIGHED:
        room = node.allocatable.get(resource, 0)
        requested = node.scored.get(resource, 0) + info.scoring.get(resource, 0)
        if room:
            free.append((room - requested) * _BEST // room if requested <= room else 0)
    return sum(free) // len(free) if free else 0


def _balance(info: PodInfo, node: NodeState) -> int:
    requests = info.requests
    if not any(requests.get(resource) for resource in _WEIGHED):
        return 0
    shares = [
        min(1.0, (node.used.get(resource, 0) + requests.get(resource, 0)) / node.allocatable[resource])
        for resource in _WEIGHED
        if node.allocatable.get(resource)
    ]
    deviation = abs(shares[0] - shares[1]) / 2 if len(shares) == 2 else 0.0
    return int((1 - deviation) * _BEST)


def _image_locality(cycle: Cycle, nodes: list[NodeState], everywhere: list[NodeState]) -> Scores:
    spec = cycle.info.pod.get("spec") or {}
    images = [
        _with_tag(container.get("image", ""))
        for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()))
    ]
    spread = {image: sum(1 for node in everywhere if image in node.images) / len(everywhere) for image in images}
    low, high = _SMALL_IMAGE, _LARGE_IMAGE * len(images)
    scores: Scores = []
    for node in nodes:
        local = 0
        for image in images:
            size = node.images.get(image)
            if size is not None:
                local += int(size * spread[image])
        scores.append(_BEST * (min(max(local, low), high) - low) // (high - low))
    return scores


def _with_tag(image: str) -> str:
    """As nodes list their images: with a tag."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


def _taints(cycle: Cycle, nodes: list[NodeState], everywhere: list[NodeState]) -> Scores:
    tolerations = [
        toleration
        for toleration in dig(cycle.info.pod, "spec", "tolerations", default=())
        if toleration.get("effect") in (None, "", "PreferNoSchedule")
    ]
    counts = [
        sum(
            1
            for taint in node.taints
            if taint.get("effect") == "PreferNoSchedule" and not tolerated(tolerations, taint)
        )
        if node.taints
        else 0
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
        return [0] * len(nodes)
    counts = [
        sum(term.get("weight", 0) for term in preferred if matches_term(term.get("preference") or {}, node.node))
        for node in nodes
    ]
    return _normalised(counts)


def _pod_affinity(cycle: Cycle, nodes: list[NodeState], everywhere: list[NodeState]) -> Scores:
    """InterPodAffinity: preferred terms of the pod and of the pods on the node."""
    pod = cycle.info.pod

    def namespace_labels(name: str) -> dict[str, str]:
        return labels_of(cycle.store.get("namespaces", "", name) or {})

    own = [resolve(term, pod, weight) for weight, term in preferences(pod)]
    domains: dict[tuple[str, str], int] = {}
    for node in everywhere:
        if not own and not node.wishing:
            continue
        labels = node.labels
        met = [term for term in own for other in node.pods.values() if term.matches(other.pod, namespace_labels)]
        for other in node.wishing.values():
            wishes = (resolve(term, other.pod, weight) for weight, term in other.wishes)
            met += [term for term in wishes if term.matches(pod, namespace_labels)]
        for term in met:
            if term.topology_key in labels:
                domain = (term.topology_key, labels[term.topology_key])
                domains[domain] = domains.get(domain, 0) + term.weight
    if not domains:
        return [0] * len(nodes)
    counts = [
        sum(weight for domain, weight in domains.items() if node.labels.get(domain[0]) == domain[1]) for node in nodes
    ]
    low, high = min(counts), max(counts)
    return [int(_BEST * ((count - low) / (high - low))) if high > low else 0 for count in counts]


def _spread(cycle: Cycle, nodes: list[NodeState], everywhere: list[NodeState]) -> Scores:
    """PodTopologySpread: by the pod's soft constraints, or else by the default ones for its siblings."""
    if dig(cycle.info.pod, "spec", "topologySpreadConstraints"):
        soft = [spread for spread in cycle.spreads if not spread.hard]
        if not soft:
            return [0] * len(nodes)
        rules = [(spread.key, spread.max_skew, spread.counts) for spread in soft]
        counted = [all(key in node.labels for key, _, _ in rules) for node in nodes]
    else:
        siblings = _siblings(cycle)
        if siblings is None:
            return [0] * len(nodes)
        rules = [(key, skew, _per_domain(key, siblings, everywhere)) for key, skew in _DEFAULT_SPREAD]
        counted = [True] * len(nodes)
    costs = [0.0] * len(nodes)
    for key, skew, counts in rules:
        values = [node.labels.get(key) for node in nodes]
        # Where the label is not required, a missing one is a domain of its own.
        weight = log(len({value for value, counts_here in zip(values, counted, strict=True) if counts_here}) + 2)
        for index, value in enumerate(values):
            if value is not None:
                costs[index] += counts.get(value, 0) * weight + (skew - 1)
    rounded = [round(cost) for cost in costs]
    chosen = [cost for cost, counts_here in zip(rounded, counted, strict=True) if counts_here]
    low, high = min(chosen, default=0), max(chosen, default=0)
    return [
        0 if not counts_here else _BEST * (high + low - cost) // high if high else _BEST
        for cost, counts_here in zip(rounded, counted, strict=True)
    ]


def _per_domain(key: str, count: Callable[[NodeState], int], everywhere: list[NodeState]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for node in everywhere:
        value = node.labels.get(key)
        if value is not None:
            counts[value] = counts.get(value, 0) + count(node)
    return counts


def _siblings(cycle: Cycle) -> Callable[[NodeState], int] | None:
    """How many pods of the same controller, or behind the same service, a node has."""
    pod = cycle.info.pod
    if (controller_of(pod) or {}).get("kind") in _SPREAD_OWNERS:
        owner = cycle.info.owner
        return lambda node: node.siblings.get(owner, 0)
    wanted: dict[str, str] = {}
    for service in cycle.store.objects("services", namespace_of(pod)):
        selector = dig(service, "spec", "selector")
        if selector and label_set_selector(selector).matches(labels_of(pod)):
            wanted.update(selector)
    if not wanted:
        return None
    chosen, namespace = label_set_selector(wanted), namespace_of(pod)
    return lambda node: sum(
        1
        for other in node.pods.values()
        if namespace_of(other.pod) == namespace
        and not is_terminating(other.pod)
        and chosen.matches(labels_of(other.pod))
    )


def _normalised(counts: Scores, reverse: bool = False) -> Scores:
    high = max(counts)
    if not high:
        return [_BEST if reverse else 0] * len(counts)
    return [_BEST - _BEST * count // high if reverse else _BEST * count // high for count in counts]


_SCORES: tuple[tuple[int, Callable[[Cycle, list[NodeState], list[NodeState]], Scores]], ...] = (
    (3, _taints),
    (2, _node_affinity),
    (2, _spread),
    (2, _pod_affinity),
    (1, _least_allocated),
    (1, _balanced),
    (1, _image_locality),
)
