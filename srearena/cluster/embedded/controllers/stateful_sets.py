"""StatefulSets: pods with names and claims of their own, one after the other, and rolled from the last to the first."""

from __future__ import annotations

import re

from srearena.cluster.embedded.controllers.controller import Controller, split_key
from srearena.cluster.embedded.controllers.pod_sets import claim_pods, is_available, pod_from_template
from srearena.cluster.embedded.controllers.revisions import HASH_LABEL, Revisions
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
    owner_reference,
)
from srearena.cluster.embedded.registry.errors import ApiError
from srearena.cluster.embedded.registry.selectors import label_selector_of
from srearena.cluster.embedded.world import World

CLAIMS = "persistentvolumeclaims"
POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"
_ORDINAL = re.compile(r"(.*)-([0-9]+)")


class StatefulSetController(Controller):
    name = "statefulset-controller"
    resource = "statefulsets.apps"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._revisions = Revisions(self.client, self.store, world.randomness)

    def start(self) -> None:
        self.watch(self.resource)
        self.watch("pods", self._keys_of_pod)

    def _keys_of_pod(self, pod: Obj) -> list[str]:
        owner = controller_of(pod)
        if owner is not None:
            return [f"{namespace_of(pod)}/{owner['name']}"] if owner["kind"] == "StatefulSet" else []
        return [
            key_of(candidate)
            for candidate in self.store.objects(self.resource, namespace_of(pod))
            if label_selector_of(dig(candidate, "spec", "selector")).matches(labels_of(pod))
        ]

    def reconcile(self, key: str) -> None:
        owner = self.client.get(self.resource, *split_key(key))
        if owner is None:
            return
        selector = label_selector_of(dig(owner, "spec", "selector"))
        claimed = [p for p in claim_pods(self.client, self.store, owner, selector) if ordinal_of(owner, p) is not None]
        current = dig(owner, "status", "currentRevision", default="")
        update = self._revisions.sync(owner, owner["spec"]["template"], frozenset({current}))
        problem = None
        if not is_terminating(owner):
            step = _Step(
                self, owner, {ordinal_of(owner, p) or 0: p for p in claimed}, current or name_of(update), update
            )
            try:
                step.run()
            except ApiError as failure:
                problem = failure
        self._write_status(owner, update)
        if problem is not None:
            raise problem

    def revision(self, owner: Obj, name: str) -> Obj | None:
        return next((r for r in self._revisions.of(owner) if name_of(r) == name), None)

    def _write_status(self, owner: Obj, update: Obj) -> None:
        current = self.client.get(self.resource, namespace_of(owner), name_of(owner))
        if current is None:
            return
        selector = label_selector_of(dig(current, "spec", "selector"))
        pods = [
            pod
            for pod in claim_pods(self.client, self.store, current, selector)
            if ordinal_of(current, pod) is not None
        ]
        patience = dig(current, "spec", "minReadySeconds", default=0)
        running = [pod for pod in pods if _is_created(pod)]
        ready = [pod for pod in running if _is_running_and_ready(pod)]
        available = [pod for pod in ready if is_available(pod, patience, self.clock.now)]
        new_name = name_of(update)
        old_name = dig(current, "status", "currentRevision") or new_name
        updated = [pod for pod in running if labels_of(pod).get(HASH_LABEL) == new_name]
        wanted = dig(current, "spec", "replicas", default=1)
        rolled_out = (
            dig(current, "spec", "updateStrategy", "type") == "RollingUpdate"
            and len(updated) == len(running) == wanted
            and len([p for p in updated if p in ready]) == wanted
        )
        if rolled_out:
            old_name = new_name
        status: Obj = {
            "observedGeneration": meta(current).get("generation", 1),
            "replicas": len(running),
            "readyReplicas": len(ready),
            "availableReplicas": len(available),
            "currentReplicas": len([p for p in running if labels_of(p).get(HASH_LABEL) == old_name]),
            "updatedReplicas": len(updated),
            "currentRevision": old_name,
            "updateRevision": new_name,
            "collisionCount": dig(current, "status", "collisionCount", default=0),
        }
        optional = ("readyReplicas", "currentReplicas", "updatedReplicas")
        status = {key: value for key, value in status.items() if value or key not in optional}
        if status != current.get("status"):
            self.client.set_status(self.resource, current, status)
        if patience and len(available) < len(ready):
            self.enqueue(key_of(current), patience)


class _Step:
    """One look at a StatefulSet: at most one thing is moved, unless its pods are managed in parallel."""

    def __init__(
        self, controller: StatefulSetController, owner: Obj, pods: dict[int, Obj], current: str, update: Obj
    ) -> None:
        self._controller = controller
        self._owner = owner
        self._pods = pods
        self._current = current
        self._update = update
        self._parallel = dig(owner, "spec", "podManagementPolicy") == "Parallel"
        self._first = dig(owner, "spec", "ordinals", "start", default=0)
        self._end = self._first + dig(owner, "spec", "replicas", default=1)

    def run(self) -> None:
        for ordinal in range(self._first, self._end):
            if not self._bring_up(ordinal) and not self._parallel:
                return
        surplus = sorted((o for o in self._pods if o >= self._end or o < self._first), reverse=True)
        for ordinal in surplus:
            if not self._take_down(ordinal) and not self._parallel:
                return
        if surplus and not self._parallel:
            return
        self._roll()

    def _bring_up(self, ordinal: int) -> bool:
        """Whether the pod of that place is there and fine, so that the next one may be looked at."""
        pod = self._pods.get(ordinal)
        if pod is not None and dig(pod, "status", "phase") in ("Failed", "Succeeded") and not is_terminating(pod):
            reason = dig(pod, "status", "phase")
            text = f"StatefulSet {key_of(self._owner)} is recreating {reason} Pod {name_of(pod)}"
            self._controller.recorder.event(self._owner, "Warning", "RecreatingFailedPod", text)
            self._delete(pod)
            return False
        if pod is None:
            self._create(ordinal)
            return False
        if is_terminating(pod):
            return False
        patience = dig(self._owner, "spec", "minReadySeconds", default=0)
        if not _is_running_and_ready(pod):
            return False
        return is_available(pod, patience, self._controller.clock.now)

    def _take_down(self, ordinal: int) -> bool:
        """Whether the pod is gone; before it, every pod below must be fine."""
        pod = self._pods[ordinal]
        if is_terminating(pod):
            return False
        if not self._parallel:
            below = [self._pods[o] for o in self._pods if o < ordinal]
            if any(not _is_running_and_ready(p) for p in below if name_of(p) != name_of(pod)):
                return False
        self._delete(pod)
        return False

    def _roll(self) -> None:
        if dig(self._owner, "spec", "updateStrategy", "type") == "OnDelete":
            return
        partition = dig(self._owner, "spec", "updateStrategy", "rollingUpdate", "partition", default=0)
        for ordinal in sorted(self._pods, reverse=True):
            if ordinal < max(partition, self._first) or ordinal >= self._end:
                continue
            pod = self._pods[ordinal]
            if labels_of(pod).get(HASH_LABEL) != name_of(self._update):
                if not is_terminating(pod):
                    self._delete(pod)
                return
            if not _is_running_and_ready(pod) or is_terminating(pod):
                return

    # Pods and claims

    def _revision_for(self, ordinal: int) -> Obj:
        """New pods below the partition come back as they were."""
        partition = dig(self._owner, "spec", "updateStrategy", "rollingUpdate", "partition", default=0)
        rolling = dig(self._owner, "spec", "updateStrategy", "type") == "RollingUpdate"
        if rolling and ordinal < partition:
            return self._controller.revision(self._owner, self._current) or self._update
        return self._update

    def _create(self, ordinal: int) -> None:
        revision = self._revision_for(ordinal)
        template = copy_of(dig(revision, "data", "spec", "template", default=self._owner["spec"]["template"]))
        template.pop("$patch", None)
        name = f"{name_of(self._owner)}-{ordinal}"
        pod = pod_from_template(self._owner, template)
        pod["metadata"].pop("generateName")
        pod["metadata"]["name"] = name
        labels = pod["metadata"].setdefault("labels", {})
        labels[POD_NAME], labels[POD_INDEX], labels[HASH_LABEL] = name, str(ordinal), name_of(revision)
        spec = pod["spec"]
        spec["hostname"] = name
        if dig(self._owner, "spec", "serviceName"):
            spec["subdomain"] = self._owner["spec"]["serviceName"]
        self._add_claims(spec, name, ordinal)
        recorder = self._controller.recorder
        try:
            self._controller.client.create("pods", pod)
        except ApiError as problem:
            text = f"create Pod {name} in StatefulSet {name_of(self._owner)} failed error: {problem.message}"
            recorder.event(self._owner, "Warning", "FailedCreate", text)
            raise
        text = f"create Pod {name} in StatefulSet {name_of(self._owner)} successful"
        recorder.event(self._owner, "Normal", "SuccessfulCreate", text)

    def _add_claims(self, spec: Obj, pod_name: str, ordinal: int) -> None:
        claims = {}
        for template in dig(self._owner, "spec", "volumeClaimTemplates", default=()):
            claim_name = f"{name_of(template)}-{pod_name}"
            claims[name_of(template)] = claim_name
            self._ensure_claim(template, claim_name, pod_name)
        kept = [volume for volume in spec.get("volumes") or () if volume["name"] not in claims]
        added = [{"name": volume, "persistentVolumeClaim": {"claimName": claim}} for volume, claim in claims.items()]
        if kept or added:
            spec["volumes"] = [*added, *kept]

    def _ensure_claim(self, template: Obj, name: str, pod_name: str) -> None:
        client = self._controller.client
        if client.get(CLAIMS, namespace_of(self._owner), name) is not None:
            return
        claim = copy_of(template)
        labels = {**labels_of(template), **dig(self._owner, "spec", "selector", "matchLabels", default={})}
        claim["metadata"] = {
            **claim["metadata"],
            "name": name,
            "namespace": namespace_of(self._owner),
            "labels": labels,
        }
        claim.pop("status", None)
        claim.update(apiVersion="v1", kind="PersistentVolumeClaim")
        policy = dig(self._owner, "spec", "persistentVolumeClaimRetentionPolicy", default={})
        if policy.get("whenDeleted") == "Delete":
            claim["metadata"]["ownerReferences"] = [owner_reference(self._owner, controller=True)]
        recorder = self._controller.recorder
        owner_name = name_of(self._owner)
        try:
            client.create(CLAIMS, claim)
        except ApiError as problem:
            text = f"create Claim {name} for Pod {pod_name} in StatefulSet {owner_name} failed error: {problem.message}"
            recorder.event(self._owner, "Warning", "FailedCreate", text)
            raise
        text = f"create Claim {name} Pod {pod_name} in StatefulSet {owner_name} success"
        recorder.event(self._owner, "Normal", "SuccessfulCreate", text)

    def _delete(self, pod: Obj) -> None:
        policy = dig(self._owner, "spec", "persistentVolumeClaimRetentionPolicy", default={})
        ordinal = ordinal_of(self._owner, pod)
        if policy.get("whenScaled") == "Delete" and ordinal is not None and ordinal >= self._end:
            self._condemn_claims(pod)
        self._controller.client.delete("pods", pod)
        text = f"delete Pod {name_of(pod)} in StatefulSet {name_of(self._owner)} successful"
        self._controller.recorder.event(self._owner, "Normal", "SuccessfulDelete", text)

    def _condemn_claims(self, pod: Obj) -> None:
        """Let the claims of a pod that is scaled away go with it."""
        for template in dig(self._owner, "spec", "volumeClaimTemplates", default=()):
            reference = owner_reference(pod, controller=False)
            self._controller.client.modify(
                CLAIMS,
                namespace_of(pod),
                f"{name_of(template)}-{name_of(pod)}",
                lambda claim, reference=reference: claim["metadata"].update(ownerReferences=[reference]),  # type: ignore[misc]
            )


def ordinal_of(owner: Obj, pod: Obj) -> int | None:
    """The number in the pod's name, if the name is one of this set's."""
    match = _ORDINAL.fullmatch(name_of(pod))
    return int(match[2]) if match and match[1] == name_of(owner) else None


def _is_created(pod: Obj) -> bool:
    return bool(dig(pod, "status", "phase"))


def _is_running_and_ready(pod: Obj) -> bool:
    return dig(pod, "status", "phase") == "Running" and condition_is(pod, "Ready")
