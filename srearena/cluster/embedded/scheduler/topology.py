"""Pod affinity and topology spread: filters that depend on all nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from srearena.cluster.embedded.objects import Obj, dig, is_terminating, labels_of, namespace_of
from srearena.cluster.embedded.registry.placement import matches_node_selector, untolerated_taint
from srearena.cluster.embedded.registry.selectors import LabelSelector, label_selector_of
from srearena.cluster.embedded.scheduler.node_state import NodeState, PodInfo

NamespaceLabels = Callable[[str], dict[str, str]]


@dataclass(slots=True)
class Term:
    """One pod affinity term, resolved for the pod that carries it."""

    topology_key: str
    selector: LabelSelector
    namespaces: frozenset[str]
    namespace_selector: LabelSelector | None
    weight: int = 1

    def matches(self, pod: Obj, namespace_labels: NamespaceLabels) -> bool:
        namespace = namespace_of(pod)
        inside = namespace in self.namespaces or (
            self.namespace_selector is not None and self.namespace_selector.matches(namespace_labels(namespace))
        )
        return inside and self.selector.matches(labels_of(pod))


def resolve(term: Obj, pod: Obj, weight: int = 1) -> Term:
    """A PodAffinityTerm resolved for `pod`: its own namespace by default, matchLabelKeys filled in."""
    selector = term.get("labelSelector")
    keys = [*(term.get("matchLabelKeys") or ())]
    unlike = [*(term.get("mismatchLabelKeys") or ())]
    if selector is not None and (keys or unlike):
        own = labels_of(pod)
        extra = [{"key": key, "operator": "In", "values": [own[key]]} for key in keys if key in own]
        extra += [{"key": key, "operator": "NotIn", "values": [own[key]]} for key in unlike if key in own]
        selector = {**selector, "matchExpressions": [*(selector.get("matchExpressions") or ()), *extra]}
    spread = term.get("namespaceSelector")
    names = term.get("namespaces") or ()
    return Term(
        term.get("topologyKey", ""),
        label_selector_of(selector),
        frozenset(names or ([namespace_of(pod)] if spread is None else ())),
        label_selector_of(spread) if spread is not None else None,
        weight,
    )


Domain = tuple[str, str]
"""(topology key, value of that label)"""


@dataclass(slots=True)
class AffinityPicture:
    """The domains of pods that this pod requires, must avoid, or that avoid this pod."""

    wanted: list[Term] = field(default_factory=list)
    unwanted: list[Term] = field(default_factory=list)
    joined: list[Counter[Domain]] = field(default_factory=list)
    avoided: Counter[Domain] = field(default_factory=Counter)
    repelling: Counter[Domain] = field(default_factory=Counter)
    first_of_its_kind: bool = False


def picture(info: PodInfo, nodes: Iterable[NodeState], namespace_labels: NamespaceLabels) -> AffinityPicture:
    pod = info.pod
    seen = AffinityPicture(
        [resolve(term, pod) for term in info.affinity], [resolve(term, pod) for term in info.anti_affinity]
    )
    seen.joined = [Counter() for _ in seen.wanted]
    anyone = 0
    has_terms = bool(info.affinity or info.anti_affinity)
    for node in nodes:
        if not has_terms and not node.repelling:
            continue
        labels = node.labels
        for other in node.pods.values() if has_terms else ():
            if seen.wanted and all(term.matches(other.pod, namespace_labels) for term in seen.wanted):
                anyone += 1
                for term, joined in zip(seen.wanted, seen.joined, strict=True):
                    if term.topology_key in labels:
                        joined[term.topology_key, labels[term.topology_key]] += 1
            for term in seen.unwanted:
                if term.topology_key in labels and term.matches(other.pod, namespace_labels):
                    seen.avoided[term.topology_key, labels[term.topology_key]] += 1
        for other in node.repelling.values():
            for raw in other.anti_affinity:
                term = resolve(raw, other.pod)
                if term.topology_key in labels and term.matches(pod, namespace_labels):
                    seen.repelling[term.topology_key, labels[term.topology_key]] += 1
    # The first pod of a group with self-affinity may be placed anywhere, otherwise it would never start.
    seen.first_of_its_kind = not anyone and all(term.matches(pod, namespace_labels) for term in seen.wanted)
    return seen


def affinity_reason(seen: AffinityPicture, node: NodeState) -> str | None:
    labels = node.labels
    for term, joined in zip(seen.wanted, seen.joined, strict=True):
        if term.topology_key not in labels:
            return "node(s) didn't match pod affinity rules"
        if not joined.get((term.topology_key, labels[term.topology_key])) and not seen.first_of_its_kind:
            return "node(s) didn't match pod affinity rules"
    for domain in seen.avoided:
        if labels.get(domain[0]) == domain[1]:
            return "node(s) didn't match pod anti-affinity rules"
    for domain in seen.repelling:
        if labels.get(domain[0]) == domain[1]:
            return "node(s) didn't satisfy existing pods anti-affinity rules"
    return None


@dataclass(slots=True)
class Spread:
    """One topology spread constraint with the matching pods counted per domain."""

    key: str
    max_skew: int
    min_domains: int
    hard: bool
    selector: LabelSelector
    counts: dict[str, int] = field(default_factory=dict)
    counts_itself: bool = True

    @property
    def least(self) -> int:
        if not self.counts or len(self.counts) < self.min_domains:
            return 0
        return min(self.counts.values())


def spreads(pod: Obj, nodes: Iterable[NodeState]) -> list[Spread]:
    constraints = dig(pod, "spec", "topologySpreadConstraints", default=())
    found = [_spread(constraint, pod) for constraint in constraints]
    nodes = list(nodes)
    for constraint, spread in zip(constraints, found, strict=True):
        for node in nodes:
            labels = node.labels
            if spread.key not in labels or not _counts_node(constraint, pod, node.node):
                continue
            value = labels[spread.key]
            spread.counts[value] = spread.counts.get(value, 0) + sum(
                1
                for other in node.pods.values()
                if namespace_of(other.pod) == namespace_of(pod)
                and not is_terminating(other.pod)
                and spread.selector.matches(labels_of(other.pod))
            )
    return found


def _spread(constraint: Obj, pod: Obj) -> Spread:
    selector = constraint.get("labelSelector")
    keys = [key for key in constraint.get("matchLabelKeys") or () if key in labels_of(pod)]
    if selector is not None and keys:
        extra = [{"key": key, "operator": "In", "values": [labels_of(pod)[key]]} for key in keys]
        selector = {**selector, "matchExpressions": [*(selector.get("matchExpressions") or ()), *extra]}
    compiled = label_selector_of(selector)
    return Spread(
        constraint.get("topologyKey", ""),
        constraint.get("maxSkew", 1),
        constraint.get("minDomains") or 1,
        constraint.get("whenUnsatisfiable") == "DoNotSchedule",
        compiled,
        counts_itself=compiled.matches(labels_of(pod)),
    )


def _counts_node(constraint: Obj, pod: Obj, node: Obj) -> bool:
    if constraint.get("nodeAffinityPolicy", "Honor") == "Honor" and not matches_node_selector(pod, node):
        return False
    return constraint.get("nodeTaintsPolicy", "Ignore") != "Honor" or untolerated_taint(pod, node) is None


def spread_reason(constraints: list[Spread], node: NodeState) -> str | None:
    labels = node.labels
    for spread in constraints:
        if not spread.hard:
            continue
        if spread.key not in labels:
            return "node(s) didn't match pod topology spread constraints (missing required label)"
        here = spread.counts.get(labels[spread.key], 0) + (1 if spread.counts_itself else 0)
        if here - spread.least > spread.max_skew:
            return "node(s) didn't match pod topology spread constraints"
    return None
