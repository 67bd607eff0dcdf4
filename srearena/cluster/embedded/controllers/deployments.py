"""Deployments: one ReplicaSet per generation of the template, and the way from one to the next."""

from __future__ import annotations

from srearena.cluster.embedded.controllers.controller import Controller, owner_keys, split_key
from srearena.cluster.embedded.controllers.deployment_rollout import bounds_of, new_size, proportions
from srearena.cluster.embedded.controllers.deployment_status import DeploymentStatus
from srearena.cluster.embedded.controllers.template_hash import template_hash
from srearena.cluster.embedded.objects import (
    Obj,
    annotations_of,
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
    uid_of,
)
from srearena.cluster.embedded.registry.errors import AlreadyExists, ApiError
from srearena.cluster.embedded.registry.selectors import label_selector_of
from srearena.cluster.embedded.store import Change

SETS = "replicasets.apps"
HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MOST = "deployment.kubernetes.io/max-replicas"
_NOT_COPIED = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        REVISION,
        HISTORY,
        DESIRED,
        MOST,
        "deprecated.deployment.rollback.to",
    }
)


class DeploymentController(Controller):
    name = "deployment-controller"
    resource = "deployments.apps"

    def start(self) -> None:
        self._status = DeploymentStatus(self)
        self.watch(self.resource)
        self.watch(SETS, self._keys_of_set)
        self.world.on_change("pods", self._pod_gone)

    def _keys_of_set(self, replica_set: Obj) -> list[str]:
        if controller_of(replica_set) is not None:
            return list(owner_keys(replica_set, "Deployment"))
        return [
            key_of(deployment)
            for deployment in self.store.objects(self.resource, namespace_of(replica_set))
            if label_selector_of(dig(deployment, "spec", "selector")).matches(labels_of(replica_set))
        ]

    def _pod_gone(self, change: Change) -> None:
        """A recreate waits for the last old pod: its end must be noticed."""
        if change.type != "DELETED":
            return
        for key in owner_keys(change.new, "ReplicaSet"):
            replica_set = self.store.get(SETS, *split_key(key))
            for owner in owner_keys(replica_set, "Deployment") if replica_set is not None else ():
                deployment = self.store.get(self.resource, *split_key(owner))
                if deployment is not None and dig(deployment, "spec", "strategy", "type") == "Recreate":
                    self.enqueue(owner)

    def reconcile(self, key: str) -> None:
        deployment = self.client.get(self.resource, *split_key(key))
        if deployment is None:
            return
        sets = self._own_sets(deployment)
        if is_terminating(deployment):
            self._status.sync(deployment, sets, self._newest(deployment, sets))
            return
        if dig(deployment, "spec", "paused"):
            self._status.note_paused(deployment)
            self._resize(deployment, sets)
            self._clean_up(deployment, sets)
        elif self._is_resizing(deployment, sets):
            self._resize(deployment, sets)
        elif dig(deployment, "spec", "strategy", "type") == "Recreate":
            self._recreate(deployment, sets)
        else:
            self._roll(deployment, sets)
        current = self.client.get(self.resource, *split_key(key))
        if current is not None:
            sets = self._own_sets(current)
            self._status.sync(current, sets, self._newest(current, sets))

    # ReplicaSets

    def _own_sets(self, deployment: Obj) -> list[Obj]:
        """The deployment's ReplicaSets, the oldest first; matching orphans are adopted."""
        selector = label_selector_of(dig(deployment, "spec", "selector"))
        own: list[Obj] = []
        for candidate in self.store.objects(SETS, namespace_of(deployment)):
            owner = controller_of(candidate)
            if owner is not None:
                if owner.get("uid") == uid_of(deployment):
                    own.append(candidate)
            elif selector.matches(labels_of(candidate)) and not is_terminating(deployment):
                adopted = self.client.modify(
                    SETS,
                    namespace_of(candidate),
                    name_of(candidate),
                    lambda obj: obj["metadata"].setdefault("ownerReferences", []).append(owner_reference(deployment)),
                )
                own += [adopted] if adopted is not None else []
        return sorted(own, key=lambda obj: (meta(obj)["creationTimestamp"], int(annotations_of(obj).get(REVISION, 0))))

    @staticmethod
    def _newest(deployment: Obj, sets: list[Obj]) -> Obj | None:
        """The ReplicaSet of the present template."""
        wanted = deployment["spec"]["template"]
        for candidate in sets:
            template = copy_of(candidate["spec"]["template"])
            dig(template, "metadata", "labels", default={}).pop(HASH, None)
            if _same_template(template, wanted):
                return candidate
        return None

    def _ensure_newest(self, deployment: Obj, sets: list[Obj]) -> Obj | None:
        newest = self._newest(deployment, sets)
        others = [obj for obj in sets if newest is None or uid_of(obj) != uid_of(newest)]
        revision = max((int(annotations_of(obj).get(REVISION, 0)) for obj in others), default=0) + 1
        if newest is None:
            newest = self._create_set(deployment, sets, revision)
            if newest is None:
                return None
        else:
            newest = self._annotate(deployment, newest, revision)
            self._status.note_found(deployment, newest)
        self._set_revision(deployment, annotations_of(newest).get(REVISION, str(revision)))
        return newest

    def _create_set(self, deployment: Obj, sets: list[Obj], revision: int) -> Obj | None:
        template = copy_of(deployment["spec"]["template"])
        mark = template_hash(template, dig(deployment, "status", "collisionCount", default=0))
        template.setdefault("metadata", {}).setdefault("labels", {})[HASH] = mark
        selector = copy_of(deployment["spec"]["selector"])
        selector.setdefault("matchLabels", {})[HASH] = mark
        total = sum(dig(obj, "spec", "replicas", default=0) for obj in sets)
        made: Obj = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": f"{name_of(deployment)}-{mark}",
                "namespace": namespace_of(deployment),
                "labels": dict(template["metadata"]["labels"]),
                "annotations": self._annotations(deployment, revision),
                "ownerReferences": [owner_reference(deployment)],
            },
            "spec": {
                "replicas": new_size(deployment, 0, total),
                "selector": selector,
                "template": template,
            },
        }
        if dig(deployment, "spec", "minReadySeconds"):
            made["spec"]["minReadySeconds"] = deployment["spec"]["minReadySeconds"]
        name, size = made["metadata"]["name"], made["spec"]["replicas"]
        try:
            created = self.client.create(SETS, made)
        except AlreadyExists:
            # Another template with the same hash: remember it, and look again with a new one.
            collisions = dig(deployment, "status", "collisionCount", default=0) + 1
            self.client.set_status(
                self.resource, deployment, {**(deployment.get("status") or {}), "collisionCount": collisions}
            )
            return None
        except ApiError as problem:
            text = f'Failed to create new replica set "{name}": {problem.message}'
            self.recorder.event(deployment, "Warning", "ReplicaSetCreateError", text)
            self._status.note_failure(deployment, problem.message)
            raise
        if size:
            text = f"Scaled up replica set {name} from 0 to {size}"
            self.recorder.event(deployment, "Normal", "ScalingReplicaSet", text)
        self._status.note_created(deployment, created)
        return created

    def _annotations(self, deployment: Obj, revision: int) -> dict[str, str]:
        wanted = dig(deployment, "spec", "replicas", default=1)
        copied = {key: value for key, value in annotations_of(deployment).items() if key not in _NOT_COPIED}
        return {
            **copied,
            DESIRED: str(wanted),
            MOST: str(wanted + bounds_of(deployment).surge),
            REVISION: str(revision),
        }

    def _annotate(self, deployment: Obj, newest: Obj, revision: int) -> Obj:
        known = annotations_of(newest)
        wanted = {**known, **{k: v for k, v in annotations_of(deployment).items() if k not in _NOT_COPIED}}
        old = int(known.get(REVISION, 0))
        if old < revision:
            wanted[REVISION] = str(revision)
            if old:
                history = [entry for entry in known.get(HISTORY, "").split(",") if entry]
                wanted[HISTORY] = ",".join([*history, str(old)])
        patience = dig(deployment, "spec", "minReadySeconds", default=0)
        if wanted == known and dig(newest, "spec", "minReadySeconds", default=0) == patience:
            return newest

        def change(obj: Obj) -> None:
            obj["metadata"]["annotations"] = wanted
            if patience:
                obj["spec"]["minReadySeconds"] = patience
            else:
                obj["spec"].pop("minReadySeconds", None)

        return self.client.modify(SETS, namespace_of(newest), name_of(newest), change) or newest

    def _set_revision(self, deployment: Obj, revision: str) -> None:
        if annotations_of(deployment).get(REVISION) == revision:
            return
        self.client.modify(
            self.resource,
            namespace_of(deployment),
            name_of(deployment),
            lambda obj: obj["metadata"].setdefault("annotations", {}).update({REVISION: revision}),
        )

    def _scale(self, deployment: Obj, replica_set: Obj, size: int) -> None:
        """Set the size of one ReplicaSet, and keep its notes about the whole up to date."""
        before = dig(replica_set, "spec", "replicas", default=0)
        wanted = dig(deployment, "spec", "replicas", default=1)
        notes = {DESIRED: str(wanted), MOST: str(wanted + bounds_of(deployment).surge)}
        known = annotations_of(replica_set)
        if before == size and all(known.get(key) == value for key, value in notes.items()):
            return

        def change(obj: Obj) -> None:
            obj["spec"]["replicas"] = size
            obj["metadata"].setdefault("annotations", {}).update(notes)

        self.client.modify(SETS, namespace_of(replica_set), name_of(replica_set), change)
        if before != size:
            way = "up" if size > before else "down"
            text = f"Scaled {way} replica set {name_of(replica_set)} from {before} to {size}"
            self.recorder.event(deployment, "Normal", "ScalingReplicaSet", text)

    # Resizing without a rollout

    def _is_resizing(self, deployment: Obj, sets: list[Obj]) -> bool:
        wanted = str(dig(deployment, "spec", "replicas", default=1))
        return any(
            dig(obj, "spec", "replicas", default=0) and annotations_of(obj).get(DESIRED, wanted) != wanted
            for obj in sets
        )

    def _resize(self, deployment: Obj, sets: list[Obj]) -> None:
        newest = self._newest(deployment, sets)
        active = [obj for obj in sets if dig(obj, "spec", "replicas", default=0)]
        wanted = dig(deployment, "spec", "replicas", default=1)
        if len(active) <= 1:
            only = active[0] if active else newest
            if only is not None:
                self._scale(deployment, only, wanted)
            return
        if (
            newest is not None
            and dig(newest, "status", "availableReplicas", default=0) == dig(newest, "spec", "replicas") == wanted
        ):
            for old in active:
                if uid_of(old) != uid_of(newest):
                    self._scale(deployment, old, 0)
            return
        if dig(deployment, "spec", "strategy", "type") != "RollingUpdate":
            return
        sizes = {name_of(obj): dig(obj, "spec", "replicas", default=0) for obj in active}
        annotated = {name_of(obj): int(annotations_of(obj).get(MOST, 0)) for obj in active}
        planned = proportions(deployment, sizes, max(annotated.values()), annotated)
        for obj in active:
            self._scale(deployment, obj, planned[name_of(obj)])

    # Rollouts

    def _recreate(self, deployment: Obj, sets: list[Obj]) -> None:
        newest = self._newest(deployment, sets)
        old = [obj for obj in sets if newest is None or uid_of(obj) != uid_of(newest)]
        running = [obj for obj in old if dig(obj, "spec", "replicas", default=0)]
        for obj in running:
            self._scale(deployment, obj, 0)
        if running or any(self._has_pods(obj) for obj in old):
            return
        newest = self._ensure_newest(deployment, sets)
        if newest is not None:
            self._scale(deployment, newest, dig(deployment, "spec", "replicas", default=1))
        self._clean_up(deployment, self._own_sets(deployment))

    def _has_pods(self, replica_set: Obj) -> bool:
        return any(
            resource == "pods" and dig(pod, "status", "phase") not in ("Succeeded", "Failed")
            for resource, pod in self.store.owned_by(uid_of(replica_set))
        )

    def _roll(self, deployment: Obj, sets: list[Obj]) -> None:
        newest = self._ensure_newest(deployment, sets)
        if newest is None:
            return
        old = [obj for obj in sets if uid_of(obj) != uid_of(newest)]
        size = dig(newest, "spec", "replicas", default=0)
        wanted = dig(deployment, "spec", "replicas", default=1)
        total = size + sum(dig(obj, "spec", "replicas", default=0) for obj in old)
        goal = wanted if size > wanted else new_size(deployment, size, total)
        if goal != size:
            self._scale(deployment, newest, goal)
            return
        self._shrink_old(deployment, newest, old)
        self._clean_up(deployment, self._own_sets(deployment))

    def _shrink_old(self, deployment: Obj, newest: Obj, old: list[Obj]) -> None:
        remaining = sum(dig(obj, "spec", "replicas", default=0) for obj in old)
        if not remaining:
            return
        wanted = dig(deployment, "spec", "replicas", default=1)
        least = wanted - bounds_of(deployment).unavailable
        new_missing = dig(newest, "spec", "replicas", default=0) - dig(newest, "status", "availableReplicas", default=0)
        total = dig(newest, "spec", "replicas", default=0) + remaining
        room = total - least - new_missing
        if room <= 0:
            return
        sizes = {uid_of(obj): dig(obj, "spec", "replicas", default=0) for obj in old}
        cleaned = self._drop_unhealthy(deployment, old, sizes, room)
        available = sum(dig(obj, "status", "availableReplicas", default=0) for obj in (*old, newest))
        surplus = available - least
        for obj in old:
            if surplus <= 0:
                break
            step = min(sizes[uid_of(obj)], surplus)
            if step:
                sizes[uid_of(obj)] -= step
                surplus -= step
                cleaned = True
        if cleaned:
            for obj in old:
                if sizes[uid_of(obj)] != dig(obj, "spec", "replicas", default=0):
                    self._scale(deployment, obj, sizes[uid_of(obj)])

    @staticmethod
    def _drop_unhealthy(deployment: Obj, old: list[Obj], sizes: dict[str, int], room: int) -> bool:
        """Old pods that do not work anyway go first; they cost nobody anything."""
        dropped = 0
        for obj in old:
            unhealthy = sizes[uid_of(obj)] - dig(obj, "status", "availableReplicas", default=0)
            step = min(room - dropped, max(0, unhealthy))
            if step > 0:
                sizes[uid_of(obj)] -= step
                dropped += step
        return dropped > 0

    def _clean_up(self, deployment: Obj, sets: list[Obj]) -> None:
        """Forget generations beyond the history limit."""
        limit = dig(deployment, "spec", "revisionHistoryLimit", default=10)
        newest = self._newest(deployment, sets)
        if not self._is_complete(deployment):
            return
        idle = [
            obj
            for obj in sets
            if (newest is None or uid_of(obj) != uid_of(newest))
            and not dig(obj, "spec", "replicas")
            and not dig(obj, "status", "replicas")
            and not is_terminating(obj)
        ]
        idle.sort(key=lambda obj: int(annotations_of(obj).get(REVISION, 0)))
        for obj in idle[: max(0, len(idle) - limit)]:
            self.client.delete(SETS, obj)

    @staticmethod
    def _is_complete(deployment: Obj) -> bool:
        wanted = dig(deployment, "spec", "replicas", default=1)
        return all(
            dig(deployment, "status", key, default=0) == wanted
            for key in ("updatedReplicas", "replicas", "availableReplicas")
        )


def _same_template(one: Obj, other: Obj) -> bool:
    mine, theirs = dict(one), dict(other)
    for template in (mine, theirs):
        metadata = {key: value for key, value in (template.get("metadata") or {}).items() if value}
        metadata.pop("creationTimestamp", None)
        template["metadata"] = metadata
    return mine == theirs
