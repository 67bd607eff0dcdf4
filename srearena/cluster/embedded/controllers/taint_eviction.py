"""Taint-based eviction: delete pods that do not tolerate a NoExecute taint, at once or after tolerationSeconds."""

from __future__ import annotations

from srearena.cluster.embedded.clock import Timer
from srearena.cluster.embedded.controllers.controller import Controller, split_key
from srearena.cluster.embedded.objects import (
    Obj,
    dig,
    is_terminating,
    key_of,
    name_of,
    pod_condition,
    uid_of,
    with_condition,
)
from srearena.cluster.embedded.registry.placement import tolerates
from srearena.cluster.embedded.store import Change
from srearena.cluster.embedded.world import World


class TaintEvictionController(Controller):
    name = "taint-eviction-controller"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._leaving: dict[str, Timer] = {}

    def start(self) -> None:
        self.watch("pods", lambda pod: (key_of(pod),) if dig(pod, "spec", "nodeName") else ())
        self.world.on_change("nodes", self._node_changed)

    def _node_changed(self, change: Change) -> None:
        if change.old is not None and dig(change.old, "spec", "taints") == dig(change.new, "spec", "taints"):
            return
        for pod in self.store.indexed("pods", "node", name_of(change.new)):
            self.enqueue(key_of(pod))

    def reconcile(self, key: str) -> None:
        pod = self.client.get("pods", *split_key(key))
        if pod is None or is_terminating(pod):
            self._stay(key)
            return
        node = self.client.get("nodes", "", dig(pod, "spec", "nodeName", default=""))
        patience = _patience(pod, node) if node is not None else None
        if patience is None:
            if self._stay(key):
                self._tell(key, f"Cancelling deletion of Pod {key}")
        elif patience <= 0:
            self._evict(key, uid_of(pod))
        elif key not in self._leaving:
            self._leaving[key] = self.clock.after(patience, self._evict, key, uid_of(pod))

    def _stay(self, key: str) -> bool:
        timer = self._leaving.pop(key, None)
        if timer is None or not timer.pending:
            return False
        timer.cancel()
        return True

    def _tell(self, key: str, text: str) -> None:
        """The real controller refers to pods without UID, so lookups of events by UID do not find it."""
        namespace, name = split_key(key)
        named: Obj = {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": namespace, "name": name}}
        self.recorder.event(named, "Normal", "TaintManagerEviction", text)

    def _evict(self, key: str, uid: str) -> None:
        self._leaving.pop(key, None)
        pod = self.client.get("pods", *split_key(key))
        if pod is None or uid_of(pod) != uid or is_terminating(pod):
            return
        self._tell(key, f"Marking for deletion Pod {key}")
        line = f'"Deleting pod" logger="{self.name}" controller="{self.name}" pod="{key}"'
        self.log("I", "taint_eviction.go:111", line)
        why = "Taint manager: deleting due to NoExecute taint"
        target = pod_condition(pod, "DisruptionTarget", "True", "DeletionByTaintManager", why)
        status = dict(pod.get("status") or {})
        status["conditions"] = with_condition(status.get("conditions") or (), target, self.clock.timestamp())
        self.client.set_status("pods", pod, status)
        self.client.delete("pods", pod)


def _patience(pod: Obj, node: Obj) -> float | None:
    """How long the pod tolerates the node's taints: None for ever, 0 not at all."""
    shortest: float | None = None
    for taint in dig(node, "spec", "taints", default=()):
        if taint.get("effect") != "NoExecute":
            continue
        fitting = next((t for t in dig(pod, "spec", "tolerations", default=()) if tolerates(t, taint)), None)
        if fitting is None:
            return 0.0
        if fitting.get("tolerationSeconds") is not None:
            seconds = max(0.0, float(fitting["tolerationSeconds"]))
            shortest = seconds if shortest is None else min(shortest, seconds)
    return shortest
