"""DaemonSets: one pod on every node that should have one, also on nodes nothing else would run on."""

from __future__ import annotations

from srearena.cluster.embedded.controllers.controller import Controller, split_key
from srearena.cluster.embedded.controllers.deployment_rollout import resolve_share
from srearena.cluster.embedded.controllers.pod_sets import claim_pods, is_available, pod_from_template
from srearena.cluster.embedded.controllers.revisions import GENERATION_LABEL, HASH_LABEL, Revisions
from srearena.cluster.embedded.objects import (
    Obj,
    condition_is,
    controller_of,
    copy_of,
    dig,
    is_terminating,
    key_of,
    labels_of,
    meta,
    name_of,
    namespace_of,
    uid_of,
)
from srearena.cluster.embedded.recorder import Recorder
from srearena.cluster.embedded.registry.errors import ApiError
from srearena.cluster.embedded.registry.identity import service_account
from srearena.cluster.embedded.registry.placement import matches_node_selector, untolerated_taint
from srearena.cluster.embedded.registry.selectors import label_selector_of
from srearena.cluster.embedded.store import Change
from srearena.cluster.embedded.world import CONTROLLER_MANAGER, World

_ALWAYS_TOLERATED = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_HOST_NETWORK_TOLERATED = (("node.kubernetes.io/network-unavailable", "NoSchedule"),)
_RETRY_FIRST = 1.0
_RETRY_LAST = 900.0


class DaemonSetController(Controller):
    name = "daemon-set-controller"
    resource = "daemonsets.apps"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        user = service_account("kube-system", self.name)
        self.recorder = Recorder(world, "daemonset-controller", user, field_manager=CONTROLLER_MANAGER)
        self._revisions = Revisions(self, HASH_LABEL)
        self._failed_pods: dict[tuple[str, str], tuple[int, float]] = {}

    def start(self) -> None:
        self.watch(self.resource)
        self.watch("pods", self._keys_of_pod)
        self.world.on_change("nodes", self._node_changed)

    def _keys_of_pod(self, pod: Obj) -> list[str]:
        owner = controller_of(pod)
        if owner is not None:
            return [f"{namespace_of(pod)}/{owner['name']}"] if owner["kind"] == "DaemonSet" else []
        return [
            key_of(daemon)
            for daemon in self.store.objects(self.resource, namespace_of(pod))
            if label_selector_of(dig(daemon, "spec", "selector")).matches(labels_of(pod))
        ]

    def _node_changed(self, change: Change) -> None:
        old, new = change.old, change.new
        same = (
            old is not None
            and change.type != "DELETED"
            and old.get("spec") == new.get("spec")
            and labels_of(old) == labels_of(new)
        )
        if not same:
            for daemon in self.store.objects(self.resource):
                self.enqueue(key_of(daemon))

    def reconcile(self, key: str) -> None:
        daemon = self.client.get(self.resource, *split_key(key))
        if daemon is None or is_terminating(daemon):
            return
        selector = label_selector_of(dig(daemon, "spec", "selector"))
        revision, _ = self._revisions.current(daemon)
        pods = claim_pods(self.client, self.store, daemon, selector)
        by_node = self._by_node(pods)
        problem = self._place(daemon, by_node, revision)
        if problem is None and dig(daemon, "spec", "updateStrategy", "type") == "RollingUpdate":
            problem = self._roll(daemon, revision)
        self._write_status(daemon, revision)
        if problem is not None:
            raise problem

    @staticmethod
    def _by_node(pods: list[Obj]) -> dict[str, list[Obj]]:
        found: dict[str, list[Obj]] = {}
        for pod in sorted(pods, key=lambda pod: meta(pod)["creationTimestamp"]):
            found.setdefault(_target(pod), []).append(pod)
        return found

    # Where

    def _wanted(self, daemon: Obj, node: Obj) -> tuple[bool, bool]:
        """(whether a pod should be started on the node, whether one there may stay)"""
        probe: Obj = {"metadata": {}, "spec": self._spec(daemon, name_of(node))}
        pinned = dig(daemon, "spec", "template", "spec", "nodeName")
        if (pinned and pinned != name_of(node)) or not matches_node_selector(probe, node):
            return False, False
        blocked = untolerated_taint(probe, node, ("NoExecute",))
        if blocked is not None:
            return False, False
        return untolerated_taint(probe, node, ("NoSchedule",)) is None, True

    def _spec(self, daemon: Obj, node: str) -> Obj:
        """The pod's spec with what ties it to a node and makes it endure there."""
        spec = copy_of(dig(daemon, "spec", "template", "spec", default={}))
        wanted = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        affinity = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
        required = affinity.setdefault("requiredDuringSchedulingIgnoredDuringExecution", {})
        terms = [{**term, **wanted} for term in required.get("nodeSelectorTerms") or ()]
        required["nodeSelectorTerms"] = terms or [wanted]
        tolerated = _ALWAYS_TOLERATED + (_HOST_NETWORK_TOLERATED if spec.get("hostNetwork") else ())
        known = spec.get("tolerations") or []
        extra = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in tolerated]
        spec["tolerations"] = [*known, *(toleration for toleration in extra if toleration not in known)]
        return spec

    def _place(self, daemon: Obj, by_node: dict[str, list[Obj]], revision: Obj) -> ApiError | None:
        create: list[str] = []
        for node in self.store.objects("nodes"):
            run, stay = self._wanted(daemon, node)
            pods = [pod for pod in by_node.get(name_of(node), []) if not is_terminating(pod)]
            failed = [pod for pod in pods if dig(pod, "status", "phase") == "Failed"]
            for pod in failed if stay else ():
                self._replace_failed(daemon, name_of(node), pod)
            alive = [pod for pod in pods if pod not in failed]
            if run and not by_node.get(name_of(node)):
                create.append(name_of(node))
            elif not stay:
                for pod in pods:
                    self._remove(daemon, pod)
            else:
                for pod in alive[self._most_per_node(daemon) :]:
                    self._remove(daemon, pod)
        known = {name_of(node) for node in self.store.objects("nodes")}
        for node_name, pods in by_node.items():
            if node_name not in known:
                for pod in pods:
                    self.client.delete("pods", pod, grace_seconds=0)
        for node_name in create:
            problem = self._create(daemon, node_name, revision)
            if problem is not None:
                return problem
        return None

    @staticmethod
    def _most_per_node(daemon: Obj) -> int:
        surge = dig(daemon, "spec", "updateStrategy", "rollingUpdate", "maxSurge", default=0)
        return 2 if surge not in (0, "0", "0%") else 1

    def _replace_failed(self, daemon: Obj, node: str, pod: Obj) -> None:
        """Delete a failed pod, but not in a tight loop."""
        key = (uid_of(daemon), node)
        count, since = self._failed_pods.get(key, (0, 0.0))
        wait = min(_RETRY_FIRST * 2**count, _RETRY_LAST) if count else 0.0
        if self.clock.now < since + wait:
            self.enqueue(key_of(daemon), since + wait - self.clock.now)
            return
        self._failed_pods[key] = (count + 1, self.clock.now)
        text = f"Found failed daemon pod {key_of(pod)} on node {node}, will try to kill it"
        self.recorder.event(daemon, "Warning", "FailedDaemonPod", text)
        self._remove(daemon, pod)

    def _create(self, daemon: Obj, node: str, revision: Obj) -> ApiError | None:
        pod = pod_from_template(daemon, daemon["spec"]["template"])
        pod["spec"] = self._spec(daemon, node)
        labels = pod["metadata"].setdefault("labels", {})
        labels["controller-revision-hash"] = labels_of(revision)["controller-revision-hash"]
        labels[GENERATION_LABEL] = str(meta(daemon).get("generation", 1))
        try:
            made = self.client.create("pods", pod)
        except ApiError as problem:
            self.recorder.event(daemon, "Warning", "FailedCreate", f"Error creating: {problem.message}")
            return problem
        self.recorder.event(daemon, "Normal", "SuccessfulCreate", f"Created pod: {name_of(made)}")
        return None

    def _remove(self, daemon: Obj, pod: Obj) -> None:
        if not is_terminating(pod):
            self.client.delete("pods", pod)
            self.recorder.event(daemon, "Normal", "SuccessfulDelete", f"Deleted pod: {name_of(pod)}")

    # Rolling updates

    def _roll(self, daemon: Obj, revision: Obj) -> ApiError | None:
        mark = labels_of(revision)["controller-revision-hash"]
        rolling = dig(daemon, "spec", "updateStrategy", "rollingUpdate", default={})
        patience = dig(daemon, "spec", "minReadySeconds", default=0)
        nodes = [node for node in self.store.objects("nodes") if self._wanted(daemon, node)[0]]
        surge = resolve_share(rolling.get("maxSurge"), len(nodes), up=True)
        room = resolve_share(rolling.get("maxUnavailable", 1 if not surge else 0), len(nodes), up=True)
        by_node = self._by_node([pod for kind, pod in self.store.owned_by(uid_of(daemon)) if kind == "pods"])
        old_available: list[Obj] = []
        unavailable = 0
        for node in nodes:
            pods = [pod for pod in by_node.get(name_of(node), []) if not is_terminating(pod)]
            new = [pod for pod in pods if labels_of(pod).get("controller-revision-hash") == mark]
            old = [pod for pod in pods if pod not in new]
            up = [pod for pod in pods if is_available(pod, patience, self.clock.now)]
            if surge and old:
                problem = self._surge(daemon, revision, name_of(node), old, new, patience)
                if problem is not None:
                    return problem
                continue
            if not up:
                unavailable += 1
                for pod in old:
                    self._remove(daemon, pod)  # it serves nobody: replacing it costs nothing
            elif old:
                old_available += old
        for pod in old_available[: max(0, room - unavailable)]:
            self._remove(daemon, pod)
        return None

    def _surge(
        self, daemon: Obj, revision: Obj, node: str, old: list[Obj], new: list[Obj], patience: int
    ) -> ApiError | None:
        if not new:
            return self._create(daemon, node, revision)
        if any(is_available(pod, patience, self.clock.now) for pod in new):
            for pod in old:
                self._remove(daemon, pod)
        return None

    # Status

    def _write_status(self, daemon: Obj, revision: Obj) -> None:
        current = self.client.get(self.resource, namespace_of(daemon), name_of(daemon))
        if current is None:
            return
        mark = labels_of(revision)["controller-revision-hash"]
        patience = dig(current, "spec", "minReadySeconds", default=0)
        by_node = self._by_node([pod for kind, pod in self.store.owned_by(uid_of(daemon)) if kind == "pods"])
        count = dict.fromkeys(("scheduled", "desired", "misscheduled", "ready", "available", "updated"), 0)
        for node in self.store.objects("nodes"):
            run, _ = self._wanted(current, node)
            pods = [pod for pod in by_node.get(name_of(node), []) if not is_terminating(pod)]
            if not run:
                count["misscheduled"] += bool(pods)
                continue
            count["desired"] += 1
            if pods:
                count["scheduled"] += 1
                count["ready"] += any(condition_is(pod, "Ready") for pod in pods)
                count["available"] += any(is_available(pod, patience, self.clock.now) for pod in pods)
                count["updated"] += any(labels_of(pod).get("controller-revision-hash") == mark for pod in pods)
        status: Obj = {
            "currentNumberScheduled": count["scheduled"],
            "desiredNumberScheduled": count["desired"],
            "numberMisscheduled": count["misscheduled"],
            "numberReady": count["ready"],
            "observedGeneration": meta(current).get("generation", 1),
        }
        optional = {
            "numberAvailable": count["available"],
            "numberUnavailable": count["desired"] - count["available"],
            "updatedNumberScheduled": count["updated"],
        }
        status.update({key: value for key, value in optional.items() if value})
        if status != current.get("status"):
            self.client.set_status(self.resource, current, status)
        if patience and count["available"] < count["ready"]:
            self.enqueue(key_of(current), patience)


def _target(pod: Obj) -> str:
    """The node a daemon pod is on or meant for."""
    assigned = dig(pod, "spec", "nodeName")
    if assigned:
        return str(assigned)
    path = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
    for term in dig(pod, "spec", *path, default=()):
        for field in term.get("matchFields") or ():
            if field.get("key") == "metadata.name" and field.get("values"):
                return str(field["values"][0])
    return ""
