"""DaemonSets: one pod on every eligible node."""

from __future__ import annotations

from collections.abc import Iterable

from srearena.cluster.embedded.controllers.controller import Controller, split_key
from srearena.cluster.embedded.controllers.daemon_pods import is_updated, placement, pod_for, target_of
from srearena.cluster.embedded.controllers.daemon_rollout import allows_surge, next_moves, pair_of
from srearena.cluster.embedded.controllers.pod_sets import (
    claim_pods,
    is_available,
    is_refused_for_good,
    keys_of_pod,
    orphan_index,
)
from srearena.cluster.embedded.controllers.revisions import HASH_LABEL, Revisions
from srearena.cluster.embedded.objects import (
    Obj,
    condition_is,
    dig,
    is_terminating,
    key_of,
    labels_of,
    meta,
    name_of,
    namespace_of,
    uid_of,
)
from srearena.cluster.embedded.registry.errors import ApiError
from srearena.cluster.embedded.registry.selectors import label_selector_of
from srearena.cluster.embedded.store import Change
from srearena.cluster.embedded.world import World

DAEMONS = "daemonsets.apps"
_BURST = 250
_RETRY_FIRST = 1.0
_RETRY_LAST = 900.0

ByNode = dict[str, list[Obj]]


class DaemonSetController(Controller):
    name = "daemon-set-controller"
    failure = ("daemon_controller.go:346", "{key} failed with : {problem}")
    source = "daemonset-controller"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.store.add_index("pods", "orphans", orphan_index)
        self._revisions = Revisions(self, HASH_LABEL)
        self._failed_pods: dict[tuple[str, str], tuple[int, float]] = {}
        """By set and node: how often a failed pod was replaced there, and when last."""

    def start(self) -> None:
        self.watch(DAEMONS)
        self.watch("pods", lambda pod: keys_of_pod(self.store, DAEMONS, "DaemonSet", pod))
        self.world.on_change("nodes", self._node_changed)

    def _node_changed(self, change: Change) -> None:
        old, new = change.old, change.new
        changed = old is None or old.get("spec") != new.get("spec") or labels_of(old) != labels_of(new)
        if not changed and change.type != "DELETED":
            return
        for daemon in self.store.objects(DAEMONS):
            self.enqueue(key_of(daemon))

    def reconcile(self, key: str) -> None:
        daemon = self.client.get(DAEMONS, *split_key(key))
        if daemon is None or is_terminating(daemon):
            return
        selector = label_selector_of(dig(daemon, "spec", "selector"))
        if selector.empty:
            text = "This daemon set is selecting all pods. A non-empty selector is required."
            self.recorder.event(daemon, "Warning", "SelectingAll", text)
            return
        revision, _ = self._revisions.current(daemon)
        pods = claim_pods(self.client, self.store, daemon, selector)
        problem = self._place(daemon, _by_node(pods), revision)
        if problem is None and dig(daemon, "spec", "updateStrategy", "type") == "RollingUpdate":
            problem = self._roll(daemon, revision)
        left = self._own_pods(daemon)
        self._revisions.forget_old(daemon, {name_of(revision)}, left)
        self._write_status(daemon, left, revision)
        if problem is not None:
            raise problem

    def _own_pods(self, daemon: Obj) -> list[Obj]:
        return [pod for resource, pod in self.store.owned_by(uid_of(daemon)) if resource == "pods"]

    # One pod on each node

    def _place(self, daemon: Obj, by_node: ByNode, revision: Obj) -> ApiError | None:
        lacking: list[str] = []
        surplus: list[Obj] = []
        nodes = self.store.objects("nodes")
        for node in nodes:
            run, stay = placement(daemon, node)
            pods = by_node.get(name_of(node), [])
            if run and not pods:
                lacking.append(name_of(node))
            elif stay:
                surplus += self._superfluous(daemon, name_of(node), pods, revision)
            else:
                surplus += pods
        known = {name_of(node) for node in nodes}
        for target, pods in by_node.items():
            if target not in known:  # pods of deleted nodes are handled by the pod garbage collector
                surplus += [pod for pod in pods if not dig(pod, "spec", "nodeName")]
        problem = self._create(daemon, lacking, revision)
        self._delete(daemon, surplus)
        return problem

    def _superfluous(self, daemon: Obj, node: str, pods: list[Obj], revision: Obj) -> list[Obj]:
        """Pods that ended, and doubles: all but the oldest, or during a surge the oldest of either template."""
        ended: list[Obj] = []
        running: list[Obj] = []
        for pod in pods:
            phase = dig(pod, "status", "phase")
            if is_terminating(pod):
                continue
            if phase == "Failed":
                ended += [pod] if self._may_replace(daemon, node, pod) else []
            elif phase == "Succeeded":
                text = f"Found succeeded daemon pod {key_of(pod)} on node {node}, will try to delete it"
                self.recorder.event(daemon, "Normal", "SucceededDaemonPod", text)
                ended.append(pod)
            else:
                running.append(pod)
        kept = running[:1]
        if allows_surge(daemon):
            pair = pair_of(running, lambda pod: is_updated(pod, revision))
            kept = [pod for pod in (pair.old, pair.new) if pod is not None]
        return [*ended, *(pod for pod in running if pod not in kept)]

    def _may_replace(self, daemon: Obj, node: str, pod: Obj) -> bool:
        """Whether a failed pod may be replaced now; not in a tight loop, but after a second, two, four ..."""
        key = (uid_of(daemon), node)
        count, since = self._failed_pods.get(key, (0, 0.0))
        wait = min(_RETRY_FIRST * 2 ** min(count - 1, 20), _RETRY_LAST) if count else 0.0
        if self.clock.now < since + wait:
            self.enqueue(key_of(daemon), since + wait - self.clock.now)
            return False
        if count and self.clock.now > since + 2 * _RETRY_LAST:
            count = 0
        self._failed_pods[key] = (count + 1, self.clock.now)
        text = f"Found failed daemon pod {key_of(pod)} on node {node}, will try to kill it"
        self.recorder.event(daemon, "Warning", "FailedDaemonPod", text)
        return True

    def _create(self, daemon: Obj, nodes: list[str], revision: Obj) -> ApiError | None:
        for node in nodes[:_BURST]:
            try:
                created = self.client.create("pods", pod_for(daemon, node, revision))
            except ApiError as problem:
                if is_refused_for_good(problem):
                    return None
                self.recorder.event(daemon, "Warning", "FailedCreate", f"Error creating: {problem.message}")
                return problem
            self.recorder.event(daemon, "Normal", "SuccessfulCreate", f"Created pod: {name_of(created)}")
        return None

    def _delete(self, daemon: Obj, pods: Iterable[Obj]) -> None:
        for pod in pods:
            if not is_terminating(pod):
                self.client.delete("pods", pod)
                self.recorder.event(daemon, "Normal", "SuccessfulDelete", f"Deleted pod: {name_of(pod)}")

    # Rolling updates

    def _roll(self, daemon: Obj, revision: Obj) -> ApiError | None:
        patience = dig(daemon, "spec", "minReadySeconds", default=0)
        wanted = [name_of(node) for node in self.store.objects("nodes") if placement(daemon, node)[0]]
        by_node = _by_node(self._own_pods(daemon))
        moves = next_moves(
            daemon,
            len(wanted),
            {node: by_node.get(node, []) for node in sorted({*wanted, *by_node})},
            lambda pod: is_updated(pod, revision),
            lambda pod: is_available(pod, patience, self.clock.now),
        )
        self._delete(daemon, moves.delete)
        return self._create(daemon, moves.create_on, revision)

    # Status

    def _write_status(self, daemon: Obj, pods: list[Obj], revision: Obj) -> None:
        current = self.client.get(DAEMONS, namespace_of(daemon), name_of(daemon))
        if current is None:
            return
        patience = dig(daemon, "spec", "minReadySeconds", default=0)
        by_node = _by_node(pods)
        count = dict.fromkeys(("scheduled", "desired", "misscheduled", "ready", "available", "updated"), 0)
        for node in self.store.objects("nodes"):
            run, _ = placement(daemon, node)
            first = next(iter(by_node.get(name_of(node), [])), None)
            count["desired"] += run
            if first is None:
                continue
            if not run:
                count["misscheduled"] += 1
                continue
            count["scheduled"] += 1
            count["ready"] += condition_is(first, "Ready")
            count["available"] += is_available(first, patience, self.clock.now)
            count["updated"] += is_updated(first, revision)
        status: Obj = {
            "currentNumberScheduled": count["scheduled"],
            "numberMisscheduled": count["misscheduled"],
            "desiredNumberScheduled": count["desired"],
            "numberReady": count["ready"],
            "observedGeneration": meta(daemon).get("generation", 1),
        }
        optional = {
            "updatedNumberScheduled": count["updated"],
            "numberAvailable": count["available"],
            "numberUnavailable": count["desired"] - count["available"],
        }
        status.update({key: value for key, value in optional.items() if value})
        if status != current.get("status"):
            self.client.set_status(DAEMONS, current, status)
        if patience and count["available"] < count["ready"]:
            self.enqueue(key_of(current), patience)


def _by_node(pods: list[Obj]) -> ByNode:
    """Pods by the node they are on or meant for, the oldest first."""
    found: ByNode = {}
    for pod in sorted(pods, key=lambda pod: (meta(pod)["creationTimestamp"], name_of(pod))):
        found.setdefault(target_of(pod), []).append(pod)
    return found
