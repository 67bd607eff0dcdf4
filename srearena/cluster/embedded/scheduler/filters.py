"""The filter plugins, in the order and with the messages of the real scheduler.

A filter returns a reason to reject a node, or nothing. `helped_by` names the cluster events that move pods it rejected
back into the queue.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from srearena.cluster.embedded.objects import Obj, dig
from srearena.cluster.embedded.registry.placement import (
    matches_node_selector,
    ports_clash,
    tolerated,
    untolerated_taint,
)
from srearena.cluster.embedded.scheduler.node_state import NodeState, PodInfo
from srearena.cluster.embedded.scheduler.topology import AffinityPicture, Spread, affinity_reason, spread_reason
from srearena.cluster.embedded.scheduler.volumes import (
    SINGLE_POD,
    VolumeNeeds,
    limit_reason,
    volume_reasons,
    zone_reason,
)
from srearena.cluster.embedded.store import Store

_UNSCHEDULABLE_TAINT = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


@dataclass(slots=True)
class Cycle:
    """State that is computed once per scheduling attempt of a pod."""

    info: PodInfo
    store: Store
    needs: VolumeNeeds
    affinity: AffinityPicture
    spreads: list[Spread]
    exclusive_claim_in_use: bool = False
    now: str = ""
    filters: tuple[Filter, ...] = field(init=False)
    """The filters that can reject this pod; the framework skips the others."""
    requests: list[tuple[str, int]] = field(init=False)
    """What the pod requests."""
    node_name: str = field(init=False)
    """The node that the pod names."""

    def __post_init__(self) -> None:
        self.requests = [(name, value) for name, value in self.info.requests.items() if value]
        self.node_name = dig(self.info.pod, "spec", "nodeName", default="")
        self.filters = tuple(check for check in FILTERS if check.concerns(self))


Reasons = list[str]


@dataclass(slots=True, frozen=True)
class Filter:
    name: str
    reasons: Callable[[Cycle, NodeState], Reasons]
    preemption_helps: bool
    """Whether evicting pods of lower priority could make the node feasible."""
    helped_by: frozenset[str]
    concerns: Callable[[Cycle], bool] = lambda cycle: True
    """Whether the filter applies to this pod."""


def _unschedulable(cycle: Cycle, node: NodeState) -> Reasons:
    if not node.unschedulable:
        return []
    tolerations = dig(cycle.info.pod, "spec", "tolerations", default=())
    return [] if tolerated(tolerations, _UNSCHEDULABLE_TAINT) else ["node(s) were unschedulable"]


def _taints(cycle: Cycle, node: NodeState) -> Reasons:
    taint = untolerated_taint(cycle.info.pod, node.node) if node.taints else None
    return [] if taint is None else [f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value') or ''}}}"]


def _chooses_nodes(cycle: Cycle) -> bool:
    spec = cycle.info.pod.get("spec") or {}
    return bool(spec.get("nodeSelector") or dig(spec, "affinity", "nodeAffinity"))


def _node_affinity(cycle: Cycle, node: NodeState) -> Reasons:
    if matches_node_selector(cycle.info.pod, node.node):
        return []
    return ["node(s) didn't match Pod's node affinity/selector"]


def _ports(cycle: Cycle, node: NodeState) -> Reasons:
    for other in node.pods.values():
        if any(ports_clash(mine, theirs) for mine in cycle.info.ports for theirs in other.ports):
            return ["node(s) didn't have free ports for the requested pod ports"]
    return []


def _resources(cycle: Cycle, node: NodeState) -> Reasons:
    used, allocatable = node.used, node.allocatable
    reasons: Reasons = []
    if len(node.pods) + 1 > allocatable.get("pods", 0):
        reasons.append("Too many pods")
    for name, wanted in cycle.requests:
        if used.get(name, 0) + wanted > allocatable.get(name, 0):
            reasons.append(f"Insufficient {name}")
    return reasons


def _beyond_capacity(cycle: Cycle, node: NodeState) -> bool:
    """Whether even an empty node of this size would be too small."""
    return any(wanted > node.allocatable.get(name, 0) for name, wanted in cycle.info.requests.items())


def _uses_claims(cycle: Cycle) -> bool:
    return bool(cycle.needs.bound or cycle.needs.to_bind)


def _optional(reason: str | None) -> Reasons:
    return [] if reason is None else [reason]


FILTERS: tuple[Filter, ...] = (
    Filter("NodeUnschedulable", _unschedulable, False, frozenset({"node"})),
    Filter("TaintToleration", _taints, False, frozenset({"node"})),
    Filter("NodeAffinity", _node_affinity, False, frozenset({"node"}), _chooses_nodes),
    Filter("NodePorts", _ports, True, frozenset({"node", "pod-gone"}), lambda cycle: bool(cycle.info.ports)),
    Filter("NodeResourcesFit", _resources, True, frozenset({"node", "pod-gone"})),
    Filter(
        "VolumeRestrictions",
        lambda cycle, node: [SINGLE_POD],
        True,
        frozenset({"node", "pod-gone", "volume"}),
        lambda cycle: cycle.exclusive_claim_in_use,
    ),
    Filter(
        "NodeVolumeLimits",
        lambda cycle, node: _optional(limit_reason(cycle.needs, node, cycle.store)),
        True,
        frozenset({"node", "pod-gone", "volume"}),
        _uses_claims,
    ),
    Filter(
        "VolumeBinding",
        lambda cycle, node: volume_reasons(cycle.needs, node, cycle.store),
        False,
        frozenset({"node", "volume"}),
        _uses_claims,
    ),
    Filter(
        "VolumeZone",
        lambda cycle, node: _optional(zone_reason(cycle.needs, node)),
        False,
        frozenset({"node", "volume"}),
        _uses_claims,
    ),
    Filter(
        "PodTopologySpread",
        lambda cycle, node: _optional(spread_reason(cycle.spreads, node)),
        True,
        frozenset({"node", "pod-gone", "pod"}),
        lambda cycle: bool(cycle.spreads),
    ),
    Filter(
        "InterPodAffinity",
        lambda cycle, node: _optional(affinity_reason(cycle.affinity, node)),
        True,
        frozenset({"node", "pod-gone", "pod"}),
        lambda cycle: bool(cycle.affinity.wanted or cycle.affinity.avoided or cycle.affinity.repelling),
    ),
)


def named_nodes(pod: Obj) -> frozenset[str] | None:
    """The nodes that required affinity names one by one, as for the pods of a DaemonSet; None where any may do."""
    required = dig(
        pod, "spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", default={}
    )
    names: frozenset[str] = frozenset()
    terms = required.get("nodeSelectorTerms") or ()
    for term in terms:
        lists = [
            frozenset(field.get("values") or ())
            for field in term.get("matchFields") or ()
            if field.get("key") == "metadata.name" and field.get("operator") == "In"
        ]
        if not lists:
            return None
        names |= frozenset.intersection(*lists)
    return names if terms else None


def beyond_named() -> Rejection:
    """The reason for nodes that the pod's affinity excludes by name."""
    return Rejection("NodeAffinity", ["node(s) didn't satisfy plugin(s) [NodeAffinity]"], False, frozenset({"node"}))


@dataclass(slots=True)
class Rejection:
    """Why a node was rejected, by which filter, and whether preemption could help."""

    filter: str
    reasons: Reasons
    preemption_helps: bool
    helped_by: frozenset[str]


def reject(cycle: Cycle, node: NodeState) -> Rejection | None:
    """The first filter that rejects the node; the framework stops there."""
    if cycle.node_name and cycle.node_name != node.name:
        return Rejection("NodeName", ["node(s) didn't match the requested node name"], False, frozenset({"node"}))
    for check in cycle.filters:
        reasons = check.reasons(cycle, node)
        if reasons:
            helps = check.preemption_helps
            if check.name == "NodeResourcesFit":
                helps = not _beyond_capacity(cycle, node)
            elif check.name == "PodTopologySpread":
                helps = "(missing required label)" not in reasons[0]
            elif check.name == "InterPodAffinity":
                helps = "didn't match pod affinity rules" not in reasons[0]
            return Rejection(check.name, reasons, helps, check.helped_by)
    return None
