"""Deployments: one ReplicaSet per generation of the template, and rollouts between them.

A change of the size alone is spread over the generations there are; a change of the template makes a new one, or
brings an old one back under a new number, and moves the pods over within the strategy's bounds. A paused deployment
is only resized.
"""

from __future__ import annotations

from srearena.cluster.embedded.controllers.controller import Controller, owner_keys, split_key
from srearena.cluster.embedded.controllers.deployment_generations import (
    REVISION,
    annotations_for,
    generation_for,
    is_generation_of,
    revision_of,
)
from srearena.cluster.embedded.controllers.deployment_rollout import (
    DESIRED,
    MOST,
    available_of,
    bounds_of,
    creation_order,
    is_rolling,
    new_size,
    replicas_of,
    scaled_sizes,
    shrunk_sizes,
)
from srearena.cluster.embedded.controllers.deployment_status import (
    CREATE_FAILED,
    CREATED,
    FOUND,
    PAUSED,
    RESUMED,
    TIMED_OUT,
    counted_status,
    is_complete,
    new_condition,
    progress_deadline,
    rollout_status,
    seconds_to_deadline,
    with_new,
)
from srearena.cluster.embedded.controllers.pod_sets import is_refused_for_good, orphan_index
from srearena.cluster.embedded.objects import (
    Obj,
    annotations_of,
    condition,
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
from srearena.cluster.embedded.world import World

DEPLOYMENTS = "deployments.apps"
SETS = "replicasets.apps"
_MOMENT = 0.005


class DeploymentController(Controller):
    name = "deployment-controller"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.store.add_index(SETS, "orphans", orphan_index)

    def start(self) -> None:
        self.watch(DEPLOYMENTS)
        self.watch(SETS, self._keys_of_set)
        self.world.on_change("pods", self._pod_gone)

    def _keys_of_set(self, replica_set: Obj) -> list[str]:
        if controller_of(replica_set) is not None:
            return list(owner_keys(replica_set, "Deployment"))
        return [
            key_of(deployment)
            for deployment in self.store.objects(DEPLOYMENTS, namespace_of(replica_set))
            if label_selector_of(dig(deployment, "spec", "selector")).matches(labels_of(replica_set))
        ]

    def _pod_gone(self, change: Change) -> None:
        """The Recreate strategy waits for the end of the last old pod."""
        if change.type != "DELETED":
            return
        for key in owner_keys(change.new, "ReplicaSet"):
            replica_set = self.store.get(SETS, *split_key(key))
            for owner in owner_keys(replica_set, "Deployment") if replica_set is not None else ():
                deployment = self.store.get(DEPLOYMENTS, *split_key(owner))
                if deployment is not None and dig(deployment, "spec", "strategy", "type") == "Recreate":
                    self.enqueue(owner)

    def reconcile(self, key: str) -> None:
        deployment = self.client.get(DEPLOYMENTS, *split_key(key))
        if deployment is None:
            return
        if label_selector_of(dig(deployment, "spec", "selector")).empty:
            text = "This deployment is selecting all pods. A non-empty selector is required."
            self.recorder.event(deployment, "Warning", "SelectingAll", text)
            return
        sets = self._own_sets(deployment)
        if is_terminating(deployment):
            newest, _ = self._known_generations(deployment, sets)
            self._write_status(deployment, counted_status(deployment, sets, newest, self.clock.now))
            return
        deployment = self._note_pause(deployment)
        if dig(deployment, "spec", "paused") or self._is_resized(deployment, sets):
            self._resize(deployment, sets)
        elif is_rolling(deployment):
            self._roll(deployment, sets)
        else:
            self._recreate(deployment, sets)

    def _note_pause(self, deployment: Obj) -> Obj:
        """Record pauses in the Progressing condition, so that they do not count against the deadline."""
        known = condition(deployment, "Progressing")
        if progress_deadline(deployment) is None or (known is not None and known.get("reason") == TIMED_OUT):
            return deployment
        paused = bool(dig(deployment, "spec", "paused"))
        if paused == (known is not None and known.get("reason") == PAUSED):
            return deployment
        reason, text = (PAUSED, "Deployment is paused") if paused else (RESUMED, "Deployment is resumed")
        return self._with_progress(deployment, "Unknown", reason, text)

    # Generations

    def _own_sets(self, deployment: Obj) -> list[Obj]:
        """The deployment's ReplicaSets, the oldest first; matching orphans are adopted, non-matching ones released."""
        selector = label_selector_of(dig(deployment, "spec", "selector"))
        own: list[Obj] = []
        for resource, candidate in self.store.owned_by(uid_of(deployment)):
            if resource != SETS or (controller_of(candidate) or {}).get("uid") != uid_of(deployment):
                continue
            if selector.matches(labels_of(candidate)):
                own.append(candidate)
            elif not is_terminating(deployment):
                self._change_owners(candidate, [])
        if not is_terminating(deployment):
            for candidate in self.store.indexed(SETS, "orphans", namespace_of(deployment)):
                if selector.matches(labels_of(candidate)) and not is_terminating(candidate):
                    others = list(meta(candidate).get("ownerReferences") or ())
                    adopted = self._change_owners(candidate, [*others, owner_reference(deployment)])
                    own += [adopted] if adopted is not None else []
        return sorted(own, key=creation_order)

    def _change_owners(self, replica_set: Obj, owners: list[Obj]) -> Obj | None:
        return self.client.modify(
            SETS,
            namespace_of(replica_set),
            name_of(replica_set),
            lambda obj: obj["metadata"].update(ownerReferences=owners),
        )

    @staticmethod
    def _known_generations(deployment: Obj, sets: list[Obj]) -> tuple[Obj | None, list[Obj]]:
        """The ReplicaSet of the present template, if there is one, and the others."""
        newest = next((obj for obj in sets if is_generation_of(deployment, obj)), None)
        return newest, [obj for obj in sets if newest is None or uid_of(obj) != uid_of(newest)]

    def _generations(self, deployment: Obj, sets: list[Obj], *, create: bool) -> tuple[Obj, Obj | None, list[Obj]]:
        """As above, with revision numbers brought up to date; the newest is made where `create` says so."""
        newest, old = self._known_generations(deployment, sets)
        revision = max((revision_of(obj) for obj in old), default=0) + 1
        if newest is not None:
            updated = self._annotated(deployment, newest, revision)
            if updated is newest:
                deployment = self._note_revision(deployment, newest, FOUND, "Found new")
            newest = updated
        elif create:
            deployment, newest = self._create_generation(deployment, old, revision)
        return deployment, newest, old

    def _annotated(self, deployment: Obj, newest: Obj, revision: int) -> Obj:
        wanted = annotations_for(deployment, annotations_of(newest), revision)
        patience = dig(deployment, "spec", "minReadySeconds", default=0)
        if wanted == annotations_of(newest) and dig(newest, "spec", "minReadySeconds", default=0) == patience:
            return newest

        def change(obj: Obj) -> None:
            obj["metadata"]["annotations"] = wanted
            obj["spec"].pop("minReadySeconds", None)
            if patience:
                obj["spec"]["minReadySeconds"] = patience

        return self.client.modify(SETS, namespace_of(newest), name_of(newest), change) or newest

    def _note_revision(self, deployment: Obj, newest: Obj, reason: str, deed: str) -> Obj:
        """Copy the revision number to the deployment, and start counting its progress."""
        text = f'{deed} replica set "{name_of(newest)}"'
        counted = progress_deadline(deployment) is not None
        if counted and (reason == CREATED or condition(deployment, "Progressing") is None):
            return self._with_progress(deployment, "True", reason, text, annotations_of(newest).get(REVISION))
        revision = annotations_of(newest).get(REVISION)
        if revision is not None and annotations_of(deployment).get(REVISION) != revision:
            return self._with_progress(deployment, "", "", "", revision)
        return deployment

    def _create_generation(self, deployment: Obj, old: list[Obj], revision: int) -> tuple[Obj, Obj]:
        total = sum(replicas_of(obj) for obj in old)
        replica_set = generation_for(deployment, new_size(deployment, 0, total), revision)
        name, size = name_of(replica_set), replicas_of(replica_set)
        try:
            created = self.client.create(SETS, replica_set)
        except AlreadyExists:
            created = self._collided(deployment, name)
            size = 0
        except ApiError as problem:
            text = f'Failed to create new replica set "{name}": {problem.message}'
            if not is_refused_for_good(problem):
                if progress_deadline(deployment) is not None:
                    self._with_progress(deployment, "False", CREATE_FAILED, text)
                self.recorder.event(deployment, "Warning", CREATE_FAILED, text)
            raise
        if size:
            text = f"Scaled up replica set {name} from 0 to {size}"
            self.recorder.event(deployment, "Normal", "ScalingReplicaSet", text)
        return self._note_revision(deployment, created, CREATED, "Created new"), created

    def _collided(self, deployment: Obj, name: str) -> Obj:
        """Handle a name conflict: the same generation, or another template with the same hash."""
        taken = self.client.get(SETS, namespace_of(deployment), name)
        own = taken is not None and (controller_of(taken) or {}).get("uid") == uid_of(deployment)
        if taken is not None and own and is_generation_of(deployment, taken):
            return taken
        collisions = dig(deployment, "status", "collisionCount", default=0) + 1
        status = {**(deployment.get("status") or {}), "collisionCount": collisions}
        self.client.set_status(DEPLOYMENTS, deployment, status)
        raise AlreadyExists(SETS, name)

    # Resizing

    @staticmethod
    def _is_resized(deployment: Obj, sets: list[Obj]) -> bool:
        wanted = str(replicas_of(deployment))
        return any(replicas_of(obj) and annotations_of(obj).get(DESIRED, wanted) != wanted for obj in sets)

    def _resize(self, deployment: Obj, sets: list[Obj]) -> None:
        deployment, newest, old = self._generations(deployment, sets, create=False)
        self._spread(deployment, newest, old)
        if dig(deployment, "spec", "paused"):
            self._forget_history(deployment, old)
        sets = self._own_sets(deployment)
        newest, _ = self._known_generations(deployment, sets)
        self._write_status(deployment, counted_status(deployment, sets, newest, self.clock.now))

    def _spread(self, deployment: Obj, newest: Obj | None, old: list[Obj]) -> None:
        every = [*old, *([newest] if newest is not None else [])]
        active = [obj for obj in every if replicas_of(obj)]
        wanted = replicas_of(deployment)
        if len(active) <= 1:
            only = active[0] if active else newest or (old[-1] if old else None)
            if only is not None and replicas_of(only) != wanted:
                self._scale(deployment, only, wanted)
        elif newest is not None and _is_saturated(deployment, newest):
            for obj in old:
                self._scale(deployment, obj, 0)
        elif is_rolling(deployment):
            sizes = scaled_sizes(deployment, active)
            for obj in active:
                self._scale(deployment, obj, sizes[name_of(obj)])

    def _scale(self, deployment: Obj, replica_set: Obj, size: int) -> None:
        """Set the size of one ReplicaSet, and keep its notes about the whole up to date."""
        before = replicas_of(replica_set)
        wanted = replicas_of(deployment)
        notes = {DESIRED: str(wanted), MOST: str(wanted + bounds_of(deployment).surge)}
        if before == size and notes.items() <= annotations_of(replica_set).items():
            return

        def change(obj: Obj) -> None:
            obj["spec"]["replicas"] = size
            obj["metadata"].setdefault("annotations", {}).update(notes)

        self.client.modify(SETS, namespace_of(replica_set), name_of(replica_set), change)
        if before != size:
            way = "up" if size > before else "down"
            text = f"Scaled {way} replica set {name_of(replica_set)} from {before} to {size}"
            self.recorder.event(deployment, "Normal", "ScalingReplicaSet", text)

    # Rollouts

    def _roll(self, deployment: Obj, sets: list[Obj]) -> None:
        deployment, newest, old = self._generations(deployment, sets, create=True)
        assert newest is not None
        size, wanted = replicas_of(newest), replicas_of(deployment)
        total = size + sum(replicas_of(obj) for obj in old)
        goal = wanted if size > wanted else new_size(deployment, size, total)
        if goal != size:
            self._scale(deployment, newest, goal)
        else:
            smaller = shrunk_sizes(deployment, newest, old)
            for obj in old:
                if name_of(obj) in smaller:
                    self._scale(deployment, obj, smaller[name_of(obj)])
            if not smaller and is_complete(deployment, deployment.get("status") or {}):
                self._forget_history(deployment, old)
        self._write_rollout(deployment)

    def _recreate(self, deployment: Obj, sets: list[Obj]) -> None:
        deployment, newest, old = self._generations(deployment, sets, create=False)
        running = [obj for obj in old if replicas_of(obj)]
        for obj in running:
            self._scale(deployment, obj, 0)
        if not running and not any(self._has_pods(obj) for obj in old):
            if newest is None:
                deployment, newest, old = self._generations(deployment, sets, create=True)
            assert newest is not None
            if replicas_of(newest) != replicas_of(deployment):
                self._scale(deployment, newest, replicas_of(deployment))
            if is_complete(deployment, deployment.get("status") or {}):
                self._forget_history(deployment, old)
        self._write_rollout(deployment)

    def _has_pods(self, replica_set: Obj) -> bool:
        return any(
            resource == "pods" and dig(pod, "status", "phase") not in ("Succeeded", "Failed")
            for resource, pod in self.store.owned_by(uid_of(replica_set))
        )

    def _forget_history(self, deployment: Obj, old: list[Obj]) -> None:
        """Delete generations beyond the history limit, the oldest revisions first."""
        limit = dig(deployment, "spec", "revisionHistoryLimit")
        kept = [obj for obj in old if not is_terminating(obj)]
        if limit is None or len(kept) <= limit:
            return
        kept.sort(key=lambda obj: (revision_of(obj), creation_order(obj)))
        for obj in kept[: len(kept) - limit]:
            settled = dig(obj, "status", "observedGeneration", default=0) >= meta(obj).get("generation", 0)
            if settled and not replicas_of(obj) and not dig(obj, "status", "replicas", default=0):
                self.client.delete(SETS, obj)

    # Status

    def _with_progress(
        self, deployment: Obj, status: str, reason: str, message: str, revision: str | None = None
    ) -> Obj:
        """Write a step of the rollout at once: a condition, the revision number, or both."""

        def change(obj: Obj) -> None:
            if revision is not None:
                obj["metadata"].setdefault("annotations", {})[REVISION] = revision
            if reason:
                state = obj.setdefault("status", {})
                new = new_condition("Progressing", status, reason, message, self.clock.now)
                state["conditions"] = with_new(list(state.get("conditions") or ()), new)

        stored = self.client.modify(DEPLOYMENTS, namespace_of(deployment), name_of(deployment), change, "status")
        return stored if stored is not None else deployment

    def _write_rollout(self, deployment: Obj) -> None:
        sets = self._own_sets(deployment)
        newest, _ = self._known_generations(deployment, sets)
        status = rollout_status(deployment, sets, newest, self.clock.now)
        self._write_status(deployment, status)
        left = seconds_to_deadline(deployment, status, self.clock.now)
        if left is not None:
            # A whole second is added, as timestamps do not show fractions of one.
            self.enqueue(key_of(deployment), left + 1 if left >= 1 else left + _MOMENT)

    def _write_status(self, deployment: Obj, status: Obj) -> None:
        if status != (deployment.get("status") or {}):
            self.client.set_status(DEPLOYMENTS, deployment, copy_of(status))


def _is_saturated(deployment: Obj, newest: Obj) -> bool:
    """Whether the rollout is complete: all pods are of the newest generation and available."""
    wanted = replicas_of(deployment)
    noted = annotations_of(newest).get(DESIRED) == str(wanted)
    return noted and replicas_of(newest) == wanted == available_of(newest)
