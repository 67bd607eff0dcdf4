"""ReplicaSets and ReplicationControllers: keep the desired number of pods."""

from __future__ import annotations

from collections import Counter

from srearena.cluster.embedded.controllers.controller import REACTION_SECONDS, Controller, split_key
from srearena.cluster.embedded.controllers.pod_sets import (
    claim_pods,
    deletion_order,
    is_active,
    is_available,
    is_refused_for_good,
    keys_of_pod,
    orphan_index,
    pod_from_template,
    ready_since,
)
from srearena.cluster.embedded.objects import (
    Obj,
    condition_is,
    controller_of,
    dig,
    is_terminating,
    key_of,
    labels_of,
    meta,
    name_of,
    namespace_of,
    uid_of,
    with_condition,
)
from srearena.cluster.embedded.registry.errors import ApiError, NotFound
from srearena.cluster.embedded.registry.selectors import LabelSelector, label_selector_of, label_set_selector
from srearena.cluster.embedded.store import Change
from srearena.cluster.embedded.world import World

_BURST = 500
_FIRST_BATCH = 1
_LOOK_SECONDS_PER_POD = 0.001
_LONGEST_REACTION = 2.0


class ReplicaSetController(Controller):
    name = "replicaset-controller"
    failure = ("replica_set.go:587", 'sync "{key}" failed with {problem}')
    resource = "replicasets.apps"
    kind = "ReplicaSet"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        if self.kind == "ReplicaSet":
            self.store.add_index("pods", "orphans", orphan_index)

    def start(self) -> None:
        self.watch(self.resource)
        self.world.on_change("pods", self._pod_changed)
        for pod in self.store.objects("pods"):
            for key in self._keys_of_pod(pod):
                self.enqueue(key)

    def _pod_changed(self, change: Change) -> None:
        for pod in (change.new,) if change.old is None else (change.new, change.old):
            for key in self._keys_of_pod(pod):
                owner = self.store.get(self.resource, *split_key(key))
                size = dig(owner, "spec", "replicas", default=1) if owner is not None else 1
                # A large set takes longer to reconcile, so it is reconciled less often, as by the real controller.
                self.enqueue(key, min(max(REACTION_SECONDS, size * _LOOK_SECONDS_PER_POD), _LONGEST_REACTION))

    def _keys_of_pod(self, pod: Obj) -> list[str]:
        return keys_of_pod(self.store, self.resource, self.kind, pod, self._selector)

    def _selector(self, owner: Obj) -> LabelSelector:
        return label_selector_of(dig(owner, "spec", "selector"))

    def reconcile(self, key: str) -> None:
        owner = self.client.get(self.resource, *split_key(key))
        if owner is None:
            return
        selector = self._selector(owner)
        pods = [pod for pod in claim_pods(self.client, self.store, owner, selector) if is_active(pod)]
        created, problem = ([], None) if is_terminating(owner) else self._bring_to_size(owner, pods)
        self._write_status(owner, [*pods, *created], problem)
        if problem is not None and not isinstance(problem, NotFound):
            raise problem

    def _bring_to_size(self, owner: Obj, pods: list[Obj]) -> tuple[list[Obj], ApiError | None]:
        """The created pods, and the error that stopped creation."""
        missing = dig(owner, "spec", "replicas", default=1) - len(pods)
        if missing > 0:
            return self._create(owner, min(missing, _BURST))
        if missing < 0:
            self._delete(owner, pods, min(-missing, _BURST))
        return [], None

    def _create(self, owner: Obj, count: int) -> tuple[list[Obj], ApiError | None]:
        """Create in growing batches, so that a rejected template fails once and not a thousand times.

        A batch is always tried as a whole; the first failure in it makes it the last.
        """
        created: list[Obj] = []
        failure: ApiError | None = None
        batch, left = _FIRST_BATCH, count
        while left and failure is None:
            for _ in range(min(batch, left)):
                try:
                    pod = self.client.create("pods", pod_from_template(owner, dig(owner, "spec", "template")))
                except ApiError as problem:
                    if is_refused_for_good(problem):
                        return created, None
                    self.recorder.event(owner, "Warning", "FailedCreate", f"Error creating: {problem.message}")
                    failure = failure or problem
                    continue
                created.append(pod)
                self.recorder.event(owner, "Normal", "SuccessfulCreate", f"Created pod: {name_of(pod)}")
            left -= min(batch, left)
            batch *= 2
        return created, failure

    def _delete(self, owner: Obj, pods: list[Obj], count: int) -> None:
        for pod in deletion_order(pods, self.clock.now, self._crowding(owner))[:count]:
            self.client.delete("pods", pod)
            self.recorder.event(owner, "Normal", "SuccessfulDelete", f"Deleted pod: {name_of(pod)}")

    def _crowding(self, owner: Obj) -> Counter[str]:
        """The number of pods per node of this set and of the sets with the same controller."""
        parent = controller_of(owner)
        family = [owner]
        if parent is not None:
            family = [obj for resource, obj in self.store.owned_by(parent["uid"]) if resource == self.resource]
        return Counter(
            dig(pod, "spec", "nodeName", default="")
            for obj in family
            for resource, pod in self.store.owned_by(uid_of(obj))
            if resource == "pods" and is_active(pod)
        )

    def _write_status(self, owner: Obj, pods: list[Obj], problem: ApiError | None) -> None:
        current = self.client.get(self.resource, namespace_of(owner), name_of(owner))
        if current is None:
            return
        patience = dig(current, "spec", "minReadySeconds", default=0)
        template = label_set_selector(dig(current, "spec", "template", "metadata", "labels"))
        ready = [pod for pod in pods if condition_is(pod, "Ready")]
        available = sum(1 for pod in ready if is_available(pod, patience, self.clock.now))
        status: Obj = {
            "replicas": len(pods),
            "fullyLabeledReplicas": sum(1 for pod in pods if template.matches(labels_of(pod))),
            "readyReplicas": len(ready),
            "availableReplicas": available,
            "observedGeneration": meta(current).get("generation", 1),
            "conditions": self._conditions(current, pods, problem),
        }
        status = {key: value for key, value in status.items() if value or key in ("replicas", "observedGeneration")}
        if status != current.get("status"):
            self.client.set_status(self.resource, current, status)
        if patience and available < len(ready):
            waits = [(ready_since(pod) or 0.0) + patience - self.clock.now for pod in ready]
            self.enqueue(key_of(current), min((wait for wait in waits if wait > 0), default=1.0))

    def _conditions(self, owner: Obj, pods: list[Obj], problem: ApiError | None) -> list[Obj]:
        conditions: list[Obj] = dig(owner, "status", "conditions", default=[])
        if problem is None:
            return [condition for condition in conditions if condition["type"] != "ReplicaFailure"]
        if any(condition["type"] == "ReplicaFailure" for condition in conditions):
            return conditions  # keep the first failure until it is resolved
        reason = "FailedCreate" if len(pods) < dig(owner, "spec", "replicas", default=1) else "FailedDelete"
        failed = {"type": "ReplicaFailure", "status": "True", "reason": reason, "message": problem.message}
        return with_condition(conditions, failed, self.clock.timestamp())


class ReplicationControllerController(ReplicaSetController):
    name = "replication-controller"
    resource = "replicationcontrollers"
    kind = "ReplicationController"

    def _selector(self, owner: Obj) -> LabelSelector:
        return label_set_selector(dig(owner, "spec", "selector"))
