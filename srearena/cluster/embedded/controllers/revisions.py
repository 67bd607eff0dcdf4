"""ControllerRevisions: the history of templates that DaemonSets and StatefulSets keep."""

from __future__ import annotations

from srearena.cluster.embedded.client import Client
from srearena.cluster.embedded.controllers.template_hash import template_hash
from srearena.cluster.embedded.objects import (
    Obj,
    copy_of,
    dig,
    labels_of,
    name_of,
    namespace_of,
    owner_reference,
    uid_of,
)
from srearena.cluster.embedded.randomness import Randomness
from srearena.cluster.embedded.registry.errors import AlreadyExists
from srearena.cluster.embedded.store import Store

REVISIONS = "controllerrevisions.apps"
HASH_LABEL = "controller-revision-hash"
GENERATION_LABEL = "pod-template-generation"


class Revisions:
    def __init__(self, client: Client, store: Store, randomness: Randomness) -> None:
        self._client = client
        self._store = store
        self._randomness = randomness

    def of(self, owner: Obj) -> list[Obj]:
        """The revisions of a workload, the oldest first."""
        own = [obj for resource, obj in self._store.owned_by(uid_of(owner)) if resource == REVISIONS]
        return sorted(own, key=lambda obj: (obj.get("revision", 0), name_of(obj)))

    def sync(self, owner: Obj, template: Obj, in_use: frozenset[str] = frozenset()) -> Obj:
        """The revision of the present template, made or moved to the front where it must be."""
        known = self.of(owner)
        data = {"spec": {"template": {**copy_of(template), "$patch": "replace"}}}
        newest = known[-1].get("revision", 0) if known else 0
        for revision in known:
            if revision.get("data") == data:
                if revision.get("revision", 0) < newest:
                    revision = (
                        self._client.modify(
                            REVISIONS,
                            namespace_of(revision),
                            name_of(revision),
                            lambda obj: obj.update(revision=newest + 1),
                        )
                        or revision
                    )
                return revision
        made = self._create(owner, template, data, newest + 1)
        self._forget_old(owner, in_use | {name_of(made)})
        return made

    def _create(self, owner: Obj, template: Obj, data: Obj, number: int) -> Obj:
        for collisions in range(100):
            mark = template_hash(template, collisions)
            revision: Obj = {
                "apiVersion": "apps/v1",
                "kind": "ControllerRevision",
                "metadata": {
                    "name": f"{name_of(owner)}-{mark}",
                    "namespace": namespace_of(owner),
                    "labels": {**dig(template, "metadata", "labels", default={}), HASH_LABEL: mark},
                    "ownerReferences": [owner_reference(owner)],
                },
                "data": data,
                "revision": number,
            }
            if owner["kind"] == "StatefulSet":
                # A StatefulSet marks its pods with the revision's whole name.
                revision["metadata"]["labels"][HASH_LABEL] = f"{name_of(owner)}-{mark}"
            try:
                return self._client.create(REVISIONS, revision)
            except AlreadyExists:
                continue
        raise RuntimeError("no free name for a controller revision")

    def _forget_old(self, owner: Obj, in_use: frozenset[str]) -> None:
        limit = dig(owner, "spec", "revisionHistoryLimit", default=10)
        used = {
            labels_of(pod).get(HASH_LABEL, "")
            for resource, pod in self._store.owned_by(uid_of(owner))
            if resource == "pods"
        }
        idle = [r for r in self.of(owner) if name_of(r) not in in_use and labels_of(r).get(HASH_LABEL) not in used]
        for revision in idle[: max(0, len(idle) - limit)]:
            self._client.delete(REVISIONS, revision)
