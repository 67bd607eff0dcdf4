"""The scheduler's cache of nodes: the pods on each and their requests.

Updated from the store's changes, so that a scheduling decision only reads it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from srearena.cluster.embedded.objects import Obj, controller_of, dig, labels_of, name_of, uid_of
from srearena.cluster.embedded.registry.placement import Amounts, amount, host_ports, pod_requests
from srearena.cluster.embedded.store import Change, Store

# The requests that scoring assumes for a container without requests, so that such pods spread too.
UNASKED_CPU = 100
UNASKED_MEMORY = 200 * 1024 * 1024


@dataclass(slots=True)
class PodInfo:
    """A pod with precomputed scheduling data."""

    pod: Obj
    requests: Amounts
    scoring: Amounts
    ports: list[tuple[str, str, int]]
    affinity: list[Obj]
    anti_affinity: list[Obj]
    wishes: list[tuple[int, Obj]]
    """Weighted pod affinity terms; weights are negative for anti-affinity."""
    priority: int
    owner: str

    @classmethod
    def of(cls, pod: Obj) -> PodInfo:
        requests = pod_requests(pod)
        scoring = dict(requests)
        containers = dig(pod, "spec", "containers", default=())
        without_cpu = sum(1 for c in containers if dig(c, "resources", "requests", "cpu") is None)
        without_memory = sum(1 for c in containers if dig(c, "resources", "requests", "memory") is None)
        scoring["cpu"] = scoring.get("cpu", 0) + without_cpu * UNASKED_CPU
        scoring["memory"] = scoring.get("memory", 0) + without_memory * UNASKED_MEMORY
        required = "requiredDuringSchedulingIgnoredDuringExecution"
        return cls(
            pod,
            requests,
            scoring,
            host_ports(pod),
            dig(pod, "spec", "affinity", "podAffinity", required, default=[]),
            dig(pod, "spec", "affinity", "podAntiAffinity", required, default=[]),
            _wishes(pod),
            dig(pod, "spec", "priority", default=0),
            (controller_of(pod) or {}).get("uid", ""),
        )


def preferences(pod: Obj) -> list[tuple[int, Obj]]:
    """The pod's own soft affinity terms with their weights."""
    return [
        (sign * entry.get("weight", 0), entry.get("podAffinityTerm") or {})
        for sign, group in ((1, "podAffinity"), (-1, "podAntiAffinity"))
        for entry in dig(pod, "spec", "affinity", group, "preferredDuringSchedulingIgnoredDuringExecution", default=())
    ]


def _wishes(pod: Obj) -> list[tuple[int, Obj]]:
    """The terms of a running pod that affect others: its preferred terms, and its required ones with a small weight."""
    required = dig(pod, "spec", "affinity", "podAffinity", "requiredDuringSchedulingIgnoredDuringExecution", default=())
    return [*preferences(pod), *((1, term) for term in required)]


@dataclass(slots=True)
class NodeState:
    node: Obj
    allocatable: Amounts
    pods: dict[str, PodInfo] = field(default_factory=dict)
    used: Amounts = field(default_factory=dict)
    scored: Amounts = field(default_factory=dict)
    repelling: dict[str, PodInfo] = field(default_factory=dict)
    """Pods on the node with required anti-affinity, by UID."""
    wishing: dict[str, PodInfo] = field(default_factory=dict)
    """Pods on the node with affinity terms, by UID."""
    siblings: dict[str, int] = field(default_factory=dict)
    """The number of pods per controller UID."""
    images: dict[str, int] = field(default_factory=dict)
    labels: dict[str, str] = field(init=False)
    taints: list[Obj] = field(init=False)
    unschedulable: bool = field(init=False)
    scores: dict[tuple[int, ...], tuple[int, int]] = field(default_factory=dict)
    """The scores for its resources, by what a pod requests; forgotten when anything about the node changes."""

    def __post_init__(self) -> None:
        self.describe(self.node, self.allocatable, self.images)

    def describe(self, node: Obj, allocatable: Amounts, images: dict[str, int]) -> None:
        """Take over what the node's object says: it is read for every pod, and changes seldom."""
        self.node, self.allocatable, self.images = node, allocatable, images
        self.labels = labels_of(node)
        self.taints = dig(node, "spec", "taints", default=[])
        self.unschedulable = bool(dig(node, "spec", "unschedulable"))
        self.scores.clear()

    @property
    def name(self) -> str:
        return name_of(self.node)

    def add(self, info: PodInfo) -> None:
        self.remove(uid_of(info.pod))
        self.pods[uid_of(info.pod)] = info
        if info.anti_affinity:
            self.repelling[uid_of(info.pod)] = info
        if info.wishes:
            self.wishing[uid_of(info.pod)] = info
        self._count(info, 1)

    def remove(self, uid: str) -> PodInfo | None:
        info = self.pods.pop(uid, None)
        if info is not None:
            self.repelling.pop(uid, None)
            self.wishing.pop(uid, None)
            self._count(info, -1)
        return info

    def _count(self, info: PodInfo, sign: int) -> None:
        self.scores.clear()
        for name, value in info.requests.items():
            self.used[name] = self.used.get(name, 0) + sign * value
        for name, value in info.scoring.items():
            self.scored[name] = self.scored.get(name, 0) + sign * value
        if info.owner:
            self.siblings[info.owner] = self.siblings.get(info.owner, 0) + sign

    def without(self, uids: set[str]) -> NodeState:
        """The node as it would be without some of its pods."""
        other = NodeState(self.node, self.allocatable, images=self.images)
        for uid, info in self.pods.items():
            if uid not in uids:
                other.add(info)
        return other


def occupies(pod: Obj) -> bool:
    """Whether the pod counts against its node's resources."""
    return bool(dig(pod, "spec", "nodeName")) and dig(pod, "status", "phase") not in ("Succeeded", "Failed")


class ClusterState:
    """All nodes, in name order, with their pods."""

    def __init__(self, store: Store) -> None:
        self.nodes: dict[str, NodeState] = {}
        self._waiting: dict[str, dict[str, PodInfo]] = {}
        for node in store.objects("nodes"):
            self._set_node(node)
        for pod in store.objects("pods"):
            self._set_pod(pod)
        store.subscribe(self._node_changed, "nodes")
        store.subscribe(self._pod_changed, "pods")

    def _node_changed(self, change: Change) -> None:
        if change.type == "DELETED":
            gone = self.nodes.pop(name_of(change.new), None)
            if gone is not None and gone.pods:
                self._waiting[gone.name] = gone.pods
        else:
            self._set_node(change.new)

    def _set_node(self, node: Obj) -> None:
        allocatable = {
            name: amount(name, value)
            for name, value in (dig(node, "status", "allocatable") or dig(node, "status", "capacity") or {}).items()
        }
        images = {
            image_name: image.get("sizeBytes", 0)
            for image in dig(node, "status", "images", default=())
            for image_name in image.get("names") or ()
        }
        state = self.nodes.get(name_of(node))
        if state is None:
            state = NodeState(node, allocatable, images=images)
            self.nodes[name_of(node)] = state
            self.nodes = dict(sorted(self.nodes.items()))
            for info in self._waiting.pop(name_of(node), {}).values():
                state.add(info)
        else:
            state.describe(node, allocatable, images)

    def _pod_changed(self, change: Change) -> None:
        old, new = change.old, change.new
        if old is not None and occupies(old) and (change.type == "DELETED" or not occupies(new)):
            self._forget(old)
        elif change.type != "DELETED":
            self._set_pod(new, old)

    def _set_pod(self, pod: Obj, old: Obj | None = None) -> None:
        if not occupies(pod):
            return
        node = self.nodes.get(pod["spec"]["nodeName"])
        place = node.pods if node else self._waiting.setdefault(pod["spec"]["nodeName"], {})
        known = place.get(uid_of(pod))
        if known is not None and old is not None and old.get("spec") == pod.get("spec"):
            known.pod = pod
            return
        info = PodInfo.of(pod)
        if node:
            node.add(info)
        else:
            place[uid_of(pod)] = info

    def _forget(self, pod: Obj) -> None:
        node_name = pod["spec"]["nodeName"]
        node = self.nodes.get(node_name)
        if node:
            node.remove(uid_of(pod))
        else:
            self._waiting.get(node_name, {}).pop(uid_of(pod), None)
