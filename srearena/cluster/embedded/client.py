"""The client of the cluster's own components: reads and writes the registry under one identity.

Reading gives the stored objects themselves (never change them); writing passes through everything that a request
from outside passes through. A controller names resources as kubectl does: `pods`, `deployments.apps`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from srearena.cluster.embedded.objects import Obj, copy_of, labels_of, meta, name_of, namespace_of
from srearena.cluster.embedded.registry import deletion
from srearena.cluster.embedded.registry.errors import ApiError, Conflict, NotFound
from srearena.cluster.embedded.registry.identity import User
from srearena.cluster.embedded.registry.registry import Registry, WriteOptions
from srearena.cluster.embedded.registry.selectors import LabelSelector

Requests = Counter[tuple[str, str, str, int]]
"""Numbers of requests by HTTP method, resource, subresource and status code."""


class Client:
    def __init__(self, registry: Registry, user: User, field_manager: str, requests: Requests | None = None) -> None:
        self.registry = registry
        self.user = user
        self.field_manager = field_manager
        self.requests: Requests = requests if requests is not None else Counter()
        """Writes so far. Reads are those of an informer: they come from its cache and are no requests."""

    def get(self, resource: str, namespace: str, name: str) -> Obj | None:
        return self.registry.store.get(self.registry.row(resource).storage_key, namespace, name)

    def list(self, resource: str, namespace: str = "", selector: LabelSelector | None = None) -> Iterable[Obj]:
        found = self.registry.store.objects(self.registry.row(resource).storage_key, namespace)
        return found if selector is None else [obj for obj in found if selector.matches(labels_of(obj))]

    def create(self, resource: str, obj: Obj) -> Obj:
        """Create an object; the caller must not use the dict afterwards."""
        try:
            created = self.registry.create(self.registry.row(resource), namespace_of(obj), obj, self._options())
        except ApiError as error:
            self.requests["POST", resource, "", error.code] += 1
            raise
        self.requests["POST", resource, "", 201] += 1
        return created

    def update(self, resource: str, obj: Obj, subresource: str = "") -> Obj:
        """Replace an object by a changed copy; Conflict if the object changed since the copy's resourceVersion."""
        return self._update("PUT", resource, namespace_of(obj), name_of(obj), lambda _: obj, subresource, copied=False)

    def modify(
        self, resource: str, namespace: str, name: str, change: Callable[[Obj], None], subresource: str = ""
    ) -> Obj | None:
        """Change a copy of the current object in place and store it; None if the object was deleted."""

        def changed(obj: Obj) -> Obj:
            change(obj)
            return obj

        try:
            return self._update("PATCH", resource, namespace, name, changed, subresource)
        except NotFound:
            return None

    def set_status(self, resource: str, obj: Obj, status: Obj) -> Obj | None:
        """Write the status of an object, regardless of concurrent changes; None if it was deleted."""

        def change(current: Obj) -> Obj:
            return {**current, "metadata": dict(current["metadata"]), "status": status}

        method = "PATCH" if self.field_manager == "kubelet" else "PUT"
        try:
            return self._update(method, resource, namespace_of(obj), name_of(obj), change, "status", copied=False)
        except NotFound:
            return None

    def _update(
        self,
        method: str,
        resource: str,
        namespace: str,
        name: str,
        change: Callable[[Obj], Obj],
        subresource: str,
        *,
        copied: bool = True,
    ) -> Obj:
        row = self.registry.row(resource)
        try:
            updated = self.registry.update(row, namespace, name, change, self._options(), subresource, copied=copied)
        except ApiError as error:
            self.requests[method, resource, subresource, error.code] += 1
            raise
        self.requests[method, resource, subresource, 200] += 1
        return updated

    def delete(
        self,
        resource: str,
        obj: Obj,
        *,
        grace_seconds: int | None = None,
        propagation: str | None = None,
        expired: bool = False,
    ) -> None:
        """Delete exactly this object (by UID); a no-op if it was deleted or replaced.

        `expired` objects are deleted by the storage, without a request.
        """
        wish: Obj = {"preconditions": {"uid": meta(obj)["uid"]}}
        if grace_seconds is not None:
            wish["gracePeriodSeconds"] = grace_seconds
        if propagation is not None:
            wish["propagationPolicy"] = propagation
        row = self.registry.row(resource)
        try:
            deletion.delete(self.registry, row, namespace_of(obj), name_of(obj), wish, self._options())
            code = 200
        except (NotFound, Conflict) as error:
            code = error.code
        if not expired:
            self.requests["DELETE", resource, "", code] += 1

    def copy(self, resource: str, namespace: str, name: str) -> Obj | None:
        found = self.get(resource, namespace, name)
        return copy_of(found) if found is not None else None

    def _options(self) -> WriteOptions:
        return WriteOptions(self.user, self.field_manager)
