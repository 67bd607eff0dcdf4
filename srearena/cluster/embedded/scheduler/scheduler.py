"""kube-scheduler: takes pods from its queue one at a time and binds each to the best node, or records why none fits."""

from __future__ import annotations

from collections import Counter

from srearena.cluster.embedded.objects import (
    Obj,
    annotations_of,
    condition,
    dig,
    is_terminating,
    labels_of,
    meta,
    name_of,
    namespace_of,
    pod_condition,
    uid_of,
    with_condition,
)
from srearena.cluster.embedded.registry.binding import bind
from srearena.cluster.embedded.registry.errors import ApiError
from srearena.cluster.embedded.registry.identity import component
from srearena.cluster.embedded.scheduler.filters import Cycle, Rejection, beyond_named, named_nodes, reject
from srearena.cluster.embedded.scheduler.node_state import ClusterState, NodeState, PodInfo, occupies
from srearena.cluster.embedded.scheduler.preemption import Plan, find_plan, not_eligible, reasons_told
from srearena.cluster.embedded.scheduler.queue import SchedulingQueue, Waiting
from srearena.cluster.embedded.scheduler.scores import best
from srearena.cluster.embedded.scheduler.statistics import Statistics
from srearena.cluster.embedded.scheduler.topology import picture, spreads
from srearena.cluster.embedded.scheduler.volumes import (
    SELECTED_NODE,
    VolumeNeeds,
    exclusive_claims_in_use,
    find_volume,
    volume_needs,
    volume_reaches,
)
from srearena.cluster.embedded.series_recorder import SeriesRecorder
from srearena.cluster.embedded.store import Change
from srearena.cluster.embedded.world import World

NAME = "default-scheduler"
_DECISION_SECONDS = 0.002
"""The duration of one scheduling cycle."""
_BINDING_POLL = 1.0
"""The polling interval of a pod whose volumes are being bound."""
_BINDING_TIMEOUT = 600.0
_VOLUME_RESOURCES = ("persistentvolumeclaims", "persistentvolumes", "storageclasses.storage.k8s.io")


class Scheduler:
    def __init__(self, world: World) -> None:
        self._world = world
        self._clock = world.clock
        self._store = world.store
        user = component("kube-scheduler")
        self._client = world.client(user, "kube-scheduler")
        self._recorder = SeriesRecorder(world, NAME, f"{NAME}-{world.control_plane_name}", user, "kube-scheduler")
        self._state = ClusterState(world.store)
        self._awake = False
        self._nominated: dict[str, tuple[str, PodInfo]] = {}
        self.queue = SchedulingQueue(world.clock, self._wake)
        self.statistics = Statistics(_DECISION_SECONDS)

    def start(self) -> None:
        self._world.on_change("pods", self._pod_changed)
        self._world.on_change("nodes", self._node_changed)
        for resource in _VOLUME_RESOURCES:
            self._world.on_change(resource, lambda change: self.queue.happened("volume"))
        for pod in self._store.objects("pods"):
            self._consider(pod)

    # What happens around it

    def _pod_changed(self, change: Change) -> None:
        pod, old = change.new, change.old
        if change.type == "DELETED":
            self.queue.forget(uid_of(pod))
            self.statistics.forget(uid_of(pod))
            self._nominated.pop(uid_of(pod), None)
            if occupies(pod):
                self.queue.happened("pod-gone")
            return
        if old is not None and occupies(old) and not occupies(pod):
            self.queue.happened("pod-gone")
        if dig(pod, "spec", "nodeName"):
            if old is None or not dig(old, "spec", "nodeName") or labels_of(old) != labels_of(pod):
                self.queue.happened("pod")
        elif old is None:
            self._consider(pod)
        elif old.get("spec") != pod.get("spec") or labels_of(old) != labels_of(pod):
            if dig(old, "spec", "schedulingGates") and not dig(pod, "spec", "schedulingGates"):
                self._consider(pod)
            else:
                self.queue.changed(uid_of(pod))

    def _node_changed(self, change: Change) -> None:
        old, new = change.old, change.new
        if (
            old is None
            or change.type == "DELETED"
            or old.get("spec") != new.get("spec")
            or labels_of(old) != labels_of(new)
            or dig(old, "status", "allocatable") != dig(new, "status", "allocatable")
        ):
            self.queue.happened("node")

    def _consider(self, pod: Obj) -> None:
        """Queue a pod of this scheduler."""
        if dig(pod, "spec", "nodeName") or is_terminating(pod) or dig(pod, "spec", "schedulerName") != NAME:
            return
        if dig(pod, "status", "phase") in ("Succeeded", "Failed"):
            return
        if dig(pod, "spec", "schedulingGates"):
            return
        priority = dig(pod, "spec", "priority", default=0)
        self.statistics.queued(uid_of(pod), self._clock.now)
        self.queue.add(Waiting(namespace_of(pod), name_of(pod), uid_of(pod), priority, self._clock.now))

    def _wake(self) -> None:
        if not self._awake:
            self._awake = True
            self._clock.after(_DECISION_SECONDS, self._work)

    def _work(self) -> None:
        self._awake = False
        waiting = self.queue.pop()
        if waiting is None:
            return
        pod = self._store.get("pods", waiting.namespace, waiting.name)
        if (
            pod is not None
            and uid_of(pod) == waiting.uid
            and not dig(pod, "spec", "nodeName")
            and not is_terminating(pod)
        ):
            self._place(pod, waiting)
        self._wake()

    # One decision

    def _place(self, pod: Obj, waiting: Waiting) -> None:
        self.statistics.began(waiting.uid)
        info = PodInfo.of(pod)
        nodes = self._state.nodes
        needs = volume_needs(pod, self._store)
        if not nodes:
            self._give_up(pod, waiting, "no nodes available to schedule pods", frozenset({"node"}), nominated="")
            return
        named = named_nodes(pod)
        problem = "pod affinity terms conflict" if named is not None and not named else needs.problem
        if problem:
            # What comes after this check did not prepare itself and finds nothing: the odd last words say so.
            message = f"0/{len(nodes)} nodes are available: {problem}. not found"
            self._give_up(pod, waiting, message, frozenset({"volume"}))
            return
        cycle = self._cycle(info, needs, list(nodes.values()))
        promised = nodes.get(dig(pod, "status", "nominatedNodeName", default=""))
        if promised is not None and reject(cycle, self._with_nominated(promised, info)) is None:
            self._bind_volumes_then_pod(pod, promised, needs, self._clock.now + _BINDING_TIMEOUT)
            return
        rejections: dict[str, Rejection] = {}
        fitting: list[NodeState] = []
        for node in nodes.values():
            if named is not None and node.name not in named:
                rejections[node.name] = beyond_named()
                continue
            rejection = reject(cycle, self._with_nominated(node, info))
            if rejection is None:
                fitting.append(node)
            else:
                rejections[node.name] = rejection
        if not fitting:
            self._fail(cycle, waiting, nodes, rejections)
            return
        top = best(cycle, fitting, list(nodes.values()))
        chosen = top[0] if len(top) == 1 else self._world.randomness.stream("scheduler").choice(top)
        self._bind_volumes_then_pod(pod, chosen, needs, self._clock.now + _BINDING_TIMEOUT)

    def _cycle(self, info: PodInfo, needs: VolumeNeeds, nodes: list[NodeState]) -> Cycle:
        return Cycle(
            info,
            self._store,
            needs,
            picture(info, nodes, self._namespace_labels),
            spreads(info.pod, nodes),
            exclusive_claims_in_use(needs, nodes),
            self._clock.timestamp(),
        )

    def _namespace_labels(self, namespace: str) -> dict[str, str]:
        return labels_of(self._store.get("namespaces", "", namespace) or {})

    def _with_nominated(self, node: NodeState, info: PodInfo) -> NodeState:
        """The node including nominated pods of equal or higher priority."""
        if not self._nominated:
            return node
        nominated = [
            other
            for uid, (name, other) in self._nominated.items()
            if name == node.name and uid != uid_of(info.pod) and other.priority >= info.priority
        ]
        if not nominated:
            return node
        occupied = node.without(set())
        for pod in nominated:
            occupied.add(pod)
        return occupied

    # Success

    def _bind_volumes_then_pod(self, pod: Obj, node: NodeState, needs: VolumeNeeds, deadline: float) -> None:
        if not needs.to_bind:
            self._bind(pod, node.name)
            return
        # Assume the pod on the node: the next cycle must count it.
        node.add(PodInfo.of(pod))
        for claim in needs.to_bind:
            volume = find_volume(claim, node.node, self._store)
            if volume is not None:
                self._reserve(volume, claim)
            elif annotations_of(claim).get(SELECTED_NODE) != node.name:
                self._client.modify(
                    "persistentvolumeclaims",
                    namespace_of(claim),
                    name_of(claim),
                    lambda current: meta(current).setdefault("annotations", {}).update({SELECTED_NODE: node.name}),
                )
        self._clock.after(_BINDING_POLL, self._check_volumes, pod, node.name, deadline)

    def _reserve(self, volume: Obj, claim: Obj) -> None:
        def change(current: Obj) -> None:
            current["spec"]["claimRef"] = {
                "kind": "PersistentVolumeClaim",
                "apiVersion": "v1",
                "namespace": namespace_of(claim),
                "name": name_of(claim),
                "uid": uid_of(claim),
            }
            meta(current).setdefault("annotations", {})["pv.kubernetes.io/bound-by-controller"] = "yes"

        self._client.modify("persistentvolumes", "", name_of(volume), change)

    def _check_volumes(self, placed: Obj, node: str, deadline: float) -> None:
        namespace, name, uid = namespace_of(placed), name_of(placed), uid_of(placed)
        pod = self._store.get("pods", namespace, name)
        if pod is None or uid_of(pod) != uid or is_terminating(pod) or dig(pod, "spec", "nodeName"):
            self._give_back(node, placed)
            return
        needs = volume_needs(pod, self._store)
        if not needs.to_bind and not needs.problem:
            trouble = self._out_of_reach(needs, node)
            if not trouble:
                self._bind(pod, node)
                self._give_back(node, pod)
                return
        elif self._clock.now >= deadline:
            trouble = "context deadline exceeded"
        else:
            self._clock.after(_BINDING_POLL, self._check_volumes, placed, node, deadline)
            return
        self._give_back(node, pod)
        self.statistics.failed("error")
        self._tell(
            pod, "SchedulerError", f'running PreBind plugin "VolumeBinding": binding volumes: {trouble}', nominated=""
        )
        self.queue.retry(Waiting(namespace, name, uid, dig(pod, "spec", "priority", default=0), self._clock.now))

    def _out_of_reach(self, needs: VolumeNeeds, node: str) -> str:
        """Why the node cannot use volumes that were bound since the decision."""
        here = self._state.nodes.get(node)
        for volume in needs.bound:
            if volume is not None and (here is None or not volume_reaches(volume, here.node)):
                named = name_of(volume)
                return f'pv "{named}" node affinity doesn\'t match node "{node}": no matching NodeSelectorTerms'
        return ""

    def _give_back(self, node: str, pod: Obj) -> None:
        """Release the assumed placement after volume binding, unless the pod was bound."""
        now = self._store.get("pods", namespace_of(pod), name_of(pod)) or {}
        if dig(now, "spec", "nodeName") == node and dig(now, "metadata", "uid") == uid_of(pod):
            return
        here = self._state.nodes.get(node)
        if here is not None and here.remove(uid_of(pod)) is not None:
            self.queue.happened("pod-gone")

    def _bind(self, pod: Obj, node: str) -> None:
        self._nominated.pop(uid_of(pod), None)
        requests = self._client.requests
        try:
            bind(self._world.registry, namespace_of(pod), name_of(pod), node)
        except ApiError as error:
            requests["POST", "pods", "binding", error.code] += 1
            self.statistics.failed("error")
            return
        requests["POST", "pods", "binding", 201] += 1
        self.statistics.bound(uid_of(pod), self._clock.now)
        message = f"Successfully assigned {namespace_of(pod)}/{name_of(pod)} to {node}"
        self._recorder.event(pod, "Normal", "Scheduled", "Binding", message)

    # Failure

    def _fail(
        self, cycle: Cycle, waiting: Waiting, nodes: dict[str, NodeState], rejections: dict[str, Rejection]
    ) -> None:
        pod = cycle.info.pod
        counts = Counter(reason for rejection in rejections.values() for reason in rejection.reasons)
        message = reasons_told(counts, len(nodes))

        def verdict(node: NodeState) -> Rejection | None:
            others = [node if other.name == node.name else other for other in nodes.values()]
            return reject(self._cycle(cycle.info, cycle.needs, others), self._with_nominated(node, cycle.info))

        plan: Plan | None = None
        nominated: str | None = None
        why_not = not_eligible(cycle.info, nodes, rejections)
        if not why_not:
            plan, why_not = find_plan(cycle, nodes, rejections, verdict)
            nominated = plan.node.name if plan is not None else ""
        if plan is None:
            message += f" no new claims to deallocate, preemption: {why_not}"
        helped_by = frozenset().union(*(rejection.helped_by for rejection in rejections.values()))
        self._give_up(pod, waiting, message, helped_by, nominated=nominated)
        if plan is not None:
            self._evict(plan, pod, cycle.info)

    def _evict(self, plan: Plan, pod: Obj, info: PodInfo) -> None:
        for uid, (node, other) in list(self._nominated.items()):
            if node == plan.node.name and other.priority < info.priority:
                self._withdraw(uid, other.pod)
        self._nominated[uid_of(pod)] = (plan.node.name, info)
        for victim in plan.victims:
            current = self._store.get("pods", namespace_of(victim.pod), name_of(victim.pod))
            if current is None or is_terminating(current):
                continue
            note = f"{NAME}: preempting to accommodate a higher priority pod"
            target = pod_condition(current, "DisruptionTarget", "True", "PreemptionByScheduler", note)
            conditions = with_condition(
                dig(current, "status", "conditions", default=()), target, self._clock.timestamp()
            )
            self._client.set_status("pods", current, {**(current.get("status") or {}), "conditions": conditions})
            self._client.delete("pods", current)
            self._recorder.event(
                victim.pod,
                "Normal",
                "Preempted",
                "Preempting",
                f"Preempted by pod {uid_of(pod)} on node {plan.node.name}",
                related=pod,
            )

    def _withdraw(self, uid: str, pod: Obj) -> None:
        """Clear the nomination of pods of lower priority on a node that was nominated for another pod."""
        del self._nominated[uid]
        current = self._store.get("pods", namespace_of(pod), name_of(pod))
        if current is not None and uid_of(current) == uid and dig(current, "status", "nominatedNodeName"):
            status = {key: value for key, value in current["status"].items() if key != "nominatedNodeName"}
            self._client.set_status("pods", current, status)
            self.queue.changed(uid)

    def _give_up(
        self,
        pod: Obj,
        waiting: Waiting,
        message: str,
        helped_by: frozenset[str],
        *,
        nominated: str | None = None,
    ) -> None:
        self.statistics.failed("unschedulable")
        self._tell(pod, "Unschedulable", message, nominated)
        self.queue.set_aside(waiting, helped_by | ({"pod-gone"} if nominated else frozenset()))

    def _tell(self, pod: Obj, reason: str, message: str, nominated: str | None) -> None:
        """`nominated` is the nominated node, "" clears the nomination, None leaves it unchanged."""
        if nominated == "":
            self._nominated.pop(uid_of(pod), None)
        self._recorder.event(pod, "Warning", "FailedScheduling", "Scheduling", message)
        self._set_unscheduled(namespace_of(pod), name_of(pod), reason, message, nominated)

    def _set_unscheduled(
        self, namespace: str, name: str, reason: str, message: str, nominated: str | None = None
    ) -> None:
        pod = self._store.get("pods", namespace, name)
        if pod is None:
            return
        status = dict(pod.get("status") or {})
        now = self._clock.timestamp()
        known = condition(pod, "PodScheduled") or {}
        same = known.get("status") == "False" and (known.get("reason"), known.get("message")) == (reason, message)
        if same and nominated in (None, status.get("nominatedNodeName", "")):
            return
        verdict = pod_condition(pod, "PodScheduled", "False", reason, message)
        status["conditions"] = with_condition(status.get("conditions") or (), verdict, now)
        if nominated:
            status["nominatedNodeName"] = nominated
        elif nominated == "":
            status.pop("nominatedNodeName", None)
        self._client.set_status("pods", pod, status)
