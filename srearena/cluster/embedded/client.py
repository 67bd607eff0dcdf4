"""The client of the cluster's own components: reads and writes the registry under one identity.

Reading gives the stored objects themselves (never change them); writing passes through everything that a request
from outside passes through. A controller names resources as kubectl does: `pods`, `deployments.apps`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from srearena.cluster.embedded.objects import Obj, copy_of, labels_of, meta, name_of, namespace_of
from srearena.cluster.embedded.registry import deletion
from srearena.cluster.embedded.registry.errors import Conflict, NotFound
from srearena.cluster.embedded.registry.identity import User
from srearena.cluster.embedded.registry.registry import Registry, WriteOptions
from srearena.cluster.embedded.registry.selectors import LabelSelector


class Client:
    def __init__(self, registry: Registry, user: User, field_manager: str) -> None:
        self.registry = registry
        self.user = user
        self.field_manager = field_manager

    def get(self, resource: str, namespace: str, name: str) -> Obj | None:
        return self.registry.store.get(self.registry.row(resource).storage_key, namespace, name)

    def list(self, resource: str, namespace: str = "", selector: LabelSelector | None = None) -> Iterable[Obj]:
        found = self.registry.store.objects(self.registry.row(resource).storage_key, namespace)
        return found if selector is None else [obj for obj in found if selector.matches(labels_of(obj))]

    def create(self, resource: str, obj: Obj) -> Obj:
        """Create an object; the caller must not use the dict afterwards."""
        return self.registry.create(self.registry.row(resource), namespace_of(obj), obj, self._options())

    def update(self, resource: str, obj: Obj, subresource: str = "") -> Obj:
        """Replace an object by a changed copy; Conflict if the object changed since the copy's resourceVersion."""
        row = self.registry.row(resource)
        return self.registry.update(
            row, namespace_of(obj), name_of(obj), lambda _: obj, self._options(), subresource, copied=False
        )

    def modify(
        self, resource: str, namespace: str, name: str, change: Callable[[Obj], None], subresource: str = ""
    ) -> Obj | None:
        """Change a copy of the current object in place and store it; None if the object was deleted."""

        def changed(obj: Obj) -> Obj:
            change(obj)
            return obj

        row = self.registry.row(resource)
        try:
            return self.registry.update(row, namespace, name, changed, self._options(), subresource=subresource)
        except NotFound:
            return None

    def set_status(self, resource: str, obj: Obj, status: Obj) -> Obj | None:
        """Write the status of an object, regardless of concurrent changes; None if it was deleted."""

        def change(current: Obj) -> Obj:
            return {**current, "metadata": dict(current["metadata"]), "status": status}

        row = self.registry.row(resource)
        namespace, name = namespace_of(obj), name_of(obj)
        try:
            return self.registry.update(row, namespace, name, change, self._options(), "status", copied=False)
        except NotFound:
            return None

    def delete(
        self,
        resource: str,
        obj: Obj,
        *,
        grace_seconds: int | None = None,
        propagation: str | None = None,
    ) -> None:
        """Delete exactly this object (by UID); a no-op if it was deleted or replaced."""
        wish: Obj = {"preconditions": {"uid": meta(obj)["uid"]}}
        if grace_seconds is not None:
            wish["gracePeriodSeconds"] = grace_seconds
        if propagation is not None:
            wish["propagationPolicy"] = propagation
        row = self.registry.row(resource)
        try:
            deletion.delete(self.registry, row, namespace_of(obj), name_of(obj), wish, self._options())
        except (NotFound, Conflict):
            return

    def copy(self, resource: str, namespace: str, name: str) -> Obj | None:
        found = self.get(resource, namespace, name)
        return copy_of(found) if found is not None else None

    def _options(self) -> WriteOptions:
        return WriteOptions(self.user, self.field_manager)
