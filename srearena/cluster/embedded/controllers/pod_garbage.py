"""Pod garbage collection: pods on deleted nodes, deleted unscheduled pods, and too many finished pods.

The real collector runs every twenty seconds; a node must have been deleted for forty before its pods are removed.
"""

from __future__ import annotations

from srearena.cluster.embedded.controllers.controller import Controller, split_key
from srearena.cluster.embedded.objects import (
    Obj,
    condition_is,
    dig,
    is_terminating,
    key_of,
    meta,
    name_of,
    with_condition,
)
from srearena.cluster.embedded.store import Change

_PERIOD = 20.0
_QUARANTINE = 40.0
_MOST_FINISHED = 12_500
_FINISHED = "finished"
_OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
_NODE_GONE: Obj = {
    "type": "DisruptionTarget",
    "status": "True",
    "lastProbeTime": None,
    "reason": "DeletionByPodGC",
    "message": "PodGC: node no longer exists",
}


def _is_out_of_service(node: Obj) -> bool:
    tainted = any(taint.get("key") == _OUT_OF_SERVICE for taint in dig(node, "spec", "taints", default=()))
    return tainted and not condition_is(node, "Ready")


class PodGarbageCollector(Controller):
    name = "pod-garbage-collector"

    def start(self) -> None:
        self.store.add_index("pods", "pod-garbage/node", lambda pod: (dig(pod, "spec", "nodeName", default=""),))
        self.world.on_change("nodes", self._node_changed)
        self.world.on_change("pods", self._pod_changed)
        for pod in self.store.objects("pods"):
            self._consider(pod)

    def _node_changed(self, change: Change) -> None:
        if change.type == "DELETED":
            self.enqueue(f"node:{name_of(change.new)}", _QUARANTINE + _PERIOD / 2)
        elif _is_out_of_service(change.new):
            self.enqueue(f"away:{name_of(change.new)}", _PERIOD / 2)

    def _pod_changed(self, change: Change) -> None:
        if change.type == "DELETED":
            return
        self._consider(change.new)
        if self.store.count("pods") > _MOST_FINISHED:
            self.enqueue(_FINISHED, _PERIOD)

    def _consider(self, pod: Obj) -> None:
        node = dig(pod, "spec", "nodeName")
        if node and self.store.get("nodes", "", node) is None:
            self.enqueue(f"node:{node}", _QUARANTINE + _PERIOD / 2)
        elif not node and is_terminating(pod):
            self.enqueue(f"pod:{key_of(pod)}", _PERIOD / 2)

    def reconcile(self, key: str) -> None:
        kind, _, rest = key.partition(":")
        if kind == "node":
            if self.store.get("nodes", "", rest) is None:
                for pod in self.store.indexed("pods", "pod-garbage/node", rest):
                    self._give_up(pod, _NODE_GONE)
        elif kind == "away":
            self._sweep_out_of_service(rest)
        elif kind == "pod":
            found = self.client.get("pods", *split_key(rest))
            if found is not None and is_terminating(found) and not dig(found, "spec", "nodeName"):
                self._give_up(found)
        else:
            self._thin_out_finished()

    def _give_up(self, pod: Obj, target: Obj | None = None) -> None:
        """Mark the pod as failed, and force its deletion."""
        line = f'"PodGC is force deleting Pod" logger="pod-garbage-collector-controller" pod="{key_of(pod)}"'
        self.log("I", "gc_controller.go:343", line)
        status = dict(pod.get("status") or {})
        if status.get("phase") not in ("Succeeded", "Failed"):
            status["phase"] = "Failed"
            generation = meta(pod).get("generation", 1)
            status["observedGeneration"] = generation
            if target is not None:
                new = {**target, "observedGeneration": generation}
                status["conditions"] = with_condition(status.get("conditions") or (), new, self.clock.timestamp())
            self.client.set_status("pods", pod, status)
        self.client.delete("pods", pod, grace_seconds=0)

    def _sweep_out_of_service(self, name: str) -> None:
        """Force the deletion of terminating pods on nodes with the out-of-service taint."""
        node = self.store.get("nodes", "", name)
        if node is None or not _is_out_of_service(node):
            return
        pods = self.store.indexed("pods", "pod-garbage/node", name)
        for pod in pods:
            if is_terminating(pod):
                self._give_up(pod)
        if pods:
            self.enqueue(f"away:{name}", _PERIOD)

    def _thin_out_finished(self) -> None:
        finished = [
            pod
            for pod in self.store.objects("pods")
            if dig(pod, "status", "phase") in ("Succeeded", "Failed") and not is_terminating(pod)
        ]
        surplus = len(finished) - _MOST_FINISHED
        finished.sort(
            key=lambda pod: (dig(pod, "status", "reason") != "Evicted", meta(pod)["creationTimestamp"], name_of(pod))
        )
        for pod in finished[: max(0, surplus)]:
            self.client.delete("pods", pod, grace_seconds=0)
