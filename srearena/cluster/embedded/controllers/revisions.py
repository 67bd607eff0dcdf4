"""ControllerRevisions: the history of templates that DaemonSets and StatefulSets keep, numbered upwards.

A template that is used again gets its old revision under a new number, so that pods which already have it are kept.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from srearena.cluster.embedded.controllers.controller import Controller
from srearena.cluster.embedded.controllers.template_hash import template_hash
from srearena.cluster.embedded.objects import (
    Obj,
    annotations_of,
    controller_of,
    copy_of,
    dig,
    is_terminating,
    labels_of,
    meta,
    name_of,
    namespace_of,
    owner_reference,
    uid_of,
)
from srearena.cluster.embedded.registry.errors import AlreadyExists
from srearena.cluster.embedded.registry.selectors import label_selector_of

REVISIONS = "controllerrevisions.apps"
HASH_LABEL = "controller-revision-hash"
"""On pods, and on the revisions of DaemonSets."""
OBJECT_HASH_LABEL = "controller.kubernetes.io/hash"
"""On the revisions of StatefulSets."""
GENERATION_LABEL = "pod-template-generation"
_NOT_COPIED = frozenset({"kubectl.kubernetes.io/last-applied-configuration"})


class Revisions:
    """The revisions that one controller keeps for the workloads of its kind."""

    def __init__(self, controller: Controller, hash_label: str) -> None:
        self._client = controller.client
        self._store = controller.store
        self._hash_label = hash_label

    def of(self, owner: Obj) -> list[Obj]:
        """The revisions of a workload, the oldest first; matching ones without an owner are adopted."""
        selector = label_selector_of(dig(owner, "spec", "selector"))
        own: list[Obj] = []
        for revision in self._store.objects(REVISIONS, namespace_of(owner)):
            controller = controller_of(revision)
            if controller is not None:
                own += [revision] if controller.get("uid") == uid_of(owner) else []
            elif selector.matches(labels_of(revision)) and not is_terminating(owner):
                adopted = self._client.modify(
                    REVISIONS,
                    namespace_of(revision),
                    name_of(revision),
                    lambda obj: obj["metadata"].update(ownerReferences=[owner_reference(owner)]),
                )
                own += [adopted] if adopted is not None else []
        return sorted(own, key=lambda obj: (obj.get("revision", 0), meta(obj)["creationTimestamp"], name_of(obj)))

    def current(self, owner: Obj, collisions: int = 0) -> tuple[Obj, int]:
        """The revision of the present template, created or renumbered where needed; and the collision count."""
        known = self.of(owner)
        data = data_of(owner["spec"]["template"])
        newest = known[-1].get("revision", 0) if known else 0
        for revision in reversed(known):
            if revision.get("data") == data:
                return self._in_front(revision, newest), collisions
        return self._create(owner, data, newest + 1, collisions)

    def _in_front(self, revision: Obj, newest: int) -> Obj:
        if revision.get("revision", 0) >= newest:
            return revision
        renumbered = self._client.modify(
            REVISIONS, namespace_of(revision), name_of(revision), lambda obj: obj.update(revision=newest + 1)
        )
        return renumbered if renumbered is not None else revision

    def _create(self, owner: Obj, data: Obj, number: int, collisions: int) -> tuple[Obj, int]:
        template = owner["spec"]["template"]
        notes = {key: value for key, value in annotations_of(owner).items() if key not in _NOT_COPIED}
        while True:
            mark = template_hash(template, collisions)
            revision: Obj = {
                "apiVersion": "apps/v1",
                "kind": "ControllerRevision",
                "metadata": {
                    "name": f"{name_of(owner)}-{mark}",
                    "namespace": namespace_of(owner),
                    "labels": {**dig(template, "metadata", "labels", default={}), self._hash_label: mark},
                    "annotations": notes,
                    "ownerReferences": [owner_reference(owner)],
                },
                "data": data,
                "revision": number,
            }
            try:
                return self._client.create(REVISIONS, revision), collisions
            except AlreadyExists:
                collisions += 1

    def forget_old(self, owner: Obj, in_use: Collection[str], pods: list[Obj]) -> None:
        """Delete revisions beyond the history limit that neither the workload nor any of its pods needs."""
        limit = dig(owner, "spec", "revisionHistoryLimit", default=10)
        used = {labels_of(pod).get(HASH_LABEL, "") for pod in pods}
        idle = [
            revision
            for revision in self.of(owner)
            if name_of(revision) not in in_use
            and name_of(revision) not in used
            and labels_of(revision).get(self._hash_label) not in used
        ]
        for revision in idle[: max(0, len(idle) - limit)]:
            self._client.delete(REVISIONS, revision)


def data_of(template: Obj) -> Obj:
    """A template as revisions keep it: the patch that would bring it back.

    Keys are in order, as Go marshals a map: clients compare the bytes.
    """
    return {"spec": {"template": _in_order({**template, "$patch": "replace"})}}


def _in_order(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _in_order(value[key]) for key in sorted(value)}
    return [_in_order(item) for item in value] if isinstance(value, list) else value


def template_of(revision: Obj) -> Obj:
    template = copy_of(dig(revision, "data", "spec", "template", default={}))
    template.pop("$patch", None)
    return template
