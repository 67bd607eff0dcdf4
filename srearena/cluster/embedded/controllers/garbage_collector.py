"""The garbage collector: background, foreground and orphan deletion of dependents."""

from __future__ import annotations

from srearena.cluster.embedded.controllers.controller import Controller
from srearena.cluster.embedded.objects import Obj, is_terminating, meta, name_of, namespace_of, uid_of
from srearena.cluster.embedded.registry.deletion import FOREGROUND, ORPHAN
from srearena.cluster.embedded.store import Change
from srearena.cluster.embedded.world import World

_REACTION = 0.1


class GarbageCollector(Controller):
    name = "generic-garbage-collector"
    source = "garbage-collector-controller"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._waiting: dict[str, tuple[str, str, str]] = {}
        """Owners in foreground deletion, by UID: their place in the store."""

    def start(self) -> None:
        self.store.subscribe(self._changed)

    def _changed(self, change: Change) -> None:
        obj = change.new
        if change.type == "DELETED":
            self._waiting.pop(uid_of(obj), None)
            if self.store.owned_by(uid_of(obj)):
                self.enqueue(f"gone|{uid_of(obj)}", _REACTION)
            for reference in meta(obj).get("ownerReferences") or ():
                self.enqueue(f"owner|{reference.get('uid')}", _REACTION)
            return
        if is_terminating(obj) and (meta(obj).get("finalizers") or ()):
            waiting = meta(obj)["finalizers"]
            if FOREGROUND in waiting:
                self._waiting[uid_of(obj)] = (change.resource, namespace_of(obj), name_of(obj))
            if FOREGROUND in waiting or ORPHAN in waiting:
                self.enqueue(self._key(change.resource, obj), _REACTION)
        if meta(obj).get("ownerReferences") and (change.old is None or _owners(change.old) != _owners(obj)):
            self.enqueue(f"check|{change.resource}|{namespace_of(obj)}|{name_of(obj)}", _REACTION)

    @staticmethod
    def _key(resource: str, obj: Obj) -> str:
        return f"object|{resource}|{namespace_of(obj)}|{name_of(obj)}"

    def reconcile(self, key: str) -> None:
        kind, *rest = key.split("|")
        if kind == "gone":
            for resource, dependent in self.store.owned_by(rest[0]):
                self._collect(resource, dependent)
        elif kind == "check":
            resource, namespace, name = rest
            found = self.store.get(resource, namespace, name)
            if found is not None:
                self._collect(resource, found)
        elif kind == "owner":
            place = self._waiting.get(rest[0])
            owner = self.store.get(*place) if place is not None else None
            if place is not None and owner is not None and is_terminating(owner):
                self._finish_foreground(place[0], owner)
        else:
            resource, namespace, name = rest
            obj = self.store.get(resource, namespace, name)
            if obj is not None and is_terminating(obj):
                if ORPHAN in (meta(obj).get("finalizers") or ()):
                    self._orphan(resource, obj)
                elif FOREGROUND in (meta(obj).get("finalizers") or ()):
                    self._finish_foreground(resource, obj)

    # Background

    def _collect(self, resource: str, dependent: Obj) -> None:
        """Delete a dependent without remaining owners; remove references to deleted owners."""
        references = meta(dependent).get("ownerReferences") or []
        if is_terminating(dependent) or not references:
            return
        solid = [r for r in references if self._owner(dependent, r) is not None]
        if solid and len(solid) < len(references):
            self._set_owners(resource, dependent, solid)
        elif not solid:
            waiting = meta(dependent).get("finalizers") or ()
            policy = "Orphan" if ORPHAN in waiting else "Foreground" if FOREGROUND in waiting else "Background"
            self.client.delete(resource, dependent, propagation=policy)

    def _owner(self, dependent: Obj, reference: Obj) -> Obj | None:
        """The owner itself, or None where it is gone, was replaced, or cannot own across namespaces."""
        row = self.world.registry.resources.of_kind(reference.get("apiVersion", ""), reference.get("kind", ""))
        if row is None:
            return {}  # an unknown kind: nothing is deleted
        namespace = namespace_of(dependent) if row.namespaced else ""
        if row.namespaced and not namespace:
            return {}
        owner = self.store.get(row.storage_key, namespace, reference.get("name", ""))
        if owner is not None and uid_of(owner) == reference.get("uid"):
            return owner
        if row.namespaced and any(uid_of(obj) == reference.get("uid") for obj in self.store.objects(row.storage_key)):
            self._tell_wrong_namespace(dependent, reference)
        return None

    def _tell_wrong_namespace(self, dependent: Obj, reference: Obj) -> None:
        namespace = namespace_of(dependent)
        identity = (
            f"[{reference['apiVersion']}/{reference['kind']}, namespace: {namespace}, name: {reference['name']}, "
            f"uid: {reference['uid']}]"
        )
        text = f'ownerRef {identity} does not exist in namespace "{namespace}"'
        self.recorder.event(dependent, "Warning", "OwnerRefInvalidNamespace", text)

    # Foreground

    def _finish_foreground(self, resource: str, owner: Obj) -> None:
        """Delete what the owner waits for; once nothing is left, let the owner go."""
        waiting = False
        for kind, dependent in self.store.owned_by(uid_of(owner)):
            references = meta(dependent)["ownerReferences"]
            if not any(r["uid"] == uid_of(owner) and r.get("blockOwnerDeletion") for r in references):
                continue  # it does not block the owner: it is deleted in the background
            others = [r for r in references if r["uid"] != uid_of(owner)]
            if any(self._owner(dependent, r) is not None for r in others):
                self._set_owners(kind, dependent, others)
                continue
            waiting = True
            if not is_terminating(dependent):
                below = self.store.owned_by(uid_of(dependent))
                if any(FOREGROUND in (meta(obj).get("finalizers") or ()) for _, obj in below if is_terminating(obj)):
                    # What it waits for waits itself, perhaps for the owner: a circle must not wait for itself.
                    self._unblock(kind, dependent)
                deep = bool(below)
                self.client.delete(kind, dependent, propagation="Foreground" if deep else "Background")
        if not waiting or not self._has_blocking_dependents(owner):
            self._drop_finalizer(resource, owner, FOREGROUND)

    def _unblock(self, resource: str, dependent: Obj) -> None:
        """Let the owners of a dependent go before it."""
        owners = [
            {**reference, "blockOwnerDeletion": False} if reference.get("blockOwnerDeletion") else reference
            for reference in meta(dependent)["ownerReferences"]
        ]
        self._set_owners(resource, dependent, owners)

    def _has_blocking_dependents(self, owner: Obj) -> bool:
        return any(
            reference["uid"] == uid_of(owner) and reference.get("blockOwnerDeletion")
            for _, dependent in self.store.owned_by(uid_of(owner))
            for reference in meta(dependent)["ownerReferences"]
        )

    def _set_owners(self, resource: str, obj: Obj, owners: list[Obj]) -> None:
        def change(current: Obj) -> None:
            current["metadata"].pop("ownerReferences", None)
            if owners:
                current["metadata"]["ownerReferences"] = owners

        self.client.modify(resource, namespace_of(obj), name_of(obj), change)

    # Orphan

    def _orphan(self, resource: str, owner: Obj) -> None:
        for kind, dependent in self.store.owned_by(uid_of(owner)):
            others = [r for r in meta(dependent)["ownerReferences"] if r["uid"] != uid_of(owner)]
            self._set_owners(kind, dependent, others)
        self._drop_finalizer(resource, owner, ORPHAN)

    def _drop_finalizer(self, resource: str, obj: Obj, finalizer: str) -> None:
        def change(current: Obj) -> None:
            kept = [f for f in meta(current).get("finalizers") or () if f != finalizer]
            current["metadata"]["finalizers"] = kept

        self.client.modify(resource, namespace_of(obj), name_of(obj), change)


def _owners(obj: Obj) -> list[str]:
    return [reference.get("uid", "") for reference in meta(obj).get("ownerReferences") or ()]
