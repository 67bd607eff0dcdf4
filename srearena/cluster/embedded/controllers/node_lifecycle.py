"""Nodes without heartbeats: set their conditions to Unknown, taint them, and mark their pods as not ready.

A node's kubelet renews its lease every ten seconds. Fifty seconds without one, and the node is taken for unreachable.
Eviction from such nodes is rate-limited: one node every ten seconds in each zone, none while most of a small zone is
unreachable, and none at all where no node is reachable, since then a network failure is more likely.
"""

from __future__ import annotations

from dataclasses import dataclass

from srearena.cluster.embedded.controllers.controller import Controller
from srearena.cluster.embedded.objects import Obj, condition, dig, labels_of, name_of, with_condition
from srearena.cluster.embedded.store import Change
from srearena.cluster.embedded.world import World

LEASES = "leases.coordination.k8s.io"
LEASE_NAMESPACE = "kube-node-lease"
GRACE_SECONDS = 50.0
STARTUP_GRACE_SECONDS = 60.0
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_CONDITION_TAINTS = {
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
    ("Ready", "False"): NOT_READY,
    ("Ready", "Unknown"): UNREACHABLE,
}
_OURS = frozenset({*_CONDITION_TAINTS.values(), UNSCHEDULABLE})
_EVICTING = {"False": NOT_READY, "Unknown": UNREACHABLE}
_SILENT = "Kubelet stopped posting node status."
_ZONE_LABELS = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")
_EVICTION_PERIOD = 10.0
_SECONDARY_PERIOD = 100.0
_UNHEALTHY_SHARE = 0.55
_LARGE_CLUSTER = 50


@dataclass(slots=True)
class _Zone:
    """A zone of nodes."""

    ready: int = 0
    not_ready: int = 0

    @property
    def is_gone(self) -> bool:
        return not self.ready and self.not_ready > 0

    @property
    def is_mostly_gone(self) -> bool:
        total = self.ready + self.not_ready
        return self.not_ready > 2 and self.not_ready / total >= _UNHEALTHY_SHARE


@dataclass(slots=True)
class _Watch:
    """The state of one node."""

    last_heartbeat: float
    heartbeat: str = ""
    ready: str = ""


class NodeLifecycleController(Controller):
    name = "node-controller"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._nodes: dict[str, _Watch] = {}
        self._evicted_at: dict[str, float] = {}
        """By zone: when a node was last tainted for eviction."""
        self._zone_states: dict[str, str] = {}
        self.store.add_index("pods", "node", _node_of)

    def start(self) -> None:
        self.world.on_change(LEASES, self._lease_changed)
        self.watch("nodes")

    def _lease_changed(self, change: Change) -> None:
        known = self._nodes.get(name_of(change.new))
        if known is not None and change.type != "DELETED" and change.new["metadata"]["namespace"] == LEASE_NAMESPACE:
            known.last_heartbeat = self.clock.now

    def reconcile(self, key: str) -> None:
        node = self.client.get("nodes", "", key)
        if node is None:
            self._forget(key)
            return
        watch = self._nodes.get(key)
        if watch is None:
            # A node without any heartbeat yet has a longer grace period.
            extra = 0.0 if _ready_status(node) else STARTUP_GRACE_SECONDS - GRACE_SECONDS
            watch = self._nodes[key] = _Watch(self.clock.now + extra)
            text = f"Node {key} event: Registered Node {key} in Controller"
            self.recorder.event(node, "Normal", "RegisteredNode", text)
        heartbeat = dig(condition(node, "Ready"), "lastHeartbeatTime", default="")
        if heartbeat != watch.heartbeat:
            watch.heartbeat = heartbeat
            if _ready_status(node) != "Unknown":
                watch.last_heartbeat = max(watch.last_heartbeat, self.clock.now)
        left = watch.last_heartbeat + GRACE_SECONDS - self.clock.now
        if left <= 0:
            was_ready = _ready_status(node) == "True"
            node = self._mark_silent(node)
            if was_ready and _ready_status(node) != "True":
                self._give_up_on(node)
        self._follow_ready(node, watch)
        self._taint(node)
        self.enqueue(key, left if left > 0 else GRACE_SECONDS)

    def _forget(self, key: str) -> None:
        if self._nodes.pop(key, None) is not None:
            gone: Obj = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": key, "uid": key}}
            text = f"Node {key} event: Removing Node {key} from Controller"
            self.recorder.event(gone, "Normal", "RemovingNode", text)

    # Silence

    def _mark_silent(self, node: Obj) -> Obj:
        status = dict(node.get("status") or {})
        conditions = status.get("conditions") or []
        for kind in ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure"):
            known = condition(node, kind) or {}
            if known.get("status") == "Unknown":
                continue
            never = not known
            new = {
                "type": kind,
                "status": "Unknown",
                "reason": "NodeStatusNeverUpdated" if never else "NodeStatusUnknown",
                "message": "Kubelet never posted node status." if never else _SILENT,
                "lastHeartbeatTime": known.get("lastHeartbeatTime", node["metadata"]["creationTimestamp"]),
            }
            conditions = with_condition(conditions, new, self.clock.timestamp())
        if conditions == status.get("conditions"):
            return node
        status["conditions"] = conditions
        return self.client.set_status("nodes", node, status) or node

    def _give_up_on(self, node: Obj) -> None:
        """Only nodes without heartbeats are handled here; a node that reports NotReady is handled by its kubelet."""
        text = f"Node {name_of(node)} status is now: NodeNotReady"
        self.recorder.event(node, "Normal", "NodeNotReady", text)
        self._pods_not_ready(name_of(node))

    def _follow_ready(self, node: Obj, watch: _Watch) -> None:
        status, before = _ready_status(node), watch.ready
        watch.ready = status
        if before != status:
            self._log_zones()
            for other in self._nodes:  # how many are gone decides about all of them
                if other != name_of(node):
                    self.enqueue(other)

    def _pods_not_ready(self, node: str) -> None:
        """Mark all pods of an unreachable node as not ready."""
        for pod in self.store.indexed("pods", "node", node):
            verdict = condition(pod, "Ready")
            if verdict is None or verdict.get("status") != "True":
                continue
            status = dict(pod.get("status") or {})
            new = {**verdict, "status": "False"}
            status["conditions"] = with_condition(status.get("conditions") or (), new, self.clock.timestamp())
            self.client.set_status("pods", pod, status)
            self.recorder.event(pod, "Warning", "NodeNotReady", "Node is not ready")

    # Taints

    def _taint(self, node: Obj) -> None:
        """Keep the taints that follow from conditions, and only those, in step with them."""
        present: list[Obj] = dig(node, "spec", "taints", default=[])
        wanted = self._wanted_taints(node, present)
        kept = [t for t in present if t["key"] not in _OURS or (t["key"], t["effect"]) in wanted]
        known = {(t["key"], t["effect"]) for t in kept}
        now = self.clock.timestamp()
        added: list[Obj] = [
            {"key": key, "effect": effect, "timeAdded": now} for key, effect in wanted if (key, effect) not in known
        ]
        taints = [*kept, *added]
        if taints != present:
            self.client.modify("nodes", "", name_of(node), lambda obj: _set_taints(obj, taints))

    def _wanted_taints(self, node: Obj, present: list[Obj]) -> list[tuple[str, str]]:
        states = {(c["type"], c["status"]) for c in dig(node, "status", "conditions", default=())}
        keys = {taint for state, taint in _CONDITION_TAINTS.items() if state in states}
        if dig(node, "spec", "unschedulable"):
            keys.add(UNSCHEDULABLE)
        wanted = [(key, "NoSchedule") for key in sorted(keys)]
        evicting = _EVICTING.get(_ready_status(node))
        if evicting is not None:
            already = any(t["effect"] == "NoExecute" and t["key"] in _EVICTING.values() for t in present)
            if self._may_evict(node, already):
                wanted.append((evicting, "NoExecute"))
        return wanted

    def _may_evict(self, node: Obj, already: bool) -> bool:
        zones = self._zones()
        if all(zone.is_gone for zone in zones.values()):
            return False
        if already:
            return True
        name = _zone_of(node)
        period = _EVICTION_PERIOD
        if zones[name].is_mostly_gone and not zones[name].is_gone:
            if len(self._nodes) <= _LARGE_CLUSTER:
                return False
            period = _SECONDARY_PERIOD
        wait = self._evicted_at.get(name, float("-inf")) + period - self.clock.now
        if wait > 0:
            self.enqueue(name_of(node), wait)
            return False
        self._evicted_at[name] = self.clock.now
        return True

    def _log_zones(self) -> None:
        for name, zone in sorted(self._zones().items()):
            state = "FullDisruption" if zone.is_gone else "PartialDisruption" if zone.is_mostly_gone else "Normal"
            if self._zone_states.get(name) != state:
                self._zone_states[name] = state
                text = '"Controller detected that zone is now in new state" logger="node-lifecycle-controller"'
                self.log("I", "node_lifecycle_controller.go:1067", f'{text} zone="{name}" newState="{state}"')

    def _zones(self) -> dict[str, _Zone]:
        zones: dict[str, _Zone] = {}
        for node in self.store.objects("nodes"):
            zone = zones.setdefault(_zone_of(node), _Zone())
            if _ready_status(node) == "True":
                zone.ready += 1
            else:
                zone.not_ready += 1
        return zones


def _ready_status(node: Obj) -> str:
    found = condition(node, "Ready")
    return str(found.get("status", "")) if found is not None else ""


def _zone_of(node: Obj) -> str:
    return ":".join(labels_of(node).get(label, "") for label in _ZONE_LABELS)


def _node_of(pod: Obj) -> tuple[str, ...]:
    node = dig(pod, "spec", "nodeName")
    return (node,) if node else ()


def _set_taints(node: Obj, taints: list[Obj]) -> None:
    if taints:
        node["spec"]["taints"] = taints
    else:
        node["spec"].pop("taints", None)
