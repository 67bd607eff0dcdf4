"""Nodes that fall silent: their conditions become unknown, they are tainted, and their pods no longer count as ready.

A node's kubelet renews its lease every ten seconds. Fifty seconds without one, and the node is taken for unreachable.
"""

from __future__ import annotations

from srearena.cluster.embedded.controllers.controller import Controller
from srearena.cluster.embedded.objects import Obj, condition, dig, name_of, with_condition
from srearena.cluster.embedded.recorder import Recorder
from srearena.cluster.embedded.registry.identity import service_account
from srearena.cluster.embedded.store import Change
from srearena.cluster.embedded.world import CONTROLLER_MANAGER, World

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


class NodeLifecycleController(Controller):
    name = "node-controller"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        user = service_account("kube-system", self.name)
        self.recorder = Recorder(world, self.name, user, field_manager=CONTROLLER_MANAGER)
        self._heard: dict[str, float] = {}
        self._ready: dict[str, str] = {}

    def start(self) -> None:
        self.world.on_change(LEASES, self._lease_changed)
        self.watch("nodes")

    def _lease_changed(self, change: Change) -> None:
        if change.new["metadata"]["namespace"] == LEASE_NAMESPACE:
            self._heard[name_of(change.new)] = self.clock.now

    def reconcile(self, key: str) -> None:
        node = self.client.get("nodes", "", key)
        if node is None:
            self._forget(key)
            return
        if key not in self._ready:
            self._ready[key] = ""
            self._heard.setdefault(key, self.clock.now + STARTUP_GRACE_SECONDS - GRACE_SECONDS)
            text = f"Node {key} event: Registered Node {key} in Controller"
            self.recorder.event(node, "Normal", "RegisteredNode", text)
        left = self._heard[key] + GRACE_SECONDS - self.clock.now
        if left <= 0:
            node = self._mark_silent(node)
        self._taint(node)
        self._follow_ready(node)
        self.enqueue(key, left if left > 0 else GRACE_SECONDS)

    def _forget(self, key: str) -> None:
        if key in self._ready:
            del self._ready[key]
            self._heard.pop(key, None)
            gone: Obj = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": key, "uid": key}}
            self.recorder.event(
                gone, "Normal", "RemovingNode", f"Node {key} event: Removing Node {key} from Controller"
            )

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
                "lastHeartbeatTime": known.get("lastHeartbeatTime", self.clock.timestamp()),
            }
            conditions = with_condition(conditions, new, self.clock.timestamp())
        if conditions == status.get("conditions"):
            return node
        status["conditions"] = conditions
        return self.client.set_status("nodes", node, status) or node

    def _taint(self, node: Obj) -> None:
        """Keep the taints that follow from conditions, and only those, in step with them."""
        states = {(c["type"], c["status"]) for c in dig(node, "status", "conditions", default=())}
        wanted = {taint for state, taint in _CONDITION_TAINTS.items() if state in states}
        if dig(node, "spec", "unschedulable"):
            wanted.add(UNSCHEDULABLE)
        present = dig(node, "spec", "taints", default=[])
        kept = [
            taint
            for taint in present
            if taint["key"] not in _OURS
            or (taint["effect"] == "NoSchedule" and taint["key"] in wanted)
            or (taint["effect"] == "NoExecute" and self._evicts(node, taint["key"]))
        ]
        known = {(taint["key"], taint["effect"]) for taint in kept}
        now = self.clock.timestamp()
        added: list[Obj] = [
            {"key": key, "effect": "NoSchedule", "timeAdded": now}
            for key in sorted(wanted)
            if (key, "NoSchedule") not in known
        ]
        evicting = _EVICTING.get((condition(node, "Ready") or {}).get("status", ""))
        if evicting is not None and (evicting, "NoExecute") not in known:
            added.append({"key": evicting, "effect": "NoExecute", "timeAdded": now})
        taints = [*kept, *added]
        if taints != present:
            self.client.modify("nodes", "", name_of(node), lambda obj: _set_taints(obj, taints))

    @staticmethod
    def _evicts(node: Obj, key: str) -> bool:
        return _EVICTING.get((condition(node, "Ready") or {}).get("status", "")) == key

    def _follow_ready(self, node: Obj) -> None:
        status = (condition(node, "Ready") or {}).get("status", "")
        before = self._ready.get(name_of(node))
        self._ready[name_of(node)] = status
        if before == "True" and status in ("False", "Unknown"):
            text = f"Node {name_of(node)} status is now: NodeNotReady"
            self.recorder.event(node, "Normal", "NodeNotReady", text)
            self._pods_not_ready(name_of(node))

    def _pods_not_ready(self, node: str) -> None:
        """Nobody on a node that may be gone can be relied on."""
        for pod in self.store.indexed("pods", "node", node):
            verdict = condition(pod, "Ready")
            if verdict is None or verdict.get("status") != "True":
                continue
            status = dict(pod.get("status") or {})
            new = {**verdict, "status": "False"}
            status["conditions"] = with_condition(status.get("conditions") or (), new, self.clock.timestamp())
            self.client.set_status("pods", pod, status)
            self.recorder.event(pod, "Warning", "NodeNotReady", "Node is not ready")


def _set_taints(node: Obj, taints: list[Obj]) -> None:
    if taints:
        node["spec"]["taints"] = taints
    else:
        node["spec"].pop("taints", None)
