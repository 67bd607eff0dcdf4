"""NamespaceLifecycle: nothing is created in a namespace that is missing or going away."""

from __future__ import annotations

from srearena.cluster.embedded.objects import is_terminating
from srearena.cluster.embedded.registry.admission.chain import Attributes, Plugin
from srearena.cluster.embedded.registry.errors import Forbidden, NotFound
from srearena.cluster.embedded.store import Store

IMMORTAL = frozenset({"default", "kube-system", "kube-public"})
# Reviews are not stored; they may refer to a namespace that does not exist.
_NOT_CONTENT = frozenset({"localsubjectaccessreviews.authorization.k8s.io"})


class NamespaceLifecycle(Plugin):
    name = "NamespaceLifecycle"

    def __init__(self, store: Store) -> None:
        self._store = store

    def admit(self, attributes: Attributes) -> None:
        row = attributes.row
        if row.group_resource == "namespaces":
            if attributes.operation == "DELETE" and attributes.name in IMMORTAL:
                raise Forbidden("namespaces", attributes.name, "this namespace may not be deleted")
            return
        if attributes.operation != "CREATE" or not row.namespaced or row.group_resource in _NOT_CONTENT:
            return
        namespace = self._store.get("namespaces", "", attributes.namespace)
        if namespace is None:
            raise NotFound("namespaces", attributes.namespace)
        if is_terminating(namespace):
            where = attributes.namespace
            refusal = attributes.refusal(
                f"unable to create new content in namespace {where} because it is being terminated"
            )
            refusal.details["causes"] = [
                {
                    "reason": "NamespaceTerminating",
                    "message": f"namespace {where} is being terminated",
                    "field": "metadata.namespace",
                }
            ]
            raise refusal
