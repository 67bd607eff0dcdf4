"""StatefulSets: pods with stable names and claims, created in order and updated in reverse order.

Ordered sets take one step at a time: a pod that is not ready blocks everything after it, also a repair. Parallel
sets create and delete pods at once; only rolling updates are ordered.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from srearena.cluster.embedded.controllers.controller import REACTION_SECONDS, Controller, split_key
from srearena.cluster.embedded.controllers.creation_pace import CreationPace
from srearena.cluster.embedded.controllers.pod_sets import (
    claim_pods,
    is_available,
    is_refused_for_good,
    keys_of_pod,
    orphan_index,
    pod_from_template,
)
from srearena.cluster.embedded.controllers.revisions import HASH_LABEL, OBJECT_HASH_LABEL, Revisions, template_of
from srearena.cluster.embedded.controllers.stateful_claims import StatefulClaims, claims_of
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
)
from srearena.cluster.embedded.registry.errors import AlreadyExists, ApiError
from srearena.cluster.embedded.registry.selectors import label_selector_of
from srearena.cluster.embedded.world import World

SETS = "statefulsets.apps"
POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"
_ORDINAL = re.compile(r"(.*)-([0-9]+)")


@dataclass(slots=True)
class _Look:
    """The state of one reconciliation: pods by ordinal, current and update revision, and the policies."""

    owner: Obj
    pods: dict[int, Obj]
    current: Obj
    update: Obj
    collisions: int

    @property
    def ordered(self) -> bool:
        return bool(dig(self.owner, "spec", "podManagementPolicy") != "Parallel")

    @property
    def first(self) -> int:
        return int(dig(self.owner, "spec", "ordinals", "start", default=0))

    @property
    def end(self) -> int:
        return self.first + int(dig(self.owner, "spec", "replicas", default=1))

    @property
    def partition(self) -> int:
        return int(dig(self.owner, "spec", "updateStrategy", "rollingUpdate", "partition", default=0))

    @property
    def patience(self) -> int:
        return int(dig(self.owner, "spec", "minReadySeconds", default=0))


class StatefulSetController(Controller):
    name = "statefulset-controller"
    failure = ("stateful_set.go:439", "error syncing StatefulSet {key}, requeuing: {problem}")

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.store.add_index("pods", "orphans", orphan_index)
        self._revisions = Revisions(self, OBJECT_HASH_LABEL)
        self._claims = StatefulClaims(self)
        self._pace = CreationPace(world.clock)

    def enqueue(self, key: str, delay: float = REACTION_SECONDS) -> None:
        super().enqueue(key, max(delay, self._pace.rest(key)))

    def start(self) -> None:
        self.watch(SETS)
        self.watch("pods", lambda pod: keys_of_pod(self.store, SETS, "StatefulSet", pod))

    def reconcile(self, key: str) -> None:
        owner = self.client.get(SETS, *split_key(key))
        if owner is None:
            return
        collisions = dig(owner, "status", "collisionCount", default=0)
        update, collisions = self._revisions.current(owner, collisions)
        known = {name_of(revision): revision for revision in self._revisions.of(owner)}
        current = known.get(dig(owner, "status", "currentRevision", default=""), update)
        look = _Look(owner, self._pods(owner), current, update, collisions)
        problem: ApiError | None = None
        if not is_terminating(owner):
            try:
                self._step(look)
            except ApiError as failure:
                problem = failure
        look.pods = self._pods(owner)
        self._write_status(look)
        self._revisions.forget_old(owner, {name_of(current), name_of(update)}, list(look.pods.values()))
        if problem is not None and not is_refused_for_good(problem):
            raise problem

    def _pods(self, owner: Obj) -> dict[int, Obj]:
        selector = label_selector_of(dig(owner, "spec", "selector"))
        claimed = claim_pods(
            self.client, self.store, owner, selector, member=lambda pod: ordinal_of(owner, pod) is not None
        )
        return {ordinal: pod for pod in claimed if (ordinal := ordinal_of(owner, pod)) is not None}

    # One step

    def _step(self, look: _Look) -> None:
        key = key_of(look.owner)
        for ordinal in range(look.first, look.end):
            if ordinal not in look.pods and not self._pace.allows(key, len(look.pods)):
                self.enqueue(key)
                return
            if not self._bring_up(look, ordinal) and look.ordered:
                return
        condemned = sorted((o for o in look.pods if not look.first <= o < look.end), reverse=True)
        for ordinal in condemned:
            self._claims.own(look.owner, look.pods[ordinal], condemned=True)
        for ordinal in condemned:
            if not self._take_down(look, ordinal, condemned) and look.ordered:
                return
        if dig(look.owner, "spec", "updateStrategy", "type") != "OnDelete":
            self._roll(look)

    def _bring_up(self, look: _Look, ordinal: int) -> bool:
        """Whether the pod of that ordinal is healthy, so that an ordered set may continue."""
        pod = look.pods.get(ordinal)
        if pod is None:
            if not self._claims.are_stale(look.owner, f"{name_of(look.owner)}-{ordinal}"):
                self._create(look, ordinal)
            return False
        phase = dig(pod, "status", "phase")
        if phase in ("Failed", "Succeeded"):
            # The replacement is created only after deletion: there must never be two pods of a name.
            if not is_terminating(pod):
                self._delete(look.owner, pod)
            return False
        if phase == "Pending" and not is_terminating(pod):
            self._claims.ensure(look.owner, name_of(pod))
        if look.ordered and (is_terminating(pod) or not _is_ready(pod)):
            return False
        if look.ordered and not is_available(pod, look.patience, self.clock.now):
            return False
        self._claims.own(look.owner, pod, condemned=False)
        return True

    def _take_down(self, look: _Look, ordinal: int, condemned: list[int]) -> bool:
        """Delete a pod beyond the size; an ordered set waits for each, and keeps healthy pods while others are not."""
        pod = look.pods[ordinal]
        if is_terminating(pod):
            return False
        if look.ordered and not _is_ready(pod):
            ailing = [o for o in sorted(look.pods) if not _is_healthy(look.pods[o])]
            if ailing and ailing[0] != ordinal:
                return False
        self._delete(look.owner, pod)
        return False

    def _roll(self, look: _Look) -> None:
        """Replace the last pod without the new revision, unless a pod after it is unhealthy."""
        for ordinal in range(look.end - 1, look.first + look.partition - 1, -1):
            pod = look.pods.get(ordinal)
            if pod is None:
                return
            if labels_of(pod).get(HASH_LABEL) != name_of(look.update) and not is_terminating(pod):
                self._delete(look.owner, pod)
                return
            if not _is_healthy(pod):
                return

    # Pods

    @staticmethod
    def _revision_for(look: _Look, ordinal: int) -> Obj:
        """Pods that the rollout has not reached, or must not reach (partition), are recreated with the old revision."""
        strategy = dig(look.owner, "spec", "updateStrategy", default={})
        if strategy.get("type") != "RollingUpdate":
            return look.update
        kept = look.first + look.partition
        if strategy.get("rollingUpdate") is None:
            kept = look.first + dig(look.owner, "status", "currentReplicas", default=0)
        return look.current if ordinal < kept else look.update

    def _create(self, look: _Look, ordinal: int) -> None:
        owner, name = look.owner, f"{name_of(look.owner)}-{ordinal}"
        try:
            self._claims.ensure(owner, name)
            created = self.client.create("pods", self._pod(look, ordinal))
        except AlreadyExists:
            raise
        except ApiError as problem:
            text = f"create Pod {name} in StatefulSet {name_of(owner)} failed error: {problem.message}"
            self.recorder.event(owner, "Warning", "FailedCreate", text)
            raise
        look.pods[ordinal] = created
        text = f"create Pod {name} in StatefulSet {name_of(owner)} successful"
        self.recorder.event(owner, "Normal", "SuccessfulCreate", text)

    def _pod(self, look: _Look, ordinal: int) -> Obj:
        revision = self._revision_for(look, ordinal)
        name = f"{name_of(look.owner)}-{ordinal}"
        pod = pod_from_template(look.owner, template_of(revision))
        pod["metadata"].pop("generateName")
        pod["metadata"]["name"] = name
        pod["metadata"].setdefault("labels", {}).update(
            {POD_INDEX: str(ordinal), HASH_LABEL: name_of(revision), POD_NAME: name}
        )
        spec = pod["spec"]
        spec["hostname"] = name
        if dig(look.owner, "spec", "serviceName"):
            spec["subdomain"] = look.owner["spec"]["serviceName"]
        claims = claims_of(look.owner, name)
        kept = [volume for volume in spec.get("volumes") or () if volume["name"] not in claims]
        added = [{"name": volume, "persistentVolumeClaim": {"claimName": claim}} for volume, claim in claims.items()]
        if kept or added:
            spec["volumes"] = [*added, *kept]
        return pod

    def _delete(self, owner: Obj, pod: Obj) -> None:
        self.client.delete("pods", pod)
        text = f"delete Pod {name_of(pod)} in StatefulSet {name_of(owner)} successful"
        self.recorder.event(owner, "Normal", "SuccessfulDelete", text)

    # Status

    def _write_status(self, look: _Look) -> None:
        owner = self.client.get(SETS, namespace_of(look.owner), name_of(look.owner))
        if owner is None:
            return
        pods = list(look.pods.values())
        ready = [pod for pod in pods if _is_ready(pod)]
        available = sum(1 for pod in ready if is_available(pod, look.patience, self.clock.now))
        staying = [labels_of(pod).get(HASH_LABEL) for pod in pods if not is_terminating(pod)]
        counts = {
            "replicas": len(pods),
            "readyReplicas": len(ready),
            "currentReplicas": staying.count(name_of(look.current)),
            "updatedReplicas": staying.count(name_of(look.update)),
        }
        current = name_of(look.current)
        wanted = look.end - look.first
        rolling = dig(owner, "spec", "updateStrategy", "type") == "RollingUpdate"
        if rolling and counts["updatedReplicas"] == counts["readyReplicas"] == counts["replicas"] == wanted:
            current, counts["currentReplicas"] = name_of(look.update), counts["updatedReplicas"]
        status: Obj = {
            "observedGeneration": meta(look.owner).get("generation", 1),
            **{key: value for key, value in counts.items() if value or key == "replicas"},
            "currentRevision": current,
            "updateRevision": name_of(look.update),
            "collisionCount": look.collisions,
            "availableReplicas": available,
        }
        if status != owner.get("status"):
            self.client.set_status(SETS, owner, status)
        if look.patience and available < wanted:
            self.enqueue(key_of(owner), look.patience)


def ordinal_of(owner: Obj, pod: Obj) -> int | None:
    """The number in the pod's name, if the name is one of this set's."""
    match = _ORDINAL.fullmatch(name_of(pod))
    return int(match[2]) if match and match[1] == name_of(owner) else None


def _is_ready(pod: Obj) -> bool:
    return dig(pod, "status", "phase") == "Running" and condition_is(pod, "Ready")


def _is_healthy(pod: Obj) -> bool:
    return _is_ready(pod) and not is_terminating(pod)
